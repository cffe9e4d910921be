package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// bench is an engine over a fresh root and workspace.
type bench struct {
	t         *testing.T
	root      string
	workspace string
	store     *store.Store
	engine    *engine.Engine
}

func newBench(t *testing.T, sources ...string) *bench {
	t.Helper()
	b := &bench{t: t, root: filepath.Join(t.TempDir(), "root"), workspace: t.TempDir()}
	s, err := store.Open(store.Options{Root: b.root, State: b.root + ".state", Sources: sources, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.store = s
	b.engine = engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	t.Cleanup(func() {
		if err := b.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) script(text string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// run starts a request and waits for its end.
func (b *bench) run(r engine.Request) (*engine.Run, engine.Outcome, []events.Event) {
	b.t.Helper()
	if r.Workspace == "" && r.Task == "" {
		r.Workspace = b.workspace
	}
	run, err := b.engine.Start(context.Background(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var events []events.Event
	for e := range run.Events(ctx) {
		events = append(events, e)
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return run, outcome, events
}

func (b *bench) state(id string) *task.State {
	b.t.Helper()
	ref, err := b.store.Find(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := b.store.Read(context.Background(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { v.Close() })
	return v.State
}

const writeAndFinish = `
- text: I will write the file.
  reasoning: A file is asked for.
  tools:
    - name: write_to_file
      input: {path: hello.txt, content: "hello\n"}
  usage: {input: 100, output: 20}
- text: Now look at it.
  tools:
    - name: read_file
      input: {path: hello.txt}
    - name: execute_command
      input: {command: "echo run >> ran.txt; cat hello.txt"}
- tools:
    - name: attempt_completion
      input: {result: "Written."}
`

func TestRunCompletesAndRoosFilesSayTheSame(t *testing.T) {
	b := newBench(t)
	run, outcome, events := b.run(engine.Request{
		Text:   "write hello",
		Choice: setup.Choice{Provider: "script", Model: b.script(writeAndFinish), Approve: "all"},
	})
	if outcome.State != "completed" {
		t.Fatalf("outcome %+v", outcome)
	}
	got, err := os.ReadFile(filepath.Join(b.workspace, "hello.txt"))
	if err != nil || string(got) != "hello\n" {
		t.Fatalf("file %q, %v", got, err)
	}
	s := b.state(run.TaskID)
	if len(s.UI()) == 0 || len(s.API()) != 6 {
		t.Fatalf("ui %d, api %d", len(s.UI()), len(s.API()))
	}
	dir := filepath.Join(b.root, "tasks", run.TaskID)
	for name, n := range map[string]int{"ui_messages.json": len(s.UI()), "api_conversation_history.json": len(s.API())} {
		var list []json.RawMessage
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &list); err != nil || len(list) != n {
			t.Fatalf("%s: %d messages, want %d, %v", name, len(list), n, err)
		}
	}
	last := events[len(events)-1]
	if last.Type != "run.ended" || !strings.Contains(string(last.Data), `"outcome":"completed"`) {
		t.Fatalf("last event %s", last.Data)
	}
	seen := map[string]bool{}
	for _, e := range events {
		if e.ID != "" && seen[e.ID] {
			t.Fatalf("event %s came twice", e.ID)
		}
		seen[e.ID] = true
		if !json.Valid(e.Data) {
			t.Fatalf("event is not JSON: %s", e.Data)
		}
	}
}
