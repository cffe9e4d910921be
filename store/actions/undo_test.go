package actions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

// kinds are the actions of a list, the next one first.
func kinds(list []api.Action) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Kind)
	}
	return strings.Join(out, " ")
}

// Whatever is done to an own and to another tool's task, both go back and forth alike,
// step by step, through deletions too; every step is found by a store that was just
// opened, and the other tool's folder is never touched.
func TestUndoProperty(t *testing.T) {
	storetest.SkipInShort(t)
	rapid.Check(t, func(r *rapid.T) {
		storage, _ := storetest.RooStorage(t, "theirs")
		root := t.TempDir()
		createUntitled(t, storetest.Open(t, root), "mine")
		before := storetest.Tree(t, storage)
		own := map[string]string{"mine": "mine", "theirs": "do it"}
		var was, again []string // what a task was before each deed, and comes to again
		now := "- [] false false"
		for range rapid.IntRange(1, 7).Draw(r, "steps") {
			act := rapid.SampledFrom([]string{"undo", "undo", "redo", "rename", "reset", "tag", "pin", "delete"}).Draw(r, "act")
			title, gone := strings.Fields(now)[0], strings.HasSuffix(now, "true")
			next := now
			switch {
			case act == "undo" && len(was) > 0:
				next, was, again = was[len(was)-1], was[:len(was)-1], append(again, now)
			case act == "redo" && len(again) > 0:
				next, was, again = again[len(again)-1], append(was, now), again[:len(again)-1]
			case act == "undo" || act == "redo":
			case gone:
				act = ""
			case act == "rename" && title != "named":
				next = strings.Replace(now, title, "named", 1)
			case act == "reset" && title == "named":
				next = strings.Replace(now, title, "-", 1)
			case act == "tag":
				tag := rapid.SampledFrom([]string{"x", "y"}).Draw(r, "tag")
				if act = "tag " + tag; !strings.Contains(now, tag) {
					next = strings.NewReplacer("[]", "["+tag+"]", "]", " "+tag+"]").Replace(now)
				}
			case act == "pin":
				next = strings.Replace(now, "] false", "] true", 1)
			case act == "delete":
				next = strings.TrimSuffix(now, "false") + "true"
			}
			if next != now && act != "undo" && act != "redo" {
				was, again = append(was, now), nil
			}
			for id := range own {
				s := storetest.Open(t, root, storage)
				word, tag, _ := strings.Cut(act, " ")
				var err error
				switch word {
				case "undo", "redo":
					if _, _, err = actions.Undo(context.Background(), s, id, actions.Options{Redo: word == "redo"}); next == now && errors.Is(err, actions.ErrNothing) {
						err = nil
					}
				case "rename":
					storetest.Label(t, s, id, labels.Change{Title: new("named")})
				case "reset":
					storetest.Label(t, s, id, labels.Change{Untitled: true})
				case "tag":
					storetest.Label(t, s, id, labels.Change{Add: []string{tag}})
				case "pin":
					storetest.Label(t, s, id, labels.Change{Pinned: new(true)})
				case "delete":
					storetest.Delete(t, s, id)
				}
				d, derr := actions.Find(context.Background(), s, id)
				if err = errors.Join(err, derr); err != nil {
					r.Fatalf("%s of %s: %v", act, id, err)
				}
				title := d.Task.Title
				if title == own[id] {
					title = "-"
				}
				if got := fmt.Sprintf("%s %v %v %v", title, d.Task.Tags, d.Task.Pinned, d.Trashed); got != next && act != "" {
					r.Fatalf("%s of %s: %s, want %s", act, id, got, next)
				}
				if len(d.Undo) != len(was) || len(d.Redo) != len(again) {
					r.Fatalf("%s of %s: undo %s, redo %s; want %d, %d", act, id, kinds(d.Undo), kinds(d.Redo), len(was), len(again))
				}
			}
			now = next
		}
		if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
			r.Error(d)
		}
	})
}

