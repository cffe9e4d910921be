package store_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/rootkey"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// groupServer is the store of one server of a group, and its journals.
type groupServer struct {
	*store.Store
	journals *postgres.Journals
}

// group opens so many servers on one database. They share the keys of the group, as the files that hold them are copied.
func group(t *testing.T, n int) (list []groupServer) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	keys := fixture.Must[*rootkey.Ring](t)(rootkey.Group(filepath.Join(t.TempDir(), "key.json"), true))
	for range n {
		db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
		j := postgres.Open(t.Context(), db, postgres.Options{})
		t.Cleanup(func() {
			j.Close()
			db.Close()
		})
		s := fixture.Must[*store.Store](t)(store.Open(store.Options{
			Root:   t.TempDir(),
			Cache:  t.TempDir(),
			State:  t.TempDir(),
			Shared: j,
			Keys:   keys,
		}))
		s.SkipWaits()
		list = append(list, groupServer{s, j})
	}
	return list
}

// said are the events of a message in both histories; n is the number of the first one.
func said(n uint64, text string) []task.Event {
	body := func(raw string) task.Body { return task.Body{Raw: []byte(raw)} }
	return []task.Event{
		task.MessageAdded{History: task.UI, Message: n, Body: body(`{"ts":1700000000000,"type":"say","say":"text","text":"` + text + `"}`)},
		task.MessageAdded{History: task.API, Message: n + 1, Body: body(`{"role":"user","content":"` + text + `"}`)},
	}
}

