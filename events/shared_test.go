package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/rootkey"
	"github.com/roost-dev/roost/task"
)

// childURL, childRoot and childTask make the test program commit to a new task of the database until it is killed.
const (
	childURL  = "ROOST_EVENTS_TEST_URL"
	childRoot = "ROOST_EVENTS_TEST_ROOT"
	childTask = "ROOST_EVENTS_TEST_TASK"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		fmt.Fprintln(os.Stderr, child(url))
		os.Exit(1)
	}
	code := m.Run()
	pgtest.StopShared()
	os.Exit(code)
}

func child(url string) error {
	ctx := context.Background()
	s, _, err := serverOn(ctx, url, os.Getenv(childRoot), postgres.Options{Lease: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	one, err := s.Create(ctx, task.Created{Task: os.Getenv(childTask), Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}})
	for i := 0; err == nil && i < 200; i++ { // else nothing kills it
		err = one.CommitSynced(ctx, task.RunStarted{Run: fmt.Sprint("r", i)})
	}
	return fmt.Errorf("it was not killed: %w", err)
}

// serverOn is the store of a server on a database; closing ends its work there.
func serverOn(ctx context.Context, url, root string, opt postgres.Options) (s *store.Store, closing func(), err error) {
	db, err := database.Open(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	keys, err := rootkey.Join(ctx, db, filepath.Join(root, "group-key.json"))
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	j := postgres.Open(ctx, db, opt)
	s, err = store.Open(store.Options{Root: root, Shared: j, Keys: keys, Program: "test"})
	return s, func() { j.Close(); db.Close() }, err
}

// group is servers on one database.
func group(t *testing.T, n int) (url string, list []*store.Store) {
	t.Helper()
	url = pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for range n {
		s, closing, err := serverOn(t.Context(), url, root, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closing)
		s.SkipWaits()
		list = append(list, s)
	}
	return url, list
}

// take reads a topic until enough is true of an event.
func take(t *testing.T, sub *Subscriber, enough func(Item) bool) (list []Item) {
	t.Helper()
	done := false
	for end := time.After(time.Minute); ; {
		if err := sub.Read(t.Context(), func(i Item) error {
			if !done && !i.Live {
				list = append(list, i)
				done = enough(i)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if done {
			return list
		}
		select {
		case <-sub.Changed():
		case <-end:
			t.Fatalf("the topic gave only %d events", len(list))
		}
	}
}

func allOf(t *testing.T, s *store.Store) *Topic {
	t.Helper()
	p := New(s)
	topic, release, err := p.All()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(); p.Close() })
	if _, err := topic.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	return topic
}

func frames(list []Item) (out []string) {
	for _, i := range list {
		out = append(out, string(i.Frame))
	}
	return out
}

// Followers on two servers get the events of the tasks of both, the same bytes under the same ids; and one that goes from one
// server to the other after any event misses nothing and gets nothing twice.
func TestServersGiveTheSameEvents(t *testing.T) {
	_, servers := group(t, 2)
	topics := []*Topic{allOf(t, servers[0]), allOf(t, servers[1])}
	subs := []*Subscriber{topics[0].Subscribe(Cursor{}), topics[1].Subscribe(Cursor{})}
	var tasks []*store.Task
	for i := range 4 {
		tasks = append(tasks, fixture.Must[*store.Task](t)(servers[i%2].Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}})))
	}
	for i := range 40 {
		one := tasks[i%4]
		if err := one.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: uint64(i/4 + 1), //nolint:gosec // small
			Body: task.Body{Raw: fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":"%d"}`, i+1, i)}}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := one.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, one := range tasks {
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	last := fixture.Must[*store.Task](t)(servers[0].Create(t.Context(), task.Created{Task: "last", Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	defer last.Close(t.Context()) //nolint:errcheck // nothing waits
	if err := last.CommitSynced(t.Context(), task.RunStarted{Run: "last"}); err != nil {
		t.Fatal(err)
	}
	enough := func(i Item) bool { return i.Run == "last" }
	all := take(t, subs[0], enough)
	want := frames(all)
	if diff := cmp.Diff(want, frames(take(t, subs[1], enough))); diff != "" {
		t.Fatalf("the servers differ: %s", diff)
	}
	for _, one := range tasks { // all of each task, in its order
		var journal, stream []string
		if err := ReadJournal(t.Context(), servers[1], one.Ref, Cursor{}, func(i Item) error {
			journal = append(journal, string(i.Data))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Task == one.Ref.ID {
				stream = append(stream, string(i.Data))
			}
		}
		if diff := cmp.Diff(journal, stream); diff != "" {
			t.Errorf("the stream of all tasks differs from a journal: %s", diff)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it chooses cases
	pipes := []*Pipe{New(servers[0]), New(servers[1])}
	var got []string
	for at := (Cursor{}); len(got) < len(want); {
		n := random.IntN(2)
		if known, err := pipes[n].HasLine(t.Context(), at); err != nil || !known {
			t.Fatalf("cursor %s is not known on the other server: %v", at, err)
		}
		stop := errors.New("the client goes")
		left := 1 + random.IntN(7)
		sub := topics[n].Subscribe(at)
		err := sub.Read(t.Context(), func(i Item) error {
			if i.Live {
				return nil
			}
			if left--; left < 0 {
				return stop
			}
			got = append(got, string(i.Frame))
			at, _ = ParseAllCursor(i.CursorID())
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("a client that changes servers: %s", diff)
	}
}

// The commits of a server that was killed before it announced them come to the followers of others.
func TestEventsOfAKilledServer(t *testing.T) {
	url, servers := group(t, 1)
	s := servers[0]
	sub := allOf(t, s).Subscribe(Cursor{})
	for i, at := range []int{2, 25} {
		id := fmt.Sprint("killed", i)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childURL+"="+url, childRoot+"="+s.Root(), childTask+"="+id, failpoint.Env+"="+fmt.Sprint("postgres.committed:", at))
		if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
			t.Fatalf("the server was not killed: %s", out)
		}
		head := s.HeadOf(t.Context(), s.OwnRef(id))
		if head == 0 {
			t.Fatal("nothing was committed")
		}
		var got []string
		for _, i := range take(t, sub, func(i Item) bool { return i.Task == id && i.Seq == head }) {
			got = append(got, i.Type+" "+i.Run)
		}
		if n := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "task.created") }); n < 0 {
			t.Errorf("killed at commit %d: got %q, want the creation first", at, got)
		}
	}
}

// The event that a task was deleted comes when it is deleted, whichever server does that.
func TestChangesOfTheOverlayComeFromAllServers(t *testing.T) {
	_, servers := group(t, 2)
	sub := allOf(t, servers[0]).Subscribe(Cursor{})
	for i := range 3 {
		if err := servers[1].ChangeOverlay(t.Context(), func(_ overlay.Table, add overlay.Append) error {
			for n := range 2 {
				if err := add(overlay.Entry{Type: overlay.Changed, Source: store.OwnSource, ID: "a", Title: new(fmt.Sprint(i, n))}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		list := take(t, sub, func(e Item) bool { return strings.Contains(string(e.Data), fmt.Sprintf(`"title":"%d 1"`, i)) })
		if len(list) != 2 {
			t.Errorf("change %d: got %q, want its two events", i, frames(list))
		}
	}
}
