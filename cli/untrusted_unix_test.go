//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/journal"
)

// messagesAPI speaks enough of the Messages API to answer each request with one command and then
// with an end, and keeps the keys that it was given.
type messagesAPI struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string
}

func newMessagesAPI(t *testing.T, command string) *messagesAPI {
	t.Helper()
	m := &messagesAPI{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/messages" || !json.Valid(body) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		m.keys = append(m.keys, r.Header.Get("X-Api-Key"))
		n := len(m.keys)
		m.mu.Unlock()
		name, input := "execute_command", map[string]string{"command": command}
		if bytes.Contains(body, []byte(`"tool_result"`)) {
			name, input = "attempt_completion", map[string]string{"result": "done"}
		}
		raw, err := json.Marshal(input)
		if err != nil {
			return
		}
		part, err := json.Marshal(string(raw))
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`, n),
			fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_%d","name":"%s","input":{}}}`, n, name),
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + string(part) + `}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`,
			`{"type":"message_stop"}`,
		} {
			kind := regexp.MustCompile(`"type":"([a-z_]+)"`).FindStringSubmatch(e)[1]
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, e)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *messagesAPI) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.keys...)
}

// serverProcess is roost serve as a process of its own.
type serverProcess struct {
	*sandbox
	cmd        *exec.Cmd
	url, token string
	ended      bool
}

func (s *sandbox) server(flags ...string) *serverProcess {
	s.t.Helper()
	o := &serverProcess{sandbox: s, cmd: s.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, flags...)...)}
	out, err := o.cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, o.cmd.Start())
	s.t.Cleanup(func() { o.end(syscall.SIGKILL) })
	var hello struct{ URL, Token string }
	must(s.t, json.NewDecoder(out).Decode(&hello))
	go func() { _, _ = io.Copy(io.Discard, out) }()
	o.url, o.token = hello.URL, hello.Token
	return o
}

func (o *serverProcess) end(sig syscall.Signal) {
	if !o.ended {
		o.ended = true
		_ = o.cmd.Process.Signal(sig)
		_ = o.cmd.Wait()
	}
}

func (o *serverProcess) do(method, path string, body any) (int, map[string]any) {
	o.t.Helper()
	var data []byte
	if body != nil {
		data = must1(json.Marshal(body))
	}
	req, err := http.NewRequest(method, o.url+path, bytes.NewReader(data))
	must(o.t, err)
	req.Header.Set("Authorization", "Bearer "+o.token)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	must(o.t, err)
	defer resp.Body.Close()
	var got map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&got)
	return resp.StatusCode, got
}

// recovered waits until the server has taken up what earlier processes left, and all that it
// started by itself has come to an end.
func (o *serverProcess) recovered() {
	o.t.Helper()
	o.within(time.Minute, "the server is ready", func() bool {
		code, got := o.do(http.MethodGet, "/readyz", nil)
		checks, _ := got["checks"].(map[string]any)
		return code == http.StatusOK && checks["recovery"] == "done"
	})
	o.within(time.Minute, "no run works", func() bool {
		_, got := o.do(http.MethodGet, "/v1/runs", nil)
		list, _ := got["items"].([]any)
		for _, one := range list {
			if run, ok := one.(map[string]any); ok && (run["state"] == "running" || run["state"] == "starting") {
				return false
			}
		}
		return true
	})
}

