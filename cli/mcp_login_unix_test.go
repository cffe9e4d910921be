//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// Without a terminal the page is printed and no browser is opened; the tokens are kept and never printed.
func TestMCPLoginWithoutATerminal(t *testing.T) {
	t.Parallel()
	server := mcptest.New("")
	o := mcptest.NewOAuth(server)
	t.Cleanup(func() { mcptest.Hangup(server); o.Close() })
	s := newSandbox(t)
	if r := s.roost("mcp", "add", "web", "--url", o.URL+"/mcp"); r.code != 0 {
		t.Fatalf("got exit %d, want 0\n%s", r.code, r.err)
	}
	if r := s.roost("mcp", "list", "--check"); !strings.Contains(r.out, "roost mcp login web") {
		t.Errorf("without a log-in: got\n%s, want the command that logs in", r.out)
	}
	cmd := s.command("mcp", "login", "web")
	errs, err := cmd.StderrPipe()
	must(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	must(t, cmd.Start())
	in := bufio.NewScanner(errs)
	printed := ""
	for in.Scan() {
		printed += in.Text() + "\n"
		if page, ok := strings.CutPrefix(in.Text(), "The page: "); ok {
			res, err := http.Get(page) //nolint:noctx // the person's browser
			must(t, err)
			must(t, res.Body.Close())
		}
	}
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(out.String(), "logged in: web (http://127.0.0.1:") {
		t.Fatalf("got %v\n%s%s, want no error and \"logged in: web\"", err, out.String(), printed)
	}
	r := s.roost("mcp", "list", "--check")
	if r.code != 0 || !strings.Contains(r.out, "allowed, logged in") || !strings.Contains(r.out, "Repeats its text") {
		t.Errorf("got exit %d\n%s%s, want the tools of the server", r.code, r.out, r.err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "home", ".config", "roost", "mcp_logins", "*.json"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("got %d files of tokens, want 1", len(files))
	}
	data, err := os.ReadFile(files[0])
	must(t, err)
	all := printed + out.String() + fmt.Sprint(r)
	for _, word := range strings.Split(string(data), `"`) {
		if (strings.HasPrefix(word, "access-") || strings.HasPrefix(word, "refresh-")) && strings.Contains(all, word) {
			t.Errorf("the token %q is printed, want it kept", word)
		}
	}
	if r := s.roost("mcp", "logout", "web"); r.code != 0 {
		t.Errorf("got exit %d, want 0\n%s", r.code, r.err)
	}
	if r := s.roost("mcp", "list"); strings.Contains(r.out, "logged in") {
		t.Errorf("after the log-out: got\n%s, want no log-in", r.out)
	}
}