func made(t *testing.T, s groupServer, text string) store.Ref {
	t.Helper()
	owned, err := s.Create(t.Context(), task.Created{Title: text}, said(1, text)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := owned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return owned.Ref
}

func ids(t *testing.T, s groupServer) (list []string) {
	t.Helper()
	all, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all.Items {
		list = append(list, one.ID)
	}
	slices.Sort(list)
	return list
}

// What one server does with a task, every other one sees: it is listed, read, owned, labelled, forked, rewound, deleted and
// restored from any of them, and nothing of it is a file.
func TestServersShareTasks(t *testing.T) {
	servers := group(t, 2)
	a, b := servers[0], servers[1]
	ref := made(t, a, "first words")
	if got := ids(t, b); !slices.Equal(got, []string{ref.ID}) {
		t.Fatalf("list of the other server: got %q, want %q", got, ref.ID)
	}
	found, err := b.Find(t.Context(), ref.ID[:13])
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.Read(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.State.UI()); n != 1 || v.Summary.Title != "first words" {
		t.Errorf("got %d messages of %q, want 1 of the task", n, v.Summary.Title)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if standing, err := b.Standing(t.Context(), found, 0); err != nil || standing != store.Ours {
		t.Errorf("standing on the other server: got %q, %v, want the group's own", standing, err)
	}

	owned, err := b.Own(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Own(t.Context(), ref); !errors.As(err, new(*journal.BusyError)) {
		t.Errorf("own what another server owns: got %v, want a BusyError", err)
	}
	if !a.Held(t.Context(), ref) {
		t.Error("the other server does not see that the task is owned")
	}
	if err := owned.Task.CommitSynced(t.Context(), said(3, "second")...); err != nil {
		t.Fatal(err)
	}
	if err := owned.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sum := a.SummaryOf(t.Context(), ref); sum.Status != "interrupted" || len(sum.Damaged) > 0 {
		t.Errorf("got status %q, damaged %v", sum.Status, sum.Damaged)
	}

	if _, err := labels.Set(t.Context(), a.Store, ref, labels.Change{Title: new("another title")}); err != nil {
		t.Fatal(err)
	}
	if got := b.SummaryOf(t.Context(), ref).Title; got != "another title" {
		t.Errorf("title on the other server: got %q", got)
	}
	fork, _, err := history.Fork(t.Context(), b.Store, ref, history.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ids(t, a), []string{ref.ID, fork.ID}; !slices.Equal(got, want) {
		t.Errorf("after a fork: got %q, want %q", got, want)
	}
	if _, err := trash.Delete(t.Context(), a.Store, ref); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, b); !slices.Equal(got, []string{fork.ID}) {
		t.Errorf("after a deletion: got %q, want the fork %q", got, fork.ID)
	}
	if list, err := trash.List(t.Context(), b.Store); err != nil || len(list) != 1 || list[0].ID != ref.ID {
		t.Errorf("trash of the other server: got %+v, %v", list, err)
	}
	if _, _, err := actions.Undo(t.Context(), b.Store, ref.ID, actions.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := ids(t, a), []string{ref.ID, fork.ID}; !slices.Equal(got, want) {
		t.Errorf("after undo of the deletion: got %q, want %q", got, want)
	}
	if _, err := trash.Delete(t.Context(), b.Store, ref); err != nil {
		t.Fatal(err)
	}
	if _, err := trash.Purge(t.Context(), a.Store, ref.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := trash.List(t.Context(), b.Store); err != nil || len(list) != 0 {
		t.Errorf("trash after a purge: got %+v, %v, want nothing", list, err)
	}
	if got := fixture.Must[bool](t)(a.journals.Has(t.Context(), "trash/"+ref.ID)); got {
		t.Error("the journal of a purged task is still there")
	}
}

// What a killed process left of a fork is removed by the next fork, and what another process makes now is not.
func TestAForkRemovesWhatKilledForksLeft(t *testing.T) {
	folders := groupServer{Store: fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), State: t.TempDir()}))}
	for name, s := range map[string]groupServer{"folders": folders, "a database": group(t, 1)[0]} {
		ref := made(t, s, "words")
		young := s.OwnRef(store.TempName("young"))
		for _, temp := range []store.Ref{s.OwnRef(".fork-old-1700000000000000000"), s.OwnRef(".fork-older-3f0a2b77-4d1a-4b58-9d4e-0123456789ab"), young} {
			fixture.NoError(t, s.BeginFork(t.Context(), temp, ref, 1))
		}
		fork, finish, err := history.Fork(t.Context(), s.Store, ref, history.ForkOptions{})
		fixture.NoError(t, err)
		fixture.NoError(t, finish(t.Context()))
		var got []string
		for _, ref := range fixture.Must[[]store.Ref](t)(s.Every(t.Context())) {
			if !strings.HasPrefix(ref.ID, "_") {
				got = append(got, ref.ID)
			}
		}
		slices.Sort(got)
		want := []string{young.ID, ref.ID, fork.ID}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// While the database cannot be read it is not known which tasks there are: none of them counts as gone.
func TestFindWithoutTheDatabase(t *testing.T) {
	s := group(t, 1)[0]
	ref := made(t, s, "one")
	rename := func(from, to string) {
		t.Helper()
		fixture.Must[int64](t)(s.journals.DB().Exec(t.Context(), "ALTER TABLE roost."+from+" RENAME TO "+to))
	}
	rename("journals", "elsewhere")
	for _, given := range []string{ref.ID, ref.ID[len(ref.ID)-8:], "nowhere"} {
		_, err := s.Find(t.Context(), given)
		if _, unread := errors.AsType[*store.RootError](err); !unread || errors.Is(err, store.ErrNotFound) {
			t.Errorf("find %s without the database: got %v, want that the root cannot be read", given, err)
		}
	}
	rename("elsewhere", "journals")
	if got, err := s.Find(t.Context(), ref.ID); got != ref || err != nil {
		t.Errorf("find %s: got %v, %v", ref.ID, got, err)
	}
	if _, err := s.Find(t.Context(), "nowhere"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("find a task that is not there: got %v, want %v", err, store.ErrNotFound)
	}
}

// Lists read tasks again only when they changed, and the same from each server.
func TestListsOfServersAgree(t *testing.T) {
	servers := group(t, 2)
	for range 20 {
		made(t, servers[0], "some words")
	}
	first := fixture.Must[store.Listing](t)(servers[0].List(t.Context(), store.Filter{}))
	for range 2 { // the second list has rows of the first
		again := fixture.Must[store.Listing](t)(servers[1].List(t.Context(), store.Filter{}))
		if len(again.Items) != 20 || !reflect.DeepEqual(again.Items, first.Items) {
			t.Errorf("got %d items that differ from the first list of 20", len(again.Items))
		}
	}
}

// A server that dies while it owns a task loses it to one other when its lease has run out; it commits no more.
func TestAnotherServerTakesOver(t *testing.T) {
	servers := group(t, 2)
	ref := made(t, servers[0], "words")
	owned, err := servers[0].Own(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	servers[0].journals.Close() // leases are renewed no more
	var taken *store.Owned
	for end := time.Now().Add(30 * time.Second); taken == nil; time.Sleep(50 * time.Millisecond) {
		if taken, err = servers[1].Own(t.Context(), ref); err != nil && (!errors.As(err, new(*journal.BusyError)) || time.Now().After(end)) {
			t.Fatal(err)
		}
	}
	defer func() { _ = errors.Join(taken.Task.Close(t.Context()), owned.Task.Close(t.Context())) }() // the lost one has an error
	if err := owned.Task.CommitSynced(t.Context(), said(3, "late")...); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a commit of the lost owner: got %v, want ErrFenced", err)
	}
}