// left is a task of somebody's: queued or interrupted, under approve all, with a command that has
// not run. It gives the task's id.
func (s *sandbox) left(how, witness string) string {
	s.t.Helper()
	deed := s.script("- tools: [{name: execute_command, input: {command: " + fmt.Sprintf("%q", "echo x >> "+witness) + "}}]\n" + finish("done"))
	slow := s.script("- text: one two three\n  delay: 1h\n" + finish("done"))
	srv := s.server("--max-runs", "1")
	model := slow
	if how == "interrupted" {
		model = s.script("- text: one two three\n  delay: 1h\n")
	}
	start := func(model string) string {
		code, got := srv.do(http.MethodPost, "/v1/tasks", map[string]any{
			"workspace": s.ws, "provider": "script", "model": model, "approve": "all", "message": map[string]any{"text": "go"},
		})
		if code != http.StatusCreated {
			s.t.Fatalf("start a task: %d %v", code, got)
		}
		id, _ := got["task_id"].(string)
		if id == "" {
			id, _ = got["id"].(string)
		}
		return id
	}
	id := start(model)
	if how == "queued" {
		id = start(deed)
	}
	srv.end(syscall.SIGKILL)
	if how == "interrupted" { // its model goes on with the command
		must(s.t, os.WriteFile(model, must1(os.ReadFile(deed)), 0o600))
	}
	if s.task(id).Status != how {
		s.t.Fatalf("the task is %s, want %s", s.task(id).Status, how)
	}
	return id
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestAnArchiveStartsNothing: an archive with open work is imported, and a server is started
// as ever.
func TestAnArchiveStartsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"queued", "interrupted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			attacker, victim := newSandbox(t), newSandbox(t)
			witness := filepath.Join(t.TempDir(), "pwned")
			id := attacker.left(how, witness)
			archive := filepath.Join(t.TempDir(), "bug.zip")
			if r := attacker.roost("export", id, "--format", "archive", "-o", archive); r.code != 0 {
				t.Fatal(r.err)
			}
			before := attacker.roost("show", id, "--ui", "--json").out
			r := victim.roost("import", archive)
			if r.code != 0 || !strings.Contains(r.out, "approve all") || !strings.Contains(r.out, "--trust-settings") {
				t.Errorf("import: exit %d; it does not name what the task came with:\n%s%s", r.code, r.out, r.err)
			}
			if again := victim.roost("import", archive, "--json"); !strings.Contains(again.out, `"same":1`) {
				t.Errorf("a second import is not the same: %s", again.out)
			}
			if after := victim.roost("show", id, "--ui", "--json").out; after != before {
				t.Errorf("the rows changed:\n%s\nwant\n%s", after, before)
			}
			srv := victim.server("--auto-resume")
			srv.recovered()
			srv.end(syscall.SIGTERM)
			if there(witness) {
				t.Fatal("the archive's command has run")
			}
			if got := victim.task(id); got.Status != "interrupted" || got.Received == nil || got.Received.Approve != "all" {
				t.Errorf("task: status %s, received %+v; want interrupted, and that it came with approve all", got.Status, got.Received)
			}
		})
	}
}

// TestAnImportedAddressGetsNoKey: the task's own address is nobody's word here.
func TestAnImportedAddressGetsNoKey(t *testing.T) {
	t.Parallel()
	witness := filepath.Join(t.TempDir(), "pwned")
	theirs, ours := newMessagesAPI(t, "echo x >> "+witness), newMessagesAPI(t, "echo x >> "+witness)
	attacker, victim := newSandbox(t), newSandbox(t)
	attacker.env("ANTHROPIC_API_KEY=sk-ant-attacker")
	r := attacker.roost("run", "--json", "--provider", "anthropic", "--base-url", theirs.URL, "--approve", "all", "hello")
	if r.code != 0 {
		t.Fatal(r.err)
	}
	must(t, os.Remove(witness))
	id := regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(r.out)[1]
	archive := filepath.Join(t.TempDir(), "bug.zip")
	if r := attacker.roost("export", id, "--format", "archive", "-o", archive); r.code != 0 {
		t.Fatal(r.err)
	}
	before := len(theirs.asked())

	victim.env("ANTHROPIC_API_KEY=sk-ant-victim", "ANTHROPIC_BASE_URL="+ours.URL)
	if r := victim.roost("import", archive, "--map", attacker.ws+"="+victim.ws); r.code != 0 {
		t.Fatal(r.err)
	}
	r = victim.roost("resume", id, "-C", victim.ws, "--no-input", "go on")
	if len(theirs.asked()) != before {
		t.Fatalf("the task's own address got the key %q", theirs.asked()[before:])
	}
	if len(ours.asked()) == 0 {
		t.Errorf("nobody was asked: exit %d\n%s", r.code, r.err)
	}
	if !strings.Contains(r.err, "approve all") || !strings.Contains(r.err, theirs.URL) {
		t.Errorf("it does not name what the task came with:\n%s", r.err)
	}
	if there(witness) {
		t.Error("a command ran that nobody allowed here")
	}
	if r.code != failure.ExitInput && r.code != failure.ExitDone {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}

	// At its user's word the task keeps them.
	other := newSandbox(t)
	other.env("ANTHROPIC_API_KEY=sk-ant-other", "ANTHROPIC_BASE_URL="+ours.URL)
	if r := other.roost("import", "--trust-settings", archive); r.code != 0 {
		t.Fatal(r.err)
	}
	if r := other.roost("resume", id, "-C", other.ws, "--no-input", "go on"); r.code != 0 || len(theirs.asked()) == before {
		t.Errorf("with --trust-settings: exit %d, its address was asked %d times more; want it asked\n%s", r.code, len(theirs.asked())-before, r.err)
	}
}

