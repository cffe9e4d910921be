package task_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// holds is a file with a content that is known by a letter.
func holds(content string) api.FileVersion {
	if content == "" {
		return api.FileVersion{Kind: api.KindGone}
	}
	return api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: 1, Hash: strings.Repeat(content, 64), Blob: strings.Repeat(content, 40)}
}

// saved is a checkpoint: "path=was>now" or "path=now".
func saved(number int, reason string, files ...string) task.CheckpointSaved {
	c := task.CheckpointSaved{Number: number, Reason: reason, Title: fmt.Sprint("number ", number)}
	for _, f := range files {
		path, what, _ := strings.Cut(f, "=")
		one := task.CheckpointFile{Path: path}
		if was, now, ok := strings.Cut(what, ">"); ok {
			v := holds(was)
			one.Was, what = &v, now
		}
		one.Now = holds(what)
		c.Files = append(c.Files, one)
	}
	return c
}

// putBack are files of a restore: "path=from>to".
func putBack(files ...string) []task.RestoreFile {
	var out []task.RestoreFile
	for _, f := range files {
		path, what, _ := strings.Cut(f, "=")
		from, to, _ := strings.Cut(what, ">")
		out = append(out, task.RestoreFile{Path: path, From: holds(from), To: holds(to), How: task.HowRestore})
	}
	return out
}

// anyCheckpointEvent draws an event of checkpoints that may or may not fit the state.
func anyCheckpointEvent(t *rapid.T, name string, id uint64) task.Event {
	number := rapid.IntRange(0, 9).Draw(t, "number")
	files := putBack(name+"=a>b", "x=>c")
	switch rapid.IntRange(0, 5).Draw(t, "checkpoint event") {
	case 0, 1, 2:
		reason := rapid.SampledFrom([]string{task.ReasonBefore, task.ReasonTurn, task.ReasonRestored, task.ReasonSafety}).Draw(t, "reason")
		c := saved(number, reason, name+"=a>b", "x=c")
		c.Message = id
		return c
	case 3:
		return task.RestoreBegun{Restore: name, To: number, Safety: number, Files: files, Rewind: []byte(`{"type":"history.undone","undoes":3}`), Undoes: id}
	}
	outcome := rapid.SampledFrom([]string{task.RestoreDone, task.RestoreDone, task.RestoreRolledBack}).Draw(t, "outcome")
	e := task.RestoreEnded{Restore: name, Outcome: outcome}
	if rapid.Bool().Draw(t, "left one") {
		e.Left = []string{"x"}
	}
	switch rapid.IntRange(0, 3).Draw(t, "undoes") {
	case 0:
		e.Undoes = id
	case 1:
		e.Redoes = id
	}
	return e
}

// list says checkpoints in short.
func checkpoints(s *task.State) string {
	var out []string
	for _, c := range s.Checkpoints {
		one := fmt.Sprintf("c%d %s@%d", c.Number, c.Reason, c.Seq)
		for _, f := range c.Files {
			one += " " + f.Path
		}
		out = append(out, one)
	}
	return strings.Join(out, "; ")
}

func TestCheckpointsAreListedInOrder(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}).then(saved(1, "before", "a=a")).then(saved(2, "turn", "a=b"), saved(4, "manual"))
	if got := checkpoints(w.State); got != "c1 before@2 a; c2 turn@3 a; c4 manual@3" || w.NextCheckpoint() != 5 {
		t.Errorf("%s, next %d", got, w.NextCheckpoint())
	}
	for _, n := range []int{4, 3, 0, -1, 1 << 40} {
		if err := w.try(saved(n, "turn", "a=c")); err == nil {
			t.Errorf("number %d after 4 was taken", n)
		}
	}
	if c := w.Checkpoint(2); c == nil || c.At != 1003 || w.Checkpoint(3) != nil || len(w.Checkpoints) != 3 {
		t.Errorf("got %+v, want c != nil and c.At = 1003 and w.Checkpoint(3) = nil and len(w.Checkpoints) = 3", c)
	}
	if d := cmp.Diff(dump(w.State), dump(w.restored(0))); d != "" {
		t.Error(d)
	}
}

