package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/task"
)

// clineStorage is a storage of a tool whose folders are not written.
func clineStorage(t testing.TB, id string) (storage, dir string) {
	storage = filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	dir = filepath.Join(storage, "tasks", id)
	write(t, dir, roofmt.UIName, array(fourRows[:2]...))
	write(t, dir, roofmt.APIName, array(threeAPI[:2]...))
	return storage, dir
}

func TestAForkIsFoundAgain(t *testing.T) {
	storage, dir := clineStorage(t, "1730047571772")
	root := t.TempDir()
	s := open(t, root, storage)
	before := tree(t, storage)
	first := own(t, s, "saoudrizwan.claude-dev-"+sourceHash(t, s)+":1730047571772")
	if first.Again || first.Forked == "" {
		t.Errorf("got %+v, want not first.Again and first.Forked != \"\"", first)
	}
	commit(t, first.Task, task.UI, fourRows[2])
	want := rows(first.Task.State())
	closeTask(t, first.Task)
	for _, sources := range [][]string{{storage}, {filepath.Join(storage, "tasks")}, {dir}} {
		s := open(t, root, sources...)
		ref := foreignRef(t, s, "1730047571772")
		again := fixture.Must[*Owned](t)(s.Own(context.Background(), ref))
		if !again.Again || again.Forked != first.Forked || again.Task.Ref.ID != first.Task.Ref.ID || len(again.Task.Intakes()) != 0 {
			t.Errorf("%v: got %+v, want again.Again and again.Forked = first.Forked and again.Task.Ref.ID = first.Task.Ref.ID and len(again.Task.Intakes()) = 0",
				sources, again)
		}
		if rows(again.Task.State()) != want || again.Task.Ref.Tool != "cline" {
			t.Errorf("%v: got %s, want rows(again.Task.State()) = %v and again.Task.Ref.Tool = \"cline\"",
				again.Task.Ref.Tool, rows(again.Task.State()), want)
		}
		closeTask(t, again.Task)
	}
	if ids := fixture.Must[[]string](t)(names(s.TasksDir())); len(ids) != 1 {
		t.Errorf("forks: %v", ids)
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Error(d)
	}
}

func TestAForkHasTheLabelsOfItsOriginal(t *testing.T) {
	storage, _ := clineStorage(t, "1730047571772")
	s := open(t, t.TempDir(), storage)
	ref := foreignRef(t, s, "1730047571772")
	title, tags, pinned := "The gate", []string{"urgent"}, true
	fixture.NoError(t, s.ChangeOverlay(t.Context(), func(_ overlay.Table, add overlay.Append) error {
		return add(overlay.Entry{Type: overlay.Changed, Source: ref.Source, ID: ref.ID, Title: &title, Tags: &tags, Pinned: &pinned})
	}))
	o := fixture.Must[*Owned](t)(s.Own(t.Context(), ref))
	closeTask(t, o.Task)
	got := fixture.Must[*View](t)(s.Read(t.Context(), o.Task.Ref))
	if sum := got.Summary; sum.Title != title || !slices.Equal(sum.Tags, tags) || !sum.Pinned {
		t.Errorf("got the labels %q %q %v, want %q %q %v", sum.Title, sum.Tags, sum.Pinned, title, tags, pinned)
	}
	fixture.NoError(t, got.Close())
}

// A kill may come between the adoption of a task and the rows and labels that its files lack: the next owner adds them, once.
func TestAnAdoptionThatAKillCutIsCompleted(t *testing.T) {
	for name, product := range map[string]string{
		"continued as one of our own": "saoudrizwan.claude-dev", "continued where it lies": "rooveterinaryinc.roo-cline",
	} {
		t.Run(name, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), product)
			write(t, filepath.Join(storage, "tasks", "1730047571772"), roofmt.APIName, array(threeAPI[:2]...))
			root := t.TempDir()
			killed := open(t, root, storage) // it reconstructs no rows
			ref := foreignRef(t, killed, "1730047571772")
			o := fixture.Must[*Owned](t)(killed.Own(t.Context(), ref))
			if got := len(o.Task.State().UI()); got != 0 {
				t.Fatalf("got %d rows, want none", got)
			}
			closeTask(t, o.Task)
			title := "The gate"
			fixture.NoError(t, killed.ChangeOverlay(t.Context(), func(_ overlay.Table, add overlay.Append) error {
				return add(overlay.Entry{Type: overlay.Changed, Source: ref.Source, ID: ref.ID, Title: &title})
			}))
			s := open(t, root, storage)
			s.opt.Rows = func(messages [][]byte) [][]byte {
				return api.Each(messages, func([]byte) []byte { return []byte(fourRows[0]) })
			}
			for range 2 {
				o := fixture.Must[*Owned](t)(s.Own(t.Context(), ref))
				if got := len(o.Task.State().UI()); got != 2 {
					t.Errorf("got %d rows, want one for each of the two messages", got)
				}
				if got := o.Task.State().Title; o.Forked != "" && got != title { // else the overlay has the labels
					t.Errorf("got the title %q, want %q", got, title)
				}
				closeTask(t, o.Task)
			}
		})
	}
}

