//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

// sandbox is a user's machine: home, root, a foreign storage and a workspace, all
// of them scratch.
type sandbox struct {
	t                    *testing.T
	dir, root, store, ws string
	extra                []string
	scripts              int
	exe                  string              // another copy of the program
	as                   *syscall.Credential // who runs it
}

// of is the same sandbox for a part of the test.
func (s *sandbox) of(t *testing.T) *sandbox {
	part := *s
	part.t = t
	return &part
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir := t.TempDir()
	s := &sandbox{t: t, dir: dir, root: filepath.Join(dir, "root"), store: filepath.Join(dir, "store"), ws: filepath.Join(dir, "ws")}
	for _, d := range []string{s.store, s.ws, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	return s
}

// env adds variables for the commands that follow.
func (s *sandbox) env(list ...string) { s.extra = append(s.extra, list...) }

// command is roost as a process of its own: this test binary, under its other name.
func (s *sandbox) command(args ...string) *exec.Cmd {
	exe := s.exe
	if exe == "" {
		var err error
		exe, err = exec.LookPath("roost")
		must(s.t, err)
	}
	cmd := exec.Command(exe, args...)
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
	cmd.Dir = s.ws
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "TMPDIR=" + filepath.Join(s.dir, "tmp"), "TERM=xterm", "NO_PAGER=1", "GORACE=" + os.Getenv("GORACE"),
		"ROOST_ROOT=" + s.root, "ROOST_CACHE=" + filepath.Join(s.dir, "cache"), "ROOST_SOURCES=" + s.store,
	}, s.extra...)
	return cmd
}

// result is what a command left.
type result struct {
	code     int
	out, err string
}

func (s *sandbox) roost(args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// foreign puts a task of an editor into the storage.
func (s *sandbox) foreign(id, words string, ts int64) {
	s.t.Helper()
	dir := filepath.Join(s.store, "tasks", id)
	must(s.t, os.MkdirAll(dir, 0o700))
	ui := []map[string]any{{"ts": ts, "type": "say", "say": "text", "text": words}, {"ts": ts + 1, "type": "ask", "ask": "followup", "text": "go on?"}}
	api := []map[string]any{{"role": "user", "content": words, "ts": ts}}
	item := map[string]any{"id": id, "number": 1, "ts": ts, "task": words, "tokensIn": 1, "tokensOut": 1, "totalCost": 0, "workspace": s.ws}
	for name, v := range map[string]any{"ui_messages.json": ui, "api_conversation_history.json": api, "history_item.json": item} {
		data, err := json.Marshal(v)
		must(s.t, err)
		must(s.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		must(s.t, os.Chtimes(filepath.Join(dir, name), yesterday, yesterday))
	}
}

// script writes a scripted model's file and names it.
func (s *sandbox) script(yaml string) string {
	s.t.Helper()
	s.scripts++
	name := filepath.Join(s.dir, fmt.Sprintf("script%d.yaml", s.scripts))
	must(s.t, os.WriteFile(name, []byte(yaml), 0o600))
	return name
}

// call is a turn that calls one tool; input is YAML in flow style.
func call(tool, input string) string {
	return "- tools: [{name: " + tool + ", input: " + input + "}]\n"
}

func finish(words string) string {
	return call("attempt_completion", "{result: "+strconv.Quote(words)+"}")
}

func (s *sandbox) list() []api.Summary {
	s.t.Helper()
	r := s.roost("list", "--json")
	var got struct {
		Items []api.Summary `json:"items"`
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 0 {
		s.t.Fatalf("roost list: exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	return got.Items
}

func (s *sandbox) task(id string) api.Summary {
	s.t.Helper()
	for _, t := range s.list() {
		if t.ID == id {
			return t
		}
	}
	s.t.Fatalf("task %s is not listed", id)
	return api.Summary{}
}

// within polls until ok, and fails the test when that takes too long.
func (s *sandbox) within(limit time.Duration, what string, ok func() bool) {
	s.t.Helper()
	pause := 2 * time.Millisecond // it grows: ok often asks a server, which has other work to do
	for end := time.Now().Add(limit); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			s.t.Fatalf("after %v still not: %s", limit, what)
		}
		pause = min(pause+time.Millisecond, 50*time.Millisecond)
	}
}

// pid waits for a file with a process number.
func (s *sandbox) pid(name string) int {
	s.t.Helper()
	var n int
	s.within(time.Minute, "a process number in "+name, func() bool {
		data, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return n
}

// gone waits until a process is no more, or only a zombie of somebody else's.
func (s *sandbox) gone(pid int) {
	s.t.Helper()
	s.within(time.Minute, fmt.Sprintf("process %d gone", pid), func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