// While a restore is open the task is restoring; a rolled back one leaves no trace but
// its two events, one that is done leaves a checkpoint and an action.
func TestARestoreEnds(t *testing.T) {
	begun := task.RestoreBegun{Restore: "r", To: 1, Safety: 2, Files: putBack("a=b>a", "b=c>")}
	before := func() *foldedLog {
		safety := saved(2, "safety", "a=b")
		safety.Message, safety.Store = 7, "ws-1"
		return tell(t, task.Created{Task: "t"}).then(saved(1, "before", "a=a")).then(safety).then(begun)
	}
	w := before()
	if r := w.Restoring; r == nil || r.Seq != 4 || r.At != 1004 || len(r.Files) != 2 {
		t.Fatalf("got %+v, want r != nil and r.Seq = 4 and r.At = 1004 and len(r.Files) = 2", r)
	}
	if r := w.restored(0).Restoring; r == nil || r.Restore != "r" {
		t.Fatalf("a snapshot forgets it: %+v", r)
	}
	if w.then(task.RestoreEnded{Restore: "r", Outcome: task.RestoreRolledBack}); w.Restoring != nil || len(w.Checkpoints) != 2 || len(w.Actions.Done) != 0 {
		t.Errorf("rolled back: %s %+v", checkpoints(w.State), w.Actions)
	}
	w = before().then(task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone, Files: 1, Left: []string{"b"}})
	last := w.Checkpoint(3)
	if w.Restoring != nil || last == nil || last.Reason != task.ReasonRestored || last.Message != 7 || last.Store != "ws-1" || len(last.Files) != 1 ||
		!last.Files[0].Was.Same(holds("b")) || !last.Files[0].Now.Same(holds("a")) {
		t.Errorf("done: %s", checkpoints(w.State))
	}
	if d := w.Actions.Done; len(d) != 1 || d[0].Kind != "restore" || d[0].Move || d[0].Seq != 5 || len(d[0].Files) != 1 || d[0].To != 1 || d[0].Safety != 2 {
		t.Errorf("got %+v, want len(d) = 1 and d[0].Kind = \"restore\" and not d[0].Move and d[0].Seq = 5 and len(d[0].Files) = 1 and d[0].To = 1 and d[0].Safety = 2",
			d)
	}
	// An end without its beginning, which was lost, ends nothing and is no action.
	if w = before().then(task.RestoreEnded{Restore: "another", Outcome: task.RestoreDone}); w.Restoring == nil || len(w.Actions.Done) != 0 {
		t.Errorf("got %+v, want w.Restoring != nil and len(w.Actions.Done) = 0", w.Restoring)
	}
}

// The commit that the object store got for what a restore made is told by an event in
// the same commit, on either side of the end; the number is one all the same.
func TestACommitForWhatARestoreMade(t *testing.T) {
	for _, after := range []bool{false, true} {
		said := saved(2, "restored", "a=b>a")
		said.Commit = "abc"
		end := task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone}
		events := []task.Event{said, end}
		if after {
			events = []task.Event{end, said}
		}
		w := tell(t, saved(1, "safety", "a=b")).then(task.RestoreBegun{Restore: "r", Files: putBack("a=b>a")}).then(events...)
		if got := checkpoints(w.State); got != "c1 safety@1 a; c2 restored@3 a" || w.Checkpoint(2).Commit != "abc" {
			t.Errorf("after %t: %s", after, got)
		}
	}
}

