package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

func undo(t testing.TB, s *Store, id string, redo bool) Deed {
	t.Helper()
	deed, _, err := s.Undo(context.Background(), id, UndoOptions{Redo: redo})
	check(t, err)
	return deed
}

// kinds are the deeds of a list, the next one first.
func kinds(list []Deed) string {
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
	slow(t)
	rapid.Check(t, func(r *rapid.T) {
		storage, _ := rooStorage(t, "theirs")
		root := t.TempDir()
		check(t, createAndClose(context.Background(), open(t, root), "mine"))
		before := tree(t, storage)
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
				s := open(t, root, storage)
				word, tag, _ := strings.Cut(act, " ")
				var err error
				switch word {
				case "undo", "redo":
					if _, _, err = s.Undo(context.Background(), id, UndoOptions{Redo: word == "redo"}); next == now && errors.Is(err, ErrNothing) {
						err = nil
					}
				case "rename":
					label(t, s, id, Labels{Title: ptr("named")})
				case "reset":
					label(t, s, id, Labels{Untitled: true})
				case "tag":
					label(t, s, id, Labels{Add: []string{tag}})
				case "pin":
					label(t, s, id, Labels{Pinned: ptr(true)})
				case "delete":
					del(t, s, id)
				}
				d, derr := s.Deeds(context.Background(), id)
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
		if d := cmp.Diff(before, tree(t, storage)); d != "" {
			r.Error(d)
		}
	})
}

// Looking for what could be taken back changes nothing, and neither does a dry run.
func TestUndoDryRun(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	root := t.TempDir()
	s := open(t, root, storage)
	closeTask(t, create(t, s, "mine"))
	for _, id := range []string{"mine", "theirs"} {
		label(t, s, id, Labels{Title: ptr("one")})
		del(t, s, id)
		before := tree(t, root)
		deed, d, err := s.Undo(context.Background(), id, UndoOptions{DryRun: true})
		if err != nil || deed.Kind != "delete" || !d.Trashed || kinds(d.Undo) != "delete rename" {
			t.Errorf("%s: %+v %v", id, deed, err)
		}
		if _, _, err := s.Undo(context.Background(), id, UndoOptions{DryRun: true, Redo: true}); !errors.Is(err, ErrNothing) {
			t.Error(err)
		}
		if d := cmp.Diff(before, tree(t, root)); d != "" {
			t.Error(d)
		}
	}
	before := tree(t, root)
	all := must[[]Deeds](t)(s.AllDeeds(context.Background(), 0))
	if len(all) != 2 || !strings.HasSuffix(all[0].Name+all[1].Name, ":theirs") {
		t.Errorf("%d tasks", len(all))
	}
	if d := cmp.Diff(before, tree(t, root)); d != "" {
		t.Error(d)
	}
}