// sourceHash is the end of the name of the only foreign source.
func sourceHash(t testing.TB, s *Store) string {
	l := fixture.Must[[]Source](t)(s.sources(context.Background()))
	return l[1].Name[strings.LastIndex(l[1].Name, "-")+1:]
}

// foreignRef finds a task in another tool's storage, not its fork.
func foreignRef(t testing.TB, s *Store, id string) Ref {
	t.Helper()
	all := fixture.Must[[]Ref](t)(s.Refs(context.Background()))
	for _, r := range all {
		if r.ID == id && r.Foreign() {
			return r
		}
	}
	t.Fatalf("%s is in no storage: %v", id, all)
	return Ref{}
}

func TestWhatBecameOfTheOriginal(t *testing.T) {
	grown := map[string]string{roofmt.UIName: array(fourRows[:3]...), roofmt.APIName: array(threeAPI...)}
	for name, c := range map[string]struct {
		ours     bool // the fork went on
		original map[string]string
		taken    bool
		refused  int
	}{
		"nothing":                      {true, nil, false, 0},
		"it went on, the fork did not": {false, grown, true, 0},
		"both went on":                 {true, grown, false, 2},
		"it was emptied":               {true, map[string]string{roofmt.UIName: "", roofmt.APIName: "[]"}, false, 2},
		"it was rewound":               {false, map[string]string{roofmt.UIName: array(fourRows[0]), roofmt.APIName: array(threeAPI[0])}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			storage, dir := clineStorage(t, "1730047571772")
			s := open(t, t.TempDir(), storage)
			ref := foreignRef(t, s, "1730047571772")
			k := fixture.Must[*Owned](t)(s.Own(context.Background(), ref)).Task
			if c.ours {
				commit(t, k, task.UI, uiRow(70, "the fork's own"))
				commit(t, k, task.API, apiRow(71, "user", "the fork's own"))
			}
			before := rows(k.State())
			closeTask(t, k)
			for file, text := range c.original {
				write(t, dir, file, text)
			}
			fork, ok := s.Continued(t.Context(), ref)
			if _, again := s.Continued(t.Context(), fork); !ok || again {
				t.Fatalf("it goes on as %+v: %v, %v", fork, ok, again)
			}
			for round, by := range []Ref{ref, fork, ref} { // whichever id it is owned by
				o := fixture.Must[*Owned](t)(s.Own(context.Background(), by))
				refused := 0
				for _, in := range o.Task.Intakes() {
					if in.Refused != "" {
						refused++
						if !strings.Contains(in.Refused, dir) {
							t.Errorf("it is not said where: %s", in.Refused)
						}
					}
				}
				wantTaken := c.taken && round == 0
				if (len(o.Task.Intakes()) > refused) != wantTaken || refused != c.refused {
					t.Errorf("round %d: %+v", round, o.Task.Intakes())
				}
				if (rows(o.Task.State()) != before) != c.taken {
					t.Errorf("round %d: %s", round, rows(o.Task.State()))
				}
				if n := len(o.Task.State().Refused); n != c.refused {
					t.Errorf("round %d: %d kept", round, n)
				}
				closeTask(t, o.Task)
			}
		})
	}
}