// Looking for what could be taken back changes nothing, and neither does a dry run.
func TestUndoDryRun(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	for _, id := range []string{"mine", "theirs"} {
		storetest.Label(t, s, id, labels.Change{Title: new("one")})
		storetest.Delete(t, s, id)
		before := storetest.Tree(t, root)
		deed, d, err := actions.Undo(context.Background(), s, id, actions.Options{DryRun: true})
		if err != nil || deed.Kind != "delete" || !d.Trashed || kinds(d.Undo) != "delete rename" {
			t.Errorf(`%s: got %+v %v, want no error and deed.Kind = "delete" and d.Trashed and kinds(d.Undo) = "delete rename"`,
				id, deed, err)
		}
		if _, _, err := actions.Undo(context.Background(), s, id, actions.Options{DryRun: true, Redo: true}); !errors.Is(err, actions.ErrNothing) {
			t.Error(err)
		}
		if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
			t.Error(d)
		}
	}
	before := storetest.Tree(t, root)
	all := storetest.Must[[]api.TaskActions](t)(actions.FindAll(context.Background(), s, 0))
	if len(all) != 2 || !strings.HasSuffix(all[0].Name+all[1].Name, ":theirs") {
		t.Errorf("%d tasks", len(all))
	}
	if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
		t.Error(d)
	}
}

// A change that is on disk has not failed because Roo's files cannot be written: who repeats an undo undoes one more.
func TestAChangeWhoseFilesCannotBeWritten(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	file := filepath.Join(root, "tasks", "mine", roofmt.UIName)
	storetest.Check(t, os.Remove(file))
	storetest.Check(t, os.MkdirAll(filepath.Join(file, "in the way"), 0o700))
	for _, title := range []string{"one", "two"} {
		if got := storetest.Label(t, s, "mine", labels.Change{Title: &title}); got.Title != title {
			t.Errorf("got the title %q, want %q", got.Title, title)
		}
	}
	for _, redo := range []bool{false, true} {
		deed, d, err := actions.Undo(context.Background(), s, "mine", actions.Options{Redo: redo})
		if err != nil || deed.Kind != "rename" || len(d.Undo)+len(d.Redo) != 2 {
			t.Errorf("redo %v: got %+v, %d to undo, %d to redo, %v, want one of two renames and no error", redo, deed, len(d.Undo), len(d.Redo), err)
		}
	}
}

// Somebody does something between looking and taking back: their change stays.
func TestUndoMeanwhile(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	storetest.Close(t, storetest.Create(t, storetest.Open(t, root), "mine"))
	for _, id := range []string{"mine", "theirs"} {
		s, other := storetest.Open(t, root, storage), storetest.Open(t, root, storage)
		storetest.Label(t, s, id, labels.Change{Title: new("one")})
		seen := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, id)).Undo[0].ID
		storetest.Label(t, other, id, labels.Change{Title: new("two")})
		var changed *actions.ConflictError
		if _, _, err := actions.Undo(context.Background(), s, id, actions.Options{Only: seen}); !errors.As(err, &changed) || changed.Want != seen || changed.Next == "" {
			t.Errorf("%s: got %v, want errors.As(err, &changed) and changed.Want = seen and changed.Next != \"\"",
				id, err)
		}
		if got := storetest.View(t, s, id).Summary.Title; got != "two" {
			t.Errorf("%s: got %s, want got = \"two\"", id, got)
		}
		// What was looked at is decided again once the log is held.
		d := storetest.Must[actions.Found](t)(actions.Look(context.Background(), s, id))
		storetest.Undo(t, other, id, false)
		storetest.Label(t, other, id, labels.Change{Pinned: new(true)})
		o := actions.Options{Only: d.Undo[0].ID}
		if err := actions.CheckNext(context.Background(), s, &d, o); !errors.As(err, &changed) {
			t.Errorf("%s: got %v, want errors.As(err, &changed)", id, err)
		}
		if id == "mine" {
			if err := actions.PerformInJournal(context.Background(), s, &d, o); !errors.As(err, &changed) {
				t.Error(err)
			}
		}
		if got := storetest.Labels(storetest.View(t, s, id).Summary); got != "one [] true" {
			t.Errorf("%s: got %s, want got = \"one [] true\"", id, got)
		}
		// Two take back the same at once: one does, the other hears of it.
		storetest.Delete(t, s, id)
		gone := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, id))
		storetest.Must[store.Ref](t)(trash.Restore(context.Background(), other, id))
		if _, _, err := actions.Undo(context.Background(), s, id, actions.Options{Only: gone.Undo[0].ID}); !errors.As(err, &changed) {
			t.Errorf("%s: got %v, want errors.As(err, &changed)", id, err)
		}
	}
}