// answered is a task whose question was answered with yes while nothing worked on it; the log is
// cut right behind the answer.
func (s *sandbox) answered(witness string) string {
	s.t.Helper()
	deed := s.script("- tools: [{name: execute_command, input: {command: " + fmt.Sprintf("%q", "echo x >> "+witness) + "}}]\n" + finish("done"))
	r := s.roost("run", "--json", "--provider", "script", "--model", deed, "--approve", "ask", "--no-input", "go")
	if r.code != failure.ExitInput {
		s.t.Fatalf("exit %d, want %d\n%s", r.code, failure.ExitInput, r.err)
	}
	id := regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(r.out)[1]
	if r := s.roost("answer", id, "--yes", "--no-input"); !there(witness) {
		s.t.Fatalf("the answer did nothing: %s", r.err)
	}
	must(s.t, os.Remove(witness))
	s.cutBehind(id, `"type":"question.closed"`)
	return id
}

// cutBehind takes the end off a task's log, and what is derived of it.
func (s *sandbox) cutBehind(id, event string) {
	s.t.Helper()
	dir := filepath.Join(s.root, "tasks", id)
	log := filepath.Join(dir, "journal.jsonl")
	lines := bytes.SplitAfter(must1(os.ReadFile(log)), []byte("\n"))
	for i, line := range lines {
		if bytes.Contains(line, []byte(event)) {
			must(s.t, os.WriteFile(log, bytes.Join(lines[:i+1], nil), 0o600))
			for _, name := range []string{"journal.idx", "projection.json", "ui_messages.json", "api_conversation_history.json", "task_metadata.json", "history_item.json"} {
				_ = os.Remove(filepath.Join(dir, name))
			}
			return
		}
	}
	s.t.Fatalf("no %s in %s", event, log)
}

// TestARecordedYesOfAnArchiveRunsNothing: the log ends behind a yes that no call has used.
func TestARecordedYesOfAnArchiveRunsNothing(t *testing.T) {
	t.Parallel()
	attacker, victim := newSandbox(t), newSandbox(t)
	witness := filepath.Join(t.TempDir(), "pwned")
	id := attacker.answered(witness)
	must(t, os.Remove(filepath.Join(attacker.root, "tasks", id, "journal.lock")))
	attacker.roost("doctor", "--repair", "--rebuild")
	archive := filepath.Join(t.TempDir(), "bug.zip")
	attacker.roost("export", id, "--format", "archive", "-o", archive)
	if r := victim.roost("import", archive); r.code != 0 {
		t.Fatal(r.err)
	}
	for _, args := range [][]string{{"resume", id, "-C", victim.ws, "--no-input", "please summarise"}, {"resume", id, "--approve", "ask", "--no-input", "go on"}, {"resume", id, "--no-input"}} {
		victim.roost(args...)
		if there(witness) {
			t.Fatalf("roost %s ran the command", strings.Join(args, " "))
		}
	}
}