// Undo and redo of a restore are intents of their own; what they changed is what the
// next one starts from.
func TestARestoreGoesBackAndForth(t *testing.T) {
	w := tell(t, saved(1, "safety", "a=b", "b=b")).then(task.RestoreBegun{Restore: "r", To: 0, Safety: 1, Files: putBack("a=b>a", "b=b>c")}).
		then(task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone})
	action := w.Actions.Done[0]
	back, ok := action.Back().(task.RestoreBegun)
	if d := cmp.Diff(putBack("a=a>b", "b=c>b"), back.Files); !ok || d != "" || back.Undoes != 3 || back.Rewind != nil {
		t.Fatalf("got %+v %s, want ok and d = \"\" and back.Undoes = 3 and back.Rewind = nil", back, d)
	}
	back.Restore = "u"
	w.then(back).then(task.RestoreEnded{Restore: "u", Outcome: task.RestoreDone, Undoes: 3, Left: []string{"b"}})
	if len(w.Actions.Done) != 0 || len(w.Actions.Undone) != 1 {
		t.Fatalf("got %+v, want len(w.Actions.Done) = 0 and len(w.Actions.Undone) = 1", w.Actions)
	}
	again, ok := w.Actions.Undone[0].Again().(task.RestoreBegun)
	if d := cmp.Diff(putBack("a=b>a"), again.Files); !ok || d != "" || again.Redoes != 3 {
		t.Fatalf("got %+v %s, want ok and d = \"\" and again.Redoes = 3", again, d)
	}
	again.Restore = "a"
	w.then(again).then(task.RestoreEnded{Restore: "a", Outcome: task.RestoreDone, Redoes: 3})
	if len(w.Actions.Done) != 1 || len(w.Actions.Undone) != 0 || w.Actions.Done[0].Then != 7 {
		t.Errorf("got %+v, want len(w.Actions.Done) = 1 and len(w.Actions.Undone) = 0 and w.Actions.Done[0].Then = 7",
			w.Actions)
	}
	if got := checkpoints(w.State); got != "c1 safety@1 a b; c2 restored@3 a b; c3 restored@5 a; c4 restored@7 a" {
		t.Error(got)
	}
	if n := len(action.Files); n != 2 {
		t.Errorf("a copy of the action was changed: %d files", n)
	}
	// An undo that found nothing to change any more can still be done again, as nothing.
	w.then(task.RestoreBegun{Restore: "x", Undoes: 3}).then(task.RestoreEnded{Restore: "x", Outcome: task.RestoreDone, Undoes: 3})
	if e, ok := w.Actions.Undone[0].Again().(task.RestoreBegun); !ok || len(e.Files) != 0 {
		t.Errorf("got %+v, want ok and len(e.Files) = 0", w.Actions.Undone[0].Again())
	}
}

// A rewind with files is one action, whichever of its two events comes first, and is taken
// back in one go.
func TestARewindWithFilesIsOneAction(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "a")), ui(2, say(2, "b"))).then(saved(1, "safety", "a=b"))
		cut := task.Rewound{Why: "rewind", To: 2, Hide: []task.Run64{{2, 2}}}
		line, err := task.Encode(cut)
		if err != nil {
			t.Fatal(err)
		}
		w.then(task.RestoreBegun{Restore: "r", To: 0, Safety: 1, Files: putBack("a=b>a"), Rewind: line})
		events := []task.Event{cut, task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone}}
		if !first {
			slices.Reverse(events)
		}
		w.then(events...)
		d := w.Actions.Done
		if len(d) != 1 || d[0].Kind != "rewind" || !d[0].Move || len(d[0].Files) != 1 || d[0].Safety != 1 || d[0].Gone.UI != 1 || w.Actions.Last != w.Seq {
			t.Fatalf("got %+v, want len(d) = 1 and d[0].Kind = \"rewind\" and d[0].Move and len(d[0].Files) = 1 and d[0].Safety = 1 and d[0].Gone.UI = 1 and w.Actions.Last = w.Seq",
				d)
		}
		back := d[0].Back().(task.RestoreBegun)
		move, err := task.Decode(back.Rewind)
		if err != nil || move != (task.Undone{Undoes: d[0].Seq}) {
			t.Fatalf("%s: got %v, want no error and move = (task.Undone{Undoes: d[0].Seq})", back.Rewind, err)
		}
		back.Restore = "u"
		w.then(back).then(task.RestoreEnded{Restore: "u", Outcome: task.RestoreDone, Undoes: back.Undoes}, move)
		if len(w.UI()) != 2 || len(w.Actions.Done) != 0 || len(w.Actions.Undone) != 1 || w.Moved > w.Actions.Undone[0].Then {
			t.Errorf("%d rows, %+v", len(w.UI()), w.Actions)
		}
		if d := cmp.Diff(dump(w.State), dump(w.restored(0))); d != "" {
			t.Error(d)
		}
	}
}

// Taking a restore back is refused as a whole only where the task itself changed one of
// its files since; restores above it, and what they saved, do not count.
func TestTheTaskChangedAFileSinceARestore(t *testing.T) {
	w := tell(t, saved(1, "turn", "a=b")).then(saved(2, "safety", "a=b")).then(task.RestoreBegun{Restore: "r", Safety: 2, Files: putBack("a=b>a")}).
		then(task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone})
	since := func() string {
		n, path := w.ChangedSince(w.Actions.Done[0])
		return fmt.Sprint(n, " ", path)
	}
	w.then(saved(4, "before", "z=z"))
	w.then(saved(5, "safety", "a=c"), saved(6, "manual", "a=c"))
	if got := since(); got != "0 " {
		t.Errorf("another file, and what others did: %s", got)
	}
	if w.then(saved(7, "before", "z=z", "a=a")); since() != "7 a" {
		t.Errorf("its file: %s", since())
	}
}