// An undo in a task of the root chooses the action once no other process can write: what comes before that is the
// action, and nothing comes in between.
func TestUndoChoosesUnderTheLock(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	s, other := storetest.Open(t, root), storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	storetest.Label(t, s, "mine", labels.Change{Title: new("one")})
	storetest.Label(t, other, "mine", labels.Change{Title: new("two")})
	var between error
	action, _, err := actions.Undo(ctx, s, "mine", actions.Options{Next: func(api.Action) {
		_, between = other.Own(ctx, storetest.Find(t, other, "mine"))
	}})
	storetest.Check(t, err)
	if busy, is := errors.AsType[*journal.BusyError](between); !is {
		t.Errorf("got %v, want a *journal.BusyError: %v", between, busy)
	}
	if title := action.To.Title; title == nil || *title != "two" {
		t.Errorf("got %+v undone, want the rename to two", action)
	}
	if got := storetest.View(t, s, "mine").Summary.Title; got != "one" {
		t.Errorf("got %q, want one", got)
	}
	// What was undone is not the action that a caller meant who looked before: the task stays as it is, and free.
	storetest.Label(t, other, "mine", labels.Change{Pinned: new(true)})
	if _, _, err := actions.Undo(ctx, s, "mine", actions.Options{Only: action.ID}); !errors.As(err, new(*actions.ConflictError)) {
		t.Errorf("got %v, want an *actions.ConflictError", err)
	}
	storetest.Close(t, storetest.Own(t, other, "mine").Task)
	if got := storetest.Labels(storetest.View(t, s, "mine").Summary); got != "one [] true" {
		t.Errorf("got %s, want one [] true", got)
	}
}

// A task that is owned is not touched, and one whose place is taken stays in the trash.
func TestUndoThatCannotBe(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	storetest.Label(t, s, "mine", labels.Change{Title: new("one")})
	k := storetest.Own(t, s, "mine").Task
	var busy *journal.BusyError
	if _, _, err := actions.Undo(context.Background(), s, "mine", actions.Options{}); !errors.As(err, &busy) {
		t.Error(err)
	}
	storetest.Close(t, k)
	storetest.Delete(t, s, "mine")
	dir := filepath.Join(root, "tasks", "mine")
	storetest.Check(t, os.MkdirAll(filepath.Join(dir, "kept"), 0o700))
	before := storetest.Tree(t, filepath.Join(root, "trash"))
	// By its id it is the one that stands there, by its name the deleted one.
	if _, _, err := actions.Undo(context.Background(), s, "mine", actions.Options{}); !errors.Is(err, actions.ErrNothing) {
		t.Error(err)
	}
	if _, err := trash.Restore(context.Background(), s, "mine"); !errors.Is(err, trash.ErrTaken) {
		t.Error(err)
	}
	if d := cmp.Diff(before, storetest.Tree(t, filepath.Join(root, "trash"))); d != "" || !storetest.Exists(dir, "kept") {
		t.Error(d)
	}
	// An empty folder is nothing: Roo makes one whenever it looks for a task.
	storetest.Check(t, os.Remove(filepath.Join(dir, "kept")))
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "mine"))
	if got := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, "mine")); kinds(got.Undo) != "rename" || kinds(got.Redo) != "delete" {
		t.Errorf(`got %+v, want kinds(got.Undo) = "rename" and kinds(got.Redo) = "delete"`, got)
	}
	if _, err := actions.Find(context.Background(), s, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// A file or a link under the task's id is not removed by a restore.
func TestRestoreOntoSomethingElse(t *testing.T) {
	for name, make := range map[string]func(string) error{
		"a file":      func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) },
		"a link":      func(p string) error { return os.Symlink(t.TempDir(), p) },
		"a dead link": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		root := t.TempDir()
		s := storetest.Open(t, root)
		storetest.Close(t, storetest.Create(t, s, "mine"))
		storetest.Delete(t, s, "mine")
		storetest.Check(t, make(filepath.Join(root, "tasks", "mine")))
		if _, err := trash.Restore(context.Background(), s, "roost:mine"); !errors.Is(err, trash.ErrTaken) {
			t.Errorf("%s: got %v, want errors.Is(err, trash.ErrTaken)", name, err)
		}
		if !storetest.Exists(filepath.Join(root, "tasks"), "mine") || storetest.TrashNames(t, s) != "mine" {
			t.Errorf("%s was removed", name)
		}
	}
}