// Whoever comes second, at the same moment, meets the first one and makes no
// second fork.
func TestTwoForkAtOnce(t *testing.T) {
	storage, _ := clineStorage(t, "1730047571772")
	root := t.TempDir()
	var wait sync.WaitGroup
	ids := make(chan string, 8)
	for range 8 {
		wait.Go(func() {
			s := open(t, root, storage)
			o, err := s.Own(context.Background(), foreignRef(t, s, "1730047571772"))
			var busy *journal.BusyError
			if errors.As(err, &busy) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			ids <- o.Task.Ref.ID
			if err := o.Task.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	if left := fixture.Must[[]string](t)(names(filepath.Join(root, "tasks"))); len(left) != 1 || len(seen) != 1 {
		t.Errorf("forks %v, owned %v", left, seen)
	}
}

// A kill between the lock and the adoption leaves an empty journal.
func TestForkKilledBeforeItsAdoption(t *testing.T) {
	storage, _ := clineStorage(t, "1730047571772")
	s := open(t, t.TempDir(), storage)
	ref := foreignRef(t, s, "1730047571772")
	if _, ok := s.Continued(t.Context(), ref); ok {
		t.Error("it goes on before it did")
	}
	k := fixture.Must[*Task](t)(s.takeWith(context.Background(), s.OwnRef(forkID(ref)), false, false))
	fixture.NoError(t, k.log.Close())
	k.proj.Stop()
	o := fixture.Must[*Owned](t)(s.Own(context.Background(), ref))
	if o.Again || len(o.Task.State().UI()) != 2 {
		t.Errorf("got %+v: %s, want not o.Again and len(o.Task.State().UI()) = 2", o, rows(o.Task.State()))
	}
	closeTask(t, o.Task)
}

func TestATaskInTheForksPlace(t *testing.T) {
	storage, _ := clineStorage(t, "1730047571772")
	s := open(t, t.TempDir(), storage)
	ref := foreignRef(t, s, "1730047571772")
	closeTask(t, create(t, s, forkID(ref)))
	if _, err := s.Own(context.Background(), ref); err == nil || !strings.Contains(err.Error(), "does not continue") {
		t.Errorf("got %v, want an error and strings.Contains(err.Error(), \"no continuation\")", err)
	}
	// It is let go of again.
	closeTask(t, fixture.Must[*Owned](t)(s.Own(context.Background(), fixture.Must[Ref](t)(s.Find(context.Background(), forkID(ref))))).Task)
}

func TestGoneTasksOfStoragesNobodyNames(t *testing.T) {
	storage, dir := rooStorage(t, "lost-one")
	write(t, filepath.Join(storage, "tasks", "kept-one"), roofmt.UIName, array(fourRows...))
	write(t, filepath.Join(storage, "tasks", "never-ours"), roofmt.UIName, array(fourRows...))
	root := t.TempDir()
	s := open(t, root, storage)
	want := ""
	for _, id := range []string{"kept-one", "lost-one"} {
		k := own(t, s, id).Task
		commit(t, k, task.UI, uiRow(9, "on"))
		want = rows(k.State())
		closeTask(t, k)
	}
	listed := func(s *Store) []string {
		var ids []string
		for _, item := range fixture.Must[Listing](t)(s.List(context.Background(), Filter{})).Items {
			ids = append(ids, item.ID)
		}
		return ids
	}
	bare := open(t, root)
	if got := listed(bare); len(got) != 0 {
		t.Errorf("a task whose folder is there is its storage's: %v", got)
	}
	fixture.NoError(t, os.RemoveAll(dir))
	for name, s := range map[string]*Store{"the storage is not named": bare, "it is": s} {
		if got := listed(s); !slices.Contains(got, "lost-one") || slices.Contains(got, "kept-one") == (s == bare) {
			t.Errorf(`%s: got %v, want slices.Contains(got, "lost-one") and slices.Contains(got, "kept-one") != (s == bare)`,
				name, got)
		}
		ref := fixture.Must[Ref](t)(s.Find(context.Background(), "lost-one"))
		if ref.Tool != "roo" || ref.Own {
			t.Errorf("%s: got %+v, want ref.Tool = \"roo\" and not ref.Own", name, ref)
		}
		o := fixture.Must[*Owned](t)(s.Own(context.Background(), ref))
		if !o.Gone || rows(o.Task.State()) != want {
			t.Errorf("%s: gone %v, %s", name, o.Gone, rows(o.Task.State()))
		}
		closeTask(t, o.Task)
		if exists(dir, "") {
			t.Errorf("%s: the folder came back", name)
		}
	}
	fixture.NoError(t, os.RemoveAll(storage))
	if got := listed(bare); len(got) != 2 {
		t.Errorf("without the storage: %v", got)
	}
	before := tree(t, root)
	fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), bare, nil, false))
	listed(bare)
	if d := cmp.Diff(before, tree(t, root)); d != "" {
		t.Error(d)
	}
	// A journal that does not say where it came from is not made up.
	write(t, filepath.Join(root, "adopted", "odd-123456", "x1"), "journal.jsonl", "junk\n")
	if got := listed(bare); len(got) != 2 {
		t.Errorf("with junk: %v", got)
	}
}