func TestTheCheckpointOfAMessage(t *testing.T) {
	at := func(n int, message uint64) task.CheckpointSaved {
		c := saved(n, "turn", "a=a")
		c.Message = message
		return c
	}
	w := tell(t, task.Created{Task: "t"})
	for id := uint64(1); id <= 6; id++ {
		w.then(apiMessage(id, assistant()))
	}
	w.then(at(1, 2)).then(at(2, 4), at(3, 4)).then(at(4, 6))
	for message, want := range map[uint64]int{1: 0, 2: 1, 3: 1, 4: 3, 5: 3, 6: 4, 99: 4} {
		if got := w.CheckpointAt(message); got != want {
			t.Errorf("at message %d it is c%d, not c%d", message, got, want)
		}
	}
	byHand := tell(t, at(1, 2)).then(saved(2, "safety", "a=b"), saved(3, "restored", "a=b>a"), at(4, 5))
	byHand.Checkpoints[1].Message, byHand.Checkpoints[2].Message = 2, 2
	for message, want := range map[uint64]int{1: 0, 2: 1, 3: 3, 5: 4} {
		if got := byHand.CheckpointAt(message); got != want {
			t.Errorf("after a restore, at message %d it is c%d, not c%d", message, got, want)
		}
	}
	w.then(task.Rewound{Why: "rewind", To: 4, Hide: []task.Run64{{4, 6}}})
	var gone []int
	for _, c := range w.Checkpoints {
		if w.RewoundCheckpoint(c) {
			gone = append(gone, c.Number)
		}
	}
	if d := cmp.Diff([]int{2, 3, 4}, gone); d != "" {
		t.Error(d)
	}
	if w.then(task.Undone{Undoes: w.Seq}); w.RewoundCheckpoint(w.Checkpoints[3]) {
		t.Error("it stays rewound when the rewind is taken back")
	}
}

// A fork knows what the files were, but is not in the middle of the other one's restore.
func TestAForkKeepsCheckpoints(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}).then(saved(1, "turn", "a=a")).then(task.RestoreBegun{Restore: "r", Files: putBack("a=a>b")}).
		then(task.Forked{Task: "f", From: "t", Seq: 3}).then(saved(2, "turn", "a=b"))
	if got := checkpoints(w.State); w.Restoring != nil || got != "c1 turn@2 a; c2 turn@5 a" {
		t.Errorf("got %+v %s, want w.Restoring = nil and got = \"c1 turn@2 a; c2 turn@5 a\"", w.Restoring, got)
	}
}

func TestSameVersions(t *testing.T) {
	file := holds("a")
	other := func(f func(*api.FileVersion)) api.FileVersion { v := file; f(&v); return v }
	for name, c := range map[string]struct {
		a, b api.FileVersion
		want bool
	}{
		"equal":              {file, file, true},
		"kept or not":        {file, other(func(v *api.FileVersion) { v.Blob = "" }), true},
		"another mode":       {file, other(func(v *api.FileVersion) { v.Mode = 0o600 }), false},
		"another content":    {file, holds("b"), false},
		"never read":         {other(func(v *api.FileVersion) { v.Hash = "" }), other(func(v *api.FileVersion) { v.Hash = "" }), false},
		"a link, not a file": {file, other(func(v *api.FileVersion) { v.Kind = api.KindLink }), false},
		"gone with folders":  {holds(""), api.FileVersion{Kind: api.KindGone, Dirs: 2}, true},
		"gone, a file":       {holds(""), file, false},
	} {
		if got := c.a.Same(c.b); got != c.want || c.b.Same(c.a) != got {
			t.Errorf("%s: got %t, want got = %v and c.b.Same(c.a) = got", name, got, c.want)
		}
	}
}

// Hashes come again in a snapshot as numbers: a long task's stays small.
func TestCheckpointsInASnapshotAreSmall(t *testing.T) {
	size := func(n int) int {
		w := tell(t, task.Created{Task: "t"})
		for i := range n {
			w.then(saved(i+1, "turn", "src/main.go=a>b", "src/other.go=b>a"))
		}
		data, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	if each := (size(220) - size(20)) / 200; each > 80 {
		t.Errorf("%d bytes each", each)
	}
}
