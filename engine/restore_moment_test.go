package engine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/history"
)

// oneReply changes three files in one reply: two by a tool each, the third by a command.
const oneReply = `
- tools:
  - {name: write_to_file, input: {path: a.txt, content: "by the first\n"}}
  - {name: write_to_file, input: {path: b.txt, content: "by the second\n"}}
  - {name: execute_command, input: {command: "echo by the third > c.txt"}}
  - {name: read_file, input: {path: a.txt}}
- tools: [{name: attempt_completion, input: {result: done}}]
`

// rewindFiles goes back to a message and lets Roo's files follow.
func (b *bench) rewindFiles(id, to string) api.RestoreResult {
	b.t.Helper()
	_, r, finish, err := b.engine.Checkpoints().RewindFiles(context.Background(), id, history.RewindOptions{To: to}, checkpoints.RestoreOptions{})
	if err == nil {
		err = finish(context.Background())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// rowsOf are the numbers of the rows that tell of calls.
func (b *bench) rowsOf(id string) (rows []int) {
	for i, m := range b.state(id).UI() {
		if kind := m.Kind(); kind == "ask:tool" || kind == "ask:command" {
			rows = append(rows, i+1)
		}
	}
	return rows
}

// A rewind into a reply puts back what the calls that go changed, and nothing of those
// whose outcomes stay. Undo gives everything back.
func TestRewindIntoAReplyWithFiles(t *testing.T) {
	for _, dir := range []string{"", "linked/"} { // the tools name files through a link to a folder, too
		b := newBench(t)
		b.put("a.txt", "a\n")
		b.put("mine.txt", "mine\n")
		if dir != "" {
			b.put("b.txt", "b\n")
			if err := os.Symlink(".", filepath.Join(b.workspace, "linked")); err != nil {
				t.Skip("links cannot be made here")
			}
		}
		before := b.files()
		run, outcome, _ := b.runScript(strings.ReplaceAll(oneReply, "path: ", "path: "+dir))
		wantOutcome(t, outcome, "completed", "")
		id, after := run.TaskID, b.files()
		rows := b.rowsOf(id)
		if len(rows) != 4 {
			t.Fatalf("rows %v", rows)
		}
		first := maps.Clone(before)
		first["a.txt"] = "by the first\n"
		second := maps.Clone(first)
		second["b.txt"] = "by the second\n"
		for i, stands := range []files{before, first, second, after} {
			r := b.rewindFiles(id, fmt.Sprintf("#%d", rows[i]))
			b.wantFiles(fmt.Sprintf("before call %d, %s", i+1, dir), stands)
			if len(r.Conflicts)+len(r.Lost)+len(r.Left) > 0 {
				t.Errorf("before call %d: %+v", i+1, r)
			}
			b.undo(id, false)
			b.wantFiles("undone", after)
		}
	}
}

// What a person took back is not done again when the task goes on, and what stands in the
// files since is not taken for the task's own.
func TestGoingOnAfterARewindIntoAReply(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "a\n")
	run, outcome, _ := b.runScript(oneReply)
	wantOutcome(t, outcome, "completed", "")
	id := run.TaskID
	b.rewindFiles(id, fmt.Sprintf("#%d", b.rowsOf(id)[1])) // the second call and what follows
	b.put("a.txt", "by a person\n")
	b.put("b.txt", "by a person, too\n")
	stands := b.files()
	more := "- text: played\n- tools: [{name: attempt_completion, input: {result: done}}]\n"
	_, outcome, _ = b.run(engine.Request{Task: id, Text: "do something else", Yes: true, Choice: setup.Choice{Model: b.script(more)}})
	wantOutcome(t, outcome, "completed", "")
	b.wantFiles("after the task went on", stands)
	s := b.state(id)
	for _, name := range []string{"call_1_2", "call_1_3"} {
		c := s.Call(name)
		if c == nil || c.Finished == nil || c.Finished.Outcome != "unknown" {
			t.Errorf("%s: got %+v, want c != nil and c.Finished != nil and c.Finished.Outcome = \"unknown\"", name, c)
		}
	}
	kept := b.restore(id, checkpoints.RestoreOptions{To: "0"})
	b.wantFiles("a restore leaves a person's files alone", stands)
	if len(kept.Conflicts) != 2 || len(kept.Files) != 0 {
		t.Errorf("got %+v, want len(kept.Conflicts) = 2 and len(kept.Files) = 0", kept)
	}
}
