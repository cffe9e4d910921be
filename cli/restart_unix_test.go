//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// olderServer is a server that is a process of its own, and the older restart call to it.
type olderServer struct {
	*testing.T
	url, token string
	proc       *exec.Cmd
}

func (s *sandbox) serves() *olderServer {
	s.t.Helper()
	cmd := s.command("serve", "--listen", "127.0.0.1:0", "--json")
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	o := &olderServer{T: s.t, proc: cmd}
	s.t.Cleanup(o.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	must(s.t, err)
	var hello struct{ URL, Token string }
	must(s.t, json.Unmarshal([]byte(line), &hello))
	o.url, o.token = hello.URL, hello.Token
	return o
}

// kill ends the server as a power cut does.
func (o *olderServer) kill() {
	if o.proc != nil {
		_ = o.proc.Process.Kill()
		_ = o.proc.Wait()
		o.proc = nil
	}
}

// olderLine is a line of the older call's stream, or its refusal.
type olderLine struct {
	Type, Message, JobID, TaskID, Error, RestartCommand string
	Suggestions                                         json.RawMessage
	TokenUsage                                          api.OlderUsage
}

// call makes the older call and gives its lines up to one whose type and words are
// those, with the status.
func (o *olderServer) call(body map[string]any, until func(olderLine) bool) (lines []olderLine, status int) {
	o.Helper()
	data, err := json.Marshal(body)
	must(o.T, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/chat/stream", strings.NewReader(string(data)))
	must(o.T, err)
	req.Header.Set("Authorization", "Bearer "+o.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(o.T, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var one olderLine
		all, err := io.ReadAll(resp.Body)
		must(o.T, err)
		must(o.T, json.Unmarshal(all, &one))
		return []olderLine{one}, resp.StatusCode
	}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		text, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var one olderLine
		must(o.T, json.Unmarshal([]byte(text), &one))
		if lines = append(lines, one); until(one) {
			return lines, resp.StatusCode
		}
	}
	o.Fatalf("the stream ended behind %+v", lines)
	return nil, 0
}

func olderEnd(one olderLine) bool { return one.Type == "stream_end" }

// The restart guide's steps: a task is begun over HTTP, its server is killed in the
// middle, and it is gone on with after the next start; what it prints at its end works.
func TestRestartGuide(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := filepath.Join(s.dir, "model.yaml")
	must(t, os.WriteFile(model, []byte("- text: step one\n  tools: [{name: list_files, input: {path: .}}]\n"+
		"- {text: step two, delay: 2s, tools: [{name: list_files, input: {path: .}}]}\n"+
		"- tools: [{name: attempt_completion, input: {result: all done}}]\n"), 0o600))
	s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+model)

	o := s.serves()
	lines, _ := o.call(map[string]any{"task": "begin", "mode": "code"}, func(l olderLine) bool { return l.Message == "step one" })
	o.kill()
	id := lines[0].TaskID
	if lines[0].Type != "start" || id == "" || lines[0].JobID == "" {
		t.Fatalf("the start: %+v", lines[0])
	}

	o = s.serves()
	if _, status := o.call(map[string]any{"task": "go on", "taskId": id}, olderEnd); status != http.StatusUnprocessableEntity {
		t.Errorf("taskId without restartTask: %d", status)
	}
	lines, status := o.call(map[string]any{"task": "go on", "taskId": id, "restartTask": true}, olderEnd)
	if status != http.StatusOK {
		t.Fatalf("the restart: %d %+v", status, lines)
	}
	end := lines[len(lines)-2]
	if lines[0].TaskID != id || end.Type != "completion" || end.Message != "all done" || end.TaskID != id || !strings.Contains(end.RestartCommand, "--task "+id) {
		t.Fatalf("the restart: %+v", lines)
	}
	shown := s.roost("show", id, "--ui", "--json")
	for _, words := range []string{"begin", "step one", "go on", "step two", "all done"} {
		if n := strings.Count(shown.out, `"`+words+`"`); n != 1 {
			t.Errorf("%q stands in the history %d times:\n%s", words, n, shown.out)
		}
	}
	o.kill()

	// In a shell, with words behind it and without, and over the server.
	command := strings.Fields(end.RestartCommand)
	if command[0] != "roost" {
		t.Fatalf("the command: %q", end.RestartCommand)
	}
	for _, more := range [][]string{{"and once more"}, nil} {
		if r := s.roost(append(append([]string{}, command[1:]...), more...)...); r.code != 0 {
			t.Errorf("got %s %q: %d\n%s%s, want r.code = 0", end.RestartCommand, more, r.code, r.out, r.err)
		}
	}
	must(t, os.WriteFile(model, []byte(strings.Repeat("- {text: x, expect: [nothing says this]}\n", 30)), 0o600))
	s.env("ROOST_RESTART_MAX_ATTEMPTS=1", "ROOST_RESTART_LOAD_TIMEOUT=30s")
	o = s.serves()
	if r := s.roost(append([]string{"--server", o.url}, append(command[1:], "over the server")...)...); r.code == 0 || r.code == failure.ExitUsage || r.code == failure.ExitServer {
		t.Errorf("over the server: %d\n%s%s", r.code, r.out, r.err)
	}
	if _, status := o.call(map[string]any{"task": "again", "taskId": id, "restartTask": true}, olderEnd); status != http.StatusConflict {
		t.Errorf("a restart too many: %d", status)
	}
	o.kill()
	s.env("ROOST_RESTART_ENABLED=false")
	o = s.serves()
	lines, status = o.call(map[string]any{"task": "again", "taskId": id, "restartTask": true}, olderEnd)
	if status != http.StatusForbidden || lines[0].TaskID != id || lines[0].Error == "" || lines[0].Message == "" {
		t.Errorf("with restart.enabled=false: %d %+v", status, lines)
	}
}

// An editor's task whose profile nobody here knows is gone on with by whom the server's new tasks
// ask, and the stream says so. It says where the task began, and what all of the task spent.
func TestTheOlderCallGoesOnWithAnEditorsTask(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const id = "6b1e5a34-8f0e-4b5c-9a53-0d7b6a2f1c11"
	s.foreign(id, "tidy the shed", 1776100000000)
	for name, text := range map[string]string{
		"history_item.json": `{"id":"` + id + `","number":1,"ts":1776100000000,"task":"tidy the shed","workspace":"` + s.ws + `","apiConfigName":"deepseek"}`,
		"ui_messages.json": `[{"ts":1776100000000,"type":"say","say":"text","text":"tidy the shed"},` +
			`{"ts":1776100000001,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1000,\"tokensOut\":50,\"cacheReads\":300,\"cost\":0.5}"},` +
			`{"ts":1776100000002,"type":"ask","ask":"followup","text":"go on?"}]`,
	} {
		path := filepath.Join(s.store, "tasks", id, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		must(t, os.Chtimes(path, yesterday, yesterday))
	}
	if u := s.task(id).Usage; u.TokensIn != 1000 {
		t.Fatalf("before: %+v", u)
	}
	turn := `{input: 100, output: 10, cache_read: 200}`
	model := s.script("- usage: " + turn + "\n  tools: [{name: list_files, input: {path: .}}]\n- usage: " + turn + "\n  tools: [{name: attempt_completion, input: {result: done}}]\n")
	for key, value := range map[string]string{"provider": "script", "model": model} {
		if r := s.roost("config", "set", key, value); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	o := s.serves()
	again := map[string]any{"task": "go on", "taskId": id, "restartTask": true}
	lines, status := o.call(again, olderEnd)
	if status != http.StatusOK || lines[0].Message != "Continuing task from extension context" || lines[0].TaskID != id {
		t.Fatalf("got %d %+v, want status = http.StatusOK and lines[0].Message = \"Continuing task from extension context\" and lines[0].TaskID = id",
			status, lines)
	}
	if said := lines[1]; said.Type != "progress" || !strings.Contains(said.Message, `"deepseek"`) || !strings.Contains(said.Message, "script") || !strings.Contains(said.Message, model) {
		t.Errorf("it does not say who is asked: %+v", said)
	}
	if end := lines[len(lines)-2]; end.Type != "completion" || end.Message != "done" {
		t.Errorf(`got %+v, want end.Type = "completion" and end.Message = "done"`, lines)
	}
	spent := func(lines []olderLine) (out []int64) {
		for _, l := range lines {
			if l.Type == "token_usage" {
				out = append(out, l.TokenUsage.In)
			}
		}
		return out
	}
	if got := spent(lines); !cmp.Equal(got, []int64{1300, 1600}) || s.task(id).Usage.TokensIn != 1600 {
		t.Errorf("the task spent %v, and %+v", got, s.task(id).Usage)
	}
	// Its own runs do not hide what it spent in the editor.
	must(t, os.WriteFile(model, []byte(strings.Repeat("- {usage: "+turn+", tools: [{name: attempt_completion, input: {result: done}}]}\n", 9)), 0o600))
	if lines, _ := o.call(again, olderEnd); !cmp.Equal(spent(lines), []int64{1900}) || lines[0].Message != "Continuing task from extension context" {
		t.Errorf("again: %+v", lines)
	}
	lines, status = o.call(map[string]any{"task": "x", "taskId": id[:len(id)-2] + "99", "restartTask": true}, olderEnd)
	if help := string(lines[0].Suggestions); status != http.StatusNotFound || !strings.Contains(help, `"`+id+`"`) || !strings.Contains(help, "roost list") || !strings.Contains(help, "?query=") {
		t.Errorf("an unknown id: %d %s", status, help)
	}
}