// Where the task lies is what counts, whatever became of the marks: killed between mark
// and move, or without an overlay at all.
func TestDeletionsAreToldByThePlace(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	storetest.Label(t, s, "mine", labels.Change{Title: new("one")})
	dir, bin := filepath.Join(root, "tasks", "mine"), filepath.Join(root, "trash", "mine")
	storetest.Delete(t, s, "mine")
	storetest.Check(t, os.Rename(bin, dir)) // as if it had never moved
	if got := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, "mine")); kinds(got.Undo) != "rename" || kinds(got.Redo) != "" || got.Trashed {
		t.Errorf(`got %+v, want kinds(got.Undo) = "rename" and kinds(got.Redo) = "" and not got.Trashed`, got)
	}
	storetest.Check(t, os.Rename(dir, bin))
	storetest.Check(t, os.RemoveAll(filepath.Join(root, "overlay")))
	got := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, "mine"))
	if kinds(got.Undo) != "delete rename" || got.Undo[0].At != nil || !got.Trashed {
		t.Errorf("got %+v, want kinds(got.Undo) = \"delete rename\" and got.Undo[0].At = nil and got.Trashed", got)
	}
	if deed := storetest.Undo(t, s, "mine", false); deed.Kind != "delete" || !storetest.Exists(dir, "journal.jsonl") {
		t.Errorf(`got %+v, want deed.Kind = "delete" and storetest.Exists(dir, "journal.jsonl")`, deed)
	}
}

// What was done in one log ends what could be done again in the other.
func TestDeedsOfTwoLogs(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	storetest.Close(t, storetest.Create(t, s, "mine"))
	say := func(want string) {
		t.Helper()
		d := storetest.Must[api.TaskActions](t)(actions.Find(context.Background(), s, "mine"))
		if got := kinds(d.Undo) + " | " + kinds(d.Redo); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	storetest.Label(t, s, "mine", labels.Change{Title: new("one")})
	storetest.Label(t, s, "mine", labels.Change{Pinned: new(true)})
	storetest.Undo(t, s, "mine", false)
	say("rename | pin")
	storetest.Delete(t, s, "mine")
	say("delete rename | ")
	storetest.Undo(t, s, "mine", false)
	say("rename | delete") // the pin is out of reach: the "delete" came after it
	storetest.Undo(t, s, "mine", false)
	say(" | rename delete")
	storetest.Undo(t, s, "mine", true)
	storetest.Undo(t, s, "mine", true)
	say("delete rename | ")
	storetest.Undo(t, s, "mine", false)
	storetest.Label(t, s, "mine", labels.Change{Add: []string{"new"}})
	say("tag rename | ")
}

// A list of what can be taken back holds every task once, newest first, and leaves out
// those that nothing was done to.
func TestAllDeeds(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	at := int64(storetest.TS0)
	s := storetest.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Sources: []string{storage}, Now: func() int64 { at += 1000; return at }}))
	var want []string
	for i := range 5 {
		id := fmt.Sprintf("task%d", i)
		storetest.Close(t, storetest.Create(t, s, id))
		if i > 1 {
			storetest.Label(t, s, id, labels.Change{Add: []string{"x"}})
			want = append(want, id)
		}
	}
	storetest.Label(t, s, "theirs", labels.Change{Pinned: new(true)})
	storetest.Delete(t, s, "task3")
	want = append(slices.DeleteFunc(want, func(id string) bool { return id == "task3" }), "theirs", "task3")
	slices.Reverse(want)
	for limit := range 6 {
		var got []string
		for _, d := range storetest.Must[[]api.TaskActions](t)(actions.FindAll(context.Background(), s, limit)) {
			got = append(got, d.Task.ID)
		}
		if w := want[:min(max(limit, len(want)*(1-min(limit, 1))), len(want))]; !slices.Equal(got, w) {
			t.Errorf("%d: %v, want %v", limit, got, w)
		}
	}
}

// createUntitled makes a task of ours that has no title but its first message.
func createUntitled(t testing.TB, s *store.Store, id string) {
	t.Helper()
	k := storetest.Must[*store.Task](t)(s.Create(context.Background(), task.Created{Task: id, Number: 1, CreatedAt: storetest.TS0}))
	storetest.Commit(t, k, task.UI, storetest.UIRow(1, id))
	storetest.Close(t, k)
}