// Somebody does something between looking and taking back: their change stays.
func TestUndoMeanwhile(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	root := t.TempDir()
	closeTask(t, create(t, open(t, root), "mine"))
	for _, id := range []string{"mine", "theirs"} {
		s, other := open(t, root, storage), open(t, root, storage)
		label(t, s, id, Labels{Title: ptr("one")})
		seen := must[Deeds](t)(s.Deeds(context.Background(), id)).Undo[0].ID
		label(t, other, id, Labels{Title: ptr("two")})
		var changed *DeedError
		if _, _, err := s.Undo(context.Background(), id, UndoOptions{Only: seen}); !errors.As(err, &changed) || changed.Want != seen || changed.Next == "" {
			t.Errorf("%s: %v", id, err)
		}
		if got := view(t, s, id).Summary.Title; got != "two" {
			t.Errorf("%s: %s", id, got)
		}
		// What was looked at is decided again once the log is held.
		d := must[Deeds](t)(s.Deeds(context.Background(), id))
		e, _ := d.done.top()
		undo(t, other, id, false)
		label(t, other, id, Labels{Pinned: ptr(true)})
		o := UndoOptions{Only: e.id()}
		if err := s.still(context.Background(), &d, o); !errors.As(err, &changed) {
			t.Errorf("%s: %v", id, err)
		}
		if id == "mine" {
			if err := s.undoOwn(context.Background(), &d, e, o); !errors.As(err, &changed) {
				t.Error(err)
			}
		}
		if got := labels(view(t, s, id).Summary); got != "one [] true" {
			t.Errorf("%s: %s", id, got)
		}
		// Two take back the same at once: one does, the other hears of it.
		del(t, s, id)
		gone := must[Deeds](t)(s.Deeds(context.Background(), id))
		must[Ref](t)(other.Restore(context.Background(), id))
		if _, _, err := s.Undo(context.Background(), id, UndoOptions{Only: gone.Undo[0].ID}); !errors.As(err, &changed) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A task that is owned is not touched, and one whose place is taken stays in the trash.
func TestUndoThatCannotBe(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	label(t, s, "mine", Labels{Title: ptr("one")})
	k := own(t, s, "mine").Task
	var busy *journal.BusyError
	if _, _, err := s.Undo(context.Background(), "mine", UndoOptions{}); !errors.As(err, &busy) {
		t.Error(err)
	}
	closeTask(t, k)
	del(t, s, "mine")
	dir := filepath.Join(root, "tasks", "mine")
	check(t, os.MkdirAll(filepath.Join(dir, "kept"), 0o700))
	before := tree(t, filepath.Join(root, "trash"))
	// By its id it is the one that stands there, by its name the deleted one.
	if _, _, err := s.Undo(context.Background(), "mine", UndoOptions{}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
	if _, err := s.Restore(context.Background(), "mine"); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	if d := cmp.Diff(before, tree(t, filepath.Join(root, "trash"))); d != "" || !exists(dir, "kept") {
		t.Error(d)
	}
	// An empty folder is nothing: Roo makes one whenever it looks for a task.
	check(t, os.Remove(filepath.Join(dir, "kept")))
	must[Ref](t)(s.Restore(context.Background(), "mine"))
	if got := must[Deeds](t)(s.Deeds(context.Background(), "mine")); kinds(got.Undo) != "rename" || kinds(got.Redo) != "delete" {
		t.Errorf("%+v", got)
	}
	if _, err := s.Deeds(context.Background(), "nobody"); !errors.Is(err, ErrNotFound) {
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
		s := open(t, root)
		closeTask(t, create(t, s, "mine"))
		del(t, s, "mine")
		check(t, make(filepath.Join(root, "tasks", "mine")))
		if _, err := s.Restore(context.Background(), "roost:mine"); !errors.Is(err, ErrTaken) {
			t.Errorf("%s: %v", name, err)
		}
		if !exists(filepath.Join(root, "tasks"), "mine") || trashNames(t, s) != "mine" {
			t.Errorf("%s was removed", name)
		}
	}
}

// Where the task lies is what counts, whatever became of the marks: killed between mark
// and move, or without an overlay at all.
func TestDeletionsAreToldByThePlace(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	label(t, s, "mine", Labels{Title: ptr("one")})
	dir, bin := filepath.Join(root, "tasks", "mine"), filepath.Join(root, "trash", "mine")
	del(t, s, "mine")
	check(t, os.Rename(bin, dir)) // as if it had never moved
	if got := must[Deeds](t)(s.Deeds(context.Background(), "mine")); kinds(got.Undo) != "rename" || kinds(got.Redo) != "" || got.Trashed {
		t.Errorf("%+v", got)
	}
	check(t, os.Rename(dir, bin))
	check(t, os.RemoveAll(filepath.Join(root, "overlay")))
	got := must[Deeds](t)(s.Deeds(context.Background(), "mine"))
	if kinds(got.Undo) != "delete rename" || got.Undo[0].At != nil || !got.Trashed {
		t.Errorf("%+v", got)
	}
	if deed := undo(t, s, "mine", false); deed.Kind != "delete" || !exists(dir, "journal.jsonl") {
		t.Errorf("%+v", deed)
	}
}

// What was done in one log ends what could be done again in the other.
func TestDeedsOfTwoLogs(t *testing.T) {
	s := open(t, t.TempDir())
	closeTask(t, create(t, s, "mine"))
	say := func(want string) {
		t.Helper()
		d := must[Deeds](t)(s.Deeds(context.Background(), "mine"))
		if got := kinds(d.Undo) + " | " + kinds(d.Redo); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	label(t, s, "mine", Labels{Title: ptr("one")})
	label(t, s, "mine", Labels{Pinned: ptr(true)})
	undo(t, s, "mine", false)
	say("rename | pin")
	del(t, s, "mine")
	say("delete rename | ")
	undo(t, s, "mine", false)
	say("rename | delete") // the pin is out of reach: the deletion came after it
	undo(t, s, "mine", false)
	say(" | rename delete")
	undo(t, s, "mine", true)
	undo(t, s, "mine", true)
	say("delete rename | ")
	undo(t, s, "mine", false)
	label(t, s, "mine", Labels{Add: []string{"new"}})
	say("tag rename | ")
}

// A list of what can be taken back holds every task once, newest first, and leaves out
// those that nothing was done to.
func TestAllDeeds(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	at := int64(ts0)
	s := must[*Store](t)(Open(Options{Root: t.TempDir(), Sources: []string{storage}, Now: func() int64 { at += 1000; return at }}))
	var want []string
	for i := range 5 {
		id := fmt.Sprintf("task%d", i)
		closeTask(t, create(t, s, id))
		if i > 1 {
			label(t, s, id, Labels{Add: []string{"x"}})
			want = append(want, id)
		}
	}
	label(t, s, "theirs", Labels{Pinned: ptr(true)})
	del(t, s, "task3")
	want = append(slices.DeleteFunc(want, func(id string) bool { return id == "task3" }), "theirs", "task3")
	slices.Reverse(want)
	for limit := range 6 {
		var got []string
		for _, d := range must[[]Deeds](t)(s.AllDeeds(context.Background(), limit)) {
			got = append(got, d.Task.ID)
		}
		if w := want[:min(max(limit, len(want)*(1-min(limit, 1))), len(want))]; !slices.Equal(got, w) {
			t.Errorf("%d: %v, want %v", limit, got, w)
		}
	}
}
