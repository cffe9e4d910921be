//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// A file of a task that is there and may not be read is never taken for absent: no door goes on with the task, each names the file,
// and both histories stay as they are. Root may read everything, so it is done as somebody else.
func TestUnreadableFileStopsEveryDoor(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const id = "11111111-1111-4111-8111-111111111111"
	s.foreign(id, "the beginning", 1776200000000)
	dir := filepath.Join(s.store, "tasks", id)
	const apiFile = "api_conversation_history.json"
	meta := filepath.Join(dir, "task_metadata.json")
	must(t, os.WriteFile(meta, []byte(`{"files_in_context":[]}`), 0o600))
	must(t, os.Chtimes(meta, yesterday, yesterday))
	model := s.script(finish("done"))
	must(t, os.WriteFile(filepath.Join(s.dir, "config.toml"), fmt.Appendf(nil, "provider = \"script\"\nmodel = %q\n", model), 0o600))
	s.env("ROOST_CONFIG=" + filepath.Join(s.dir, "config.toml"))
	s.asNobody()
	contents := func() map[string]string {
		out := map[string]string{}
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
			out[e.Name()] = string(data)
		}
		return out
	}
	before := contents()
	shut := ""
	same := func(door string) {
		t.Helper()
		must(t, os.Chmod(shut, 0o600))
		defer os.Chmod(shut, 0)
		now := contents()
		for name, was := range before {
			if now[name] != was {
				t.Errorf("%s: %s is not as it was:\n%s", door, name, now[name])
			}
		}
		if len(now) != len(before) {
			t.Errorf("%s: there are new files in the folder", door)
		}
	}
	d := s.daemon()
	post := func(path string, body any) (int, string) {
		t.Helper()
		data, err := json.Marshal(body)
		must(t, err)
		req, err := http.NewRequest(http.MethodPost, d.url+path, bytes.NewReader(data))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+d.token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, string(all)
	}
	for _, file := range []string{apiFile, uiFile, "history_item.json", "task_metadata.json"} {
		path := filepath.Join(dir, file)
		shut = path
		must(t, os.Chmod(path, 0))
		for _, args := range [][]string{
			{"resume", id, "go", "--provider", "script", "--model", model, "-C", s.ws}, {"fork", id}, {"fork", id, "--dry-run"}, {"condense", id, "--provider", "script", "--model", model, "-C", s.ws},
			{"rewind", id, "--to", "#1", "--keep-target"}, {"rewind", id, "--to", "#1", "--dry-run"},
		} {
			r := s.roost(args...)
			if r.code != failure.ExitFailed || !strings.Contains(r.err, path) || !strings.Contains(r.err, "chmod") {
				t.Errorf("%s: %v: exit %d\n%s%s", file, args, r.code, r.out, r.err)
			}
			same(args[0])
		}
		if r := s.roost("doctor", "--repair", id); r.code != failure.ExitDamaged || !strings.Contains(r.out+r.err, file) {
			t.Errorf("%s: doctor --repair: exit %d\n%s%s", file, r.code, r.out, r.err)
		}
		same("doctor --repair")
		if r := s.roost("import", s.store); r.code != failure.ExitFailed || !strings.Contains(r.out+r.err, file) {
			t.Errorf("%s: import: exit %d\n%s%s", file, r.code, r.out, r.err)
		}
		same("import")
		for door, body := range map[string]any{
			"/v1/tasks/" + id + "/runs":     map[string]any{"message": map[string]any{"text": "go"}},
			"/v1/tasks/" + id + "/messages": map[string]any{"text": "go", "delivery": "auto"},
			"/v1/tasks/" + id + "/rewinds":  map[string]any{"to": "#1", "keep_target": true},
			"/v1/tasks/" + id + "/forks":    map[string]any{},
			"/chat/stream":                  map[string]any{"task": "go", "taskId": id, "restartTask": true},
		} {
			status, answer := post(door, body)
			if status != http.StatusForbidden || !strings.Contains(answer, file) || !strings.Contains(answer, "chmod u+r "+path) {
				t.Errorf("%s: POST %s: %d %s", file, door, status, answer)
			}
			same(door)
		}
		must(t, os.Chmod(path, 0o600))
	}
	// Nothing was made of it meanwhile: it is gone on with as if nobody had tried.
	r := s.roost("resume", id, "and on", "--provider", "script", "--model", model, "-C", s.ws)
	var api []json.RawMessage
	unmarshal(t, []byte(contents()[apiFile]), &api)
	if r.code != failure.ExitDone || len(api) < 3 || !strings.Contains(string(api[0]), "the beginning") {
		t.Errorf("exit %d, %d messages\n%s%s", r.code, len(api), r.out, r.err)
	}
	// So is a task that has a journal, and a file of which cannot be read since.
	must(t, os.Chmod(filepath.Join(dir, apiFile), 0))
	if r := s.roost("resume", id, "go", "--provider", "script", "--model", model); r.code != failure.ExitFailed || !strings.Contains(r.err, apiFile) {
		t.Errorf("with a journal: exit %d\n%s%s", r.code, r.out, r.err)
	}
	must(t, os.Chmod(filepath.Join(dir, apiFile), 0o600))
}
