//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/config"
)

// Acceptance 19, B-16: secrets that lie in the environment, the settings, the file of
// keys, a prompt and a reply are in no log, no metric and no refusal of a server.
func TestServerTellsNoSecrets(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	secret := func(n int) string { return fmt.Sprintf("planted%dplanted%dplanted%d", n, n*7, n*13) }
	settings := filepath.Join(s.dir, "config.toml")
	must(t, os.WriteFile(settings, []byte(fmt.Sprintf("[providers.openai]\napi_key = %q\n[profiles.work]\nprovider = \"openai\"\napi_key = %q\n", secret(2), secret(3))), 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, config.SecretFile), []byte(fmt.Sprintf("google = %q\n", secret(4))), 0o600))
	s.env("ANTHROPIC_API_KEY="+secret(1), "ROOST_CONFIG="+settings)
	d := s.daemon("-v")
	say := s.script("- text: " + secret(5) + "\n" + "  tools: [{name: execute_command, input: {command: \"echo " + secret(6) + "; false\"}}]\n" + finish(secret(7)))
	run := s.leaves(say, secret(8), "--approve", "all")
	s.comes(run.Task, "completed")
	failing := s.leaves(s.script("- error: {status: 400, message: \""+secret(9)+"\"}\n"), "words")
	s.comes(failing.Task, "failed")
	var told strings.Builder
	ask := func(method, path, body string) {
		req, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+d.token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		told.Write(text)
		must(t, resp.Header.Write(&told))
	}
	ask("GET", "/metrics", "")
	ask("GET", "/v1/server", "")
	ask("GET", "/readyz", "")
	ask("POST", "/v1/tasks", `{"workspace":"`+s.ws+`","nobody_knows":"`+secret(10)+`"}`)
	ask("POST", "/v1/tasks", `{"workspace":"`+s.ws+`","provider":"`+secret(11)+`x"`)
	ask("GET", "/v1/tasks/"+secret(12)[:20]+"/events?after="+secret(12), "")
	if r := s.roost("server", "stop"); r.code != 0 {
		t.Error(r.err)
	}
	d.exits(failure.ExitDone)
	for n := 1; n <= 12; n++ {
		if strings.Contains(d.log.String(), secret(n)) {
			t.Errorf("secret %d is in the log:\n%s", n, d.log)
		}
		// Who sends something may be shown it.
		if n <= 9 && strings.Contains(told.String(), secret(n)) {
			t.Errorf("secret %d is in what it answers:\n%s", n, &told)
		}
	}
	if strings.Contains(d.log.String()+told.String(), d.token) {
		t.Error("the token is told")
	}
	if !strings.Contains(d.log.String(), run.ID) {
		t.Errorf("the log says nothing:\n%s", d.log)
	}
}
