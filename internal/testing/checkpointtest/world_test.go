package checkpointtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli"
	"github.com/roost-dev/roost/cli/app"
)

// world is one workspace, one root and what was done there.
type world struct {
	t    *testing.T
	dir  string
	ws   string
	env  map[string]string
	log  []string // what happened, for the report of a failure
	did  did
	next int // makes every content a new one
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, ws: filepath.Join(dir, "ws")}
	w.env = map[string]string{
		"HOME": filepath.Join(dir, "home"), "PATH": os.Getenv("PATH"), "TMPDIR": os.Getenv("TMPDIR"),
		"ROOST_ROOT": filepath.Join(dir, "root"), "ROOST_CACHE": filepath.Join(dir, "cache"), "ROOST_SOURCES": "none", "ROOST_CONFIG": filepath.Join(dir, "config.toml"),
	}
	w.ok(os.MkdirAll(w.ws, 0o700))
	w.ok(os.MkdirAll(filepath.Join(dir, "home"), 0o700))
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.fatalf("%v", err)
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format+"\nwhat happened:\n  %s", append(args, strings.Join(w.log, "\n  "))...)
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) tree() Tree {
	w.t.Helper()
	t, err := ReadTree(w.ws)
	w.ok(err)
	return t
}

// answer is what one command of roost printed.
type answer struct {
	code     int
	out, err string
}

// roost runs one command line in this process, and proves that no repository in the
// workspace differs after it. Commands of the agent never touch one.
func (w *world) roost(args ...string) answer {
	w.t.Helper()
	before, err := Repositories(w.ws)
	w.ok(err)
	var out, errs bytes.Buffer
	a := app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(k string) string { return w.env[k] }, Dir: w.ws, Now: time.Now}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := answer{code: cli.Run(ctx, &a, append([]string{"--no-input"}, args...))}
	r.out, r.err = out.String(), errs.String()
	w.note("roost %s  => %d", strings.Join(args, " "), r.code)
	after, err := Repositories(w.ws)
	w.ok(err)
	for path, was := range before {
		if after[path] != was {
			w.fatalf("%s of a repository of the user is %q, was %q", path, after[path], was)
		}
	}
	if len(after) != len(before) {
		w.fatalf("a repository of the user had %d files and has %d", len(before), len(after))
	}
	return r
}

// must is roost for what has to succeed; into is what its JSON is read into, if anything.
func (w *world) must(into any, args ...string) answer {
	w.t.Helper()
	r := w.roost(args...)
	if r.code != 0 {
		w.fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(r.out), into); err != nil {
			w.fatalf("%v: %s", err, r.out)
		}
	}
	return r
}

// git runs git as the user does.
func (w *world) git(dir string, args ...string) {
	w.t.Helper()
	w.note("git %s", strings.Join(args, " "))
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(w.ws, dir), "-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "gc.auto=0", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.env["HOME"], "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) { // a stash of nothing, a merge that conflicts: people see that every day
		w.note("  %s", strings.TrimSpace(string(out)))
		return
	}
	w.ok(err)
}

// put makes the disk hold a node.
func (w *world) put(path string, n Node) {
	w.t.Helper()
	full := filepath.Join(w.ws, filepath.FromSlash(path))
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.ok(err)
	}
	if n == (Node{}) {
		return
	}
	w.ok(os.MkdirAll(filepath.Dir(full), 0o755))
	if n.Link {
		w.ok(os.Symlink(n.Data, full))
		return
	}
	w.ok(os.WriteFile(full, []byte(n.Data), n.Mode))
	w.ok(os.Chmod(full, n.Mode))
}

// call is one call of a tool and what it does to the files.
type call struct {
	name    string
	input   map[string]any
	paths   []string // that its plan names
	command bool
	effect  func(Tree)
}

// turns plays calls, one reply of the model each, as the next words of a task; an empty
// id begins one. It gives the task's id.
func (w *world) turns(id string, turns ...[]call) string {
	w.t.Helper()
	type scripted struct {
		Text  string           `json:"text"`
		Tools []map[string]any `json:"tools,omitempty"`
	}
	var script []scripted
	if id != "" {
		var api []struct {
			Role string `json:"role"`
		}
		w.must(&api, "show", id, "--api", "--json")
		for _, m := range api { // the script's place is how many replies there are
			if m.Role == "assistant" {
				script = append(script, scripted{Text: "played"})
			}
		}
	}
	for _, calls := range turns {
		s := scripted{Text: "Now."}
		for _, c := range calls {
			s.Tools = append(s.Tools, map[string]any{"name": c.name, "input": c.input})
		}
		script = append(script, s)
	}
	script = append(script, scripted{Text: "Done.", Tools: []map[string]any{{"name": "attempt_completion", "input": map[string]any{"result": "done"}}}})
	text, err := json.Marshal(script)
	w.ok(err)
	file := filepath.Join(w.dir, "script.yaml")
	w.ok(os.WriteFile(file, text, 0o600))
	args := []string{"run", "--json", "--yes", "-C", w.ws, "--provider", "script", "--model", file, "go on"}
	if id != "" {
		args = []string{"resume", id, "--json", "--yes", "go on"}
	}
	r := w.roost(args...)
	if r.code != 0 {
		w.fatalf("the run ended with %d\n%s%s", r.code, r.out, r.err)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		var e struct {
			Type    string `json:"type"`
			Task    string `json:"task_id"`
			Outcome string `json:"outcome"`
			Name    string `json:"name"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.fatalf("%v: %s", err, line)
		}
		if e.Task != "" {
			id = e.Task
		}
		rewound := strings.Contains(line, "The user took the history back")
		if e.Type == "tool.finished" && e.Outcome != "ok" && e.Name != "read_file" && !rewound {
			w.fatalf("a call failed: %s", line)
		}
	}
	return id
}

func (w *world) read(a answer, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(a.out), into); err != nil {
		w.fatalf("%v: %s", err, a.out)
	}
}