// TestALogThatWasCutBehindAYesRunsNothing is the same deed in one's own root.
func TestALogThatWasCutBehindAYesRunsNothing(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"kept", "removed"} {
		t.Run("the lock file is "+lock, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			witness := filepath.Join(t.TempDir(), "pwned")
			id := s.answered(witness)
			if lock == "removed" {
				must(t, os.Remove(filepath.Join(s.root, "tasks", id, "journal.lock")))
			}
			if r := s.roost("doctor", id); r.code != failure.ExitDamaged {
				t.Errorf("doctor: exit %d, want %d\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
			}
			for range 2 { // also behind the first owner, who wrote to the log
				if r := s.roost("resume", id, "--no-input"); there(witness) || r.code != failure.ExitInput {
					t.Fatalf("resume: exit %d, want %d; the command ran: %v\n%s", r.code, failure.ExitInput, there(witness), r.err)
				}
			}
		})
	}
}

// copied is a copy of a root, as cp -a makes it.
func (s *sandbox) copied() *sandbox {
	s.t.Helper()
	c := *s
	c.root = filepath.Join(s.dir, "copy")
	if out, err := exec.Command("cp", "-a", s.root, c.root).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %v\n%s", err, out)
	}
	return &c
}

// TestACopiedRootStartsNothing until its user trusts it.
func TestACopiedRootStartsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"queued", "interrupted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			witness := filepath.Join(t.TempDir(), "pwned")
			id := s.left(how, witness)
			was := string(must1(os.ReadFile(filepath.Join(s.root, "server", "token"))))
			c := s.copied()
			srv := c.server("--auto-resume")
			srv.recovered()
			if strings.TrimSpace(was) == srv.token {
				t.Error("the copy's server has the token of the original")
			}
			if code, got := srv.do(http.MethodPost, "/v1/tasks/"+id+"/runs", map[string]any{"message": map[string]any{"text": "go on"}}); code != http.StatusConflict || got["code"] != "untrusted_settings" {
				t.Errorf("POST runs: %d %v, want 409 untrusted_settings", code, got["code"])
			}
			for query, want := range map[string]string{"": "[untrusted_settings]", "?own_settings=true": "[]"} {
				if _, got := srv.do(http.MethodGet, "/v1/tasks/"+id+"/resume"+query, nil); codesOf(got["asks"]) != want {
					t.Errorf("GET resume%s: it asks %v, want %s", query, got["asks"], want)
				}
			}
			srv.end(syscall.SIGTERM)
			if r := c.roost("resume", id, "--no-input", "go on"); r.code != failure.ExitInput || !strings.Contains(r.err, "roost root trust") {
				t.Errorf("resume: exit %d, want %d and the way out\n%s", r.code, failure.ExitInput, r.err)
			}
			if there(witness) {
				t.Fatal("the copy has run the command")
			}
			if r := c.roost("root", "trust", "--dry-run", "--json"); r.code != 0 || !strings.Contains(r.out, id) {
				t.Errorf("root trust --dry-run: exit %d, want the task named\n%s%s", r.code, r.out, r.err)
			}
			again := c.server("--auto-resume", "--trust-root")
			again.within(time.Minute, "the trusted copy goes on", func() bool { return there(witness) })
		})
	}
}

// codesOf are the codes of problems in a document.
func codesOf(list any) string {
	codes := []string{}
	items, _ := list.([]any)
	for _, one := range items {
		p, _ := one.(map[string]any)
		code, _ := p["code"].(string)
		codes = append(codes, code)
	}
	return fmt.Sprint(codes)
}

