//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/task"
)

// firstSettings are those that the first commit of a task's journal holds.
func (s *sandbox) firstSettings(id string) (out task.Settings) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.root, "tasks", id, "journal.jsonl"))
	must(s.t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c struct {
			Events []struct {
				Type     string
				Settings *task.Settings
			}
		}
		must(s.t, json.Unmarshal(lines.Bytes(), &c))
		for _, e := range c.Events {
			if e.Type == "task.created" && e.Settings != nil {
				return *e.Settings
			}
		}
	}
	s.t.Fatalf("the journal of %s does not say what its task was made with", id)
	return out
}

// post asks the server for something, and gives the answer's text.
func (d *daemon) post(path, body string) (int, string) {
	req, err := http.NewRequest(http.MethodPost, d.url+path, strings.NewReader(body))
	must(d.t, err)
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(d.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(d.t, err)
	return resp.StatusCode, string(text)
}

// A task that is begun over HTTP has the settings of the server's user, whichever request
// begins it, as one that is begun in the shell; what a request names goes before them.
func TestSettingsHoldBehindEveryDoor(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- tools: [{name: execute_command, input: {command: \"touch ran\"}}]\n" + finish("tried"))
	write := func(name, text string) string {
		path := filepath.Join(s.dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	file := write("config.toml", `provider = "script"
model = "`+model+`"
mode = "architect"
approve = "all"
allow = ["git log"]
deny = ["rm"]
deny_tools = ["execute_command"]
ask_tools = ["mcp"]
max_turns = 7
max_cost = 0.5
max_cost_task = 2
ask_after_requests = 40
idle_timeout = "50s"
condense_at = 80
stale = "read"
`)
	s.env("ROOST_CONFIG=" + file)
	d := s.daemon()
	ran := func(what string) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(s.ws, "ran")); err == nil {
			t.Errorf("%s: a command ran that the settings refuse", what)
		}
	}
	if r := s.roost("run", "here"); r.code != failure.ExitDone {
		t.Fatal(r.code, r.err)
	}
	ran("the shell")
	want := s.firstSettings(s.list()[0].ID)
	if want.Approve != "all" || want.Mode != "architect" || len(want.DenyTools) != 1 || want.Limits.MaxTaskMicros != 2e6 || want.Limits.IdleTimeoutMS != 50000 || want.Condense != 80 {
		t.Fatalf("the shell's own: %+v", want)
	}
	begin := func(what, path, body string) string {
		t.Helper()
		status, text := d.post(path, body)
		if status != http.StatusOK && status != http.StatusCreated {
			t.Fatalf("%s: got %d %s, want status = http.StatusOK or status = http.StatusCreated", what, status, text)
		}
		id := s.list()[0].ID
		if path == "/v1/tasks" && strings.Contains(body, "message") {
			s.comes(id, "completed")
		}
		return id
	}
	for what, id := range map[string]string{
		"POST /v1/tasks":             begin("with words", "/v1/tasks", `{"workspace":"`+s.ws+`","message":{"text":"x"}}`),
		"POST /v1/tasks, no message": begin("without", "/v1/tasks", `{"workspace":"`+s.ws+`"}`),
		"POST /chat/stream":          begin("older", "/chat/stream", `{"task":"x"}`),
	} {
		ran(what)
		got := s.firstSettings(id)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", what, diff)
		}
	}
	id := begin("its own", "/v1/tasks", `{"workspace":"`+s.ws+`","mode":"code","deny_tools":["mcp"],"limits":{"max_turns":0,"max_cost_task":"3"},"message":{"text":"x"}}`)
	got := s.firstSettings(id)
	if got.Mode != "code" || !cmp.Equal(got.DenyTools, []string{"mcp"}) || got.Limits.MaxTurns != 0 || got.Limits.MaxTaskMicros != 3e6 || got.Limits.MaxCostMicros != 5e5 || got.Approve != "all" {
		t.Errorf("what a request names does not go before the settings: %+v", got)
	}
	must(t, os.Remove(filepath.Join(s.ws, "ran")))
	if status, text := d.post("/v1/tasks", `{"workspace":"`+s.ws+`","deny_tools":["no such (rule"]}`); status != http.StatusUnprocessableEntity {
		t.Errorf("a rule that cannot be read: %d %s", status, text)
	}

	// The rules of whoever asks a server go there whole, by every command.
	s.env("ROOST_CONFIG=" + write("mine.toml", "deny_tools = [\"execute_command\", \"write_to_file\"]\nask_tools = [\"read_file\"]\nallow_tools = [\"list_files\"]\n"))
	for _, args := range [][]string{{"run", "--server", d.url, "there"}, {"run", "--detach", "later"}} {
		if r := s.roost(args...); r.code != failure.ExitDone {
			t.Fatal(args, r.code, r.err)
		}
		id := s.list()[0].ID
		s.comes(id, "completed")
		ran(strings.Join(args, " "))
		if got := s.firstSettings(id); len(got.DenyTools) != 2 || len(got.AskTools) != 1 || len(got.Tools) != 1 || got.Approve != "all" {
			t.Errorf("%v: got %+v, want len(got.DenyTools) = 2 and len(got.AskTools) = 1 and len(got.Tools) = 1 and got.Approve = \"all\"",
				args, got)
		}
	}
}

// A task that a shell began in a folder that holds Roost's own data is not run there by a server.
func TestAServerRunsNoTaskAroundItsOwnData(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- tools: [{name: ask_followup_question, input: {question: \"Which?\", follow_up: [{text: red}, {text: green}]}}]\n" + finish("done"))
	if r := s.roost("run", "--no-input", "-C", filepath.Dir(s.root), "--provider", "script", "--model", model, "paint"); r.code != failure.ExitInput {
		t.Fatal(r.code, r.err)
	}
	id := s.list()[0].ID
	d := s.daemon()
	for path, body := range map[string]string{
		"/messages": `{"text":"red"}`, "/runs": `{"message":{"text":"red"}}`, "/forks": `{}`, "/condense": `{}`,
	} {
		if status, text := d.post("/v1/tasks/"+id+path, body); status != http.StatusUnprocessableEntity || !strings.Contains(text, `"configuration"`) || !strings.Contains(text, `\"workspace\"`) {
			t.Errorf("%s: got %d %s, want status = http.StatusUnprocessableEntity and strings.Contains(text, `\"configuration\"`) and strings.Contains(text, `\\\"workspace\\\"`)",
				path, status, text)
		}
	}
	if status, text := d.post("/v1/tasks/"+id+"/runs", `{"message":{"text":"red"},"workspace":"`+s.ws+`"}`); status != http.StatusAccepted {
		t.Fatal(status, text)
	}
	s.comes(id, "completed")
}