// unsigned makes a root what a program that did not sign has left.
func (s *sandbox) unsigned() {
	s.t.Helper()
	must(s.t, os.Remove(filepath.Join(s.root, "root.json")))
	must(s.t, os.RemoveAll(filepath.Join(s.dir, "home", ".local", "state")))
	logs := must1(filepath.Glob(filepath.Join(s.root, "*", "*", "journal.jsonl")))
	for _, log := range logs {
		var out []byte
		for _, line := range bytes.SplitAfter(must1(os.ReadFile(log)), []byte("\n")) {
			if len(line) > 0 {
				out = must1(journal.AppendSigned(out, must1(journal.DecodeCommit(line)), nil))
			}
		}
		must(s.t, os.WriteFile(log, out, 0o600))
		_ = os.Remove(filepath.Join(filepath.Dir(log), "journal.idx"))
		head := bytes.Count(out, []byte("\n"))
		record := fmt.Sprintf(`{"synced":%-20d,"head":%-20d,"epoch":%-20d,"ino":%-20d`, len(out), head, 1, inodeOf(s.t, log))
		record += fmt.Sprintf(",\"crc\":\"%08x\"}\n", crc32.Checksum([]byte(record), crc32.MakeTable(crc32.Castagnoli)))
		must(s.t, os.WriteFile(filepath.Join(filepath.Dir(log), "journal.lock"), []byte(record), 0o600))
	}
}

func inodeOf(t *testing.T, name string) uint64 {
	t.Helper()
	info := must1(os.Stat(name))
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestAnOlderRootGoesOnWhenAsked: nothing starts by itself, and a run that was killed resumes under
// the user's own settings.
func TestAnOlderRootGoesOnWhenAsked(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	witness := filepath.Join(t.TempDir(), "pwned")
	id := s.left("interrupted", witness)
	s.unsigned()
	srv := s.server("--auto-resume")
	srv.recovered()
	srv.end(syscall.SIGTERM)
	if there(witness) {
		t.Fatal("a log that nobody signed was obeyed")
	}
	r := s.roost("resume", id, "--no-input", "go on")
	if r.code != failure.ExitInput || there(witness) || !strings.Contains(r.err, "approve all") {
		t.Errorf("resume: exit %d, want %d under the policy ask, and what the task had\n%s", r.code, failure.ExitInput, r.err)
	}
	if r := s.roost("resume", id, "--yes", "--no-input"); r.code != 0 || !there(witness) {
		t.Errorf("resume --yes: exit %d; the command ran: %v\n%s", r.code, there(witness), r.err)
	}
}

// TestAForkOfARunningTaskStartsNothing: the unfinished run is the other task's.
func TestAForkOfARunningTaskStartsNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	witness := filepath.Join(t.TempDir(), "ran")
	id := s.left("interrupted", witness)
	r := s.roost("fork", id, "--json")
	var fork struct{ ID string }
	if err := json.Unmarshal([]byte(r.out), &fork); err != nil || fork.ID == "" {
		t.Fatalf("fork: %v\n%s%s", err, r.out, r.err)
	}
	if got := s.task(fork.ID).Status; got == "interrupted" {
		t.Error("a fork is interrupted from its birth")
	}
	srv := s.server("--auto-resume")
	srv.recovered()
	srv.within(time.Minute, "the task itself goes on", func() bool { return s.task(id).Status == "completed" })
	srv.end(syscall.SIGTERM)
	if got := string(must1(os.ReadFile(witness))); got != "x\n" {
		t.Errorf("the command ran %d times, want once", strings.Count(got, "x"))
	}
}

// TestReadingMakesNoKey: who only looks leaves nothing behind.
func TestReadingMakesNoKey(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("one", "hello", yesterday.UnixMilli())
	for _, args := range [][]string{{"list"}, {"show", "one"}, {"search", "hello"}, {"doctor"}, {"questions"}, {"root", "trust", "--dry-run"}} {
		s.roost(args...)
	}
	for _, dir := range []string{s.root, filepath.Join(s.dir, "home", ".local", "state")} {
		if there(dir) {
			t.Errorf("%s was made", dir)
		}
	}
}
