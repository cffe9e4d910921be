package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	journals "github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/feed"
)

const patience = time.Minute

func take(t *testing.T, s server, name string, when journals.Announce) journal.Owner {
	t.Helper()
	o, err := s.journals.Own(t.Context(), name, journals.OwnOptions{By: "test", Announce: when})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func commit(ctx context.Context, o journal.Owner) error {
	_, err := o.Append(ctx, journal.Draft{At: 1, By: "test", Events: []journal.Event{[]byte(`{"type":"x"}`)}})
	if err == nil {
		err = o.Barrier(ctx)
	}
	return err
}

// until reads lines until one satisfies enough, and returns all.
func until(t *testing.T, r feed.Reader, enough func(feed.Entry) bool) (list []feed.Entry) {
	t.Helper()
	wake, every := r.Changes()
	poll := time.NewTicker(every)
	defer poll.Stop()
	for end := time.After(patience); ; {
		e, ok, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if list = append(list, e); enough(e) {
				return list
			}
			continue
		}
		select {
		case <-wake:
		case <-poll.C:
		case <-end:
			t.Fatalf("got only %+v", list)
		}
	}
}

// covered is how far lines announce a task, each commit once and in order.
func covered(t *testing.T, list []feed.Entry, task string) (to uint64) {
	t.Helper()
	for _, e := range list {
		if e.Task != task || e.New.To < e.New.From {
			continue
		}
		if e.New.From != to+1 {
			t.Errorf("%s is told from %d behind %d", task, e.New.From, to)
		}
		to = e.New.To
	}
	return to
}

// What the owners of all servers commit becomes lines by itself, which readers on each server get; a release is told before
// the journal is free.
func TestOwnersAreAnnounced(t *testing.T) {
	url := migrated(t, pgtest.Shared(t))
	a, b := open(t, url), open(t, url)
	r, _, err := b.OpenEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // was only read
	servers := []server{a, b}
	var owners []journal.Owner
	for i := range 6 {
		owners = append(owners, take(t, servers[i%2], fmt.Sprint("tasks/t", i), journals.AnnounceSoon))
	}
	for range 10 {
		for _, o := range owners {
			if err := commit(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	left, err := r.Left(t.Context())
	if err != nil || len(left) != 6 {
		t.Errorf("left: got %v, %v, want 6 tasks", left, err)
	}
	for _, o := range owners {
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ends := 0
	list := until(t, r, func(e feed.Entry) bool {
		if e.End {
			ends++
		}
		return ends == 6
	})
	for i := range 6 {
		if got := covered(t, list, fmt.Sprint("t", i)); got != 11 {
			t.Errorf("task %d: got %d commits, want 11", i, got)
		}
	}
	if left, err := r.Left(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left after all were released: got %v, %v", left, err)
	}
	if orphans, err := r.Orphans(t.Context()); err != nil || len(orphans) != 0 {
		t.Errorf("orphans: got %v, %v", orphans, err)
	}
}

// An owner can have its commits announced at the end, or not at all; journals that belong to no task are not announced.
func TestWhenOwnersAreAnnounced(t *testing.T) {
	url := migrated(t, pgtest.Shared(t))
	s := open(t, url)
	for name, c := range map[string]struct {
		when journals.Announce
		want []string
	}{
		"tasks/end":    {journals.AnnounceAtEnd, []string{"end 1-3 true"}},
		"tasks/never":  {journals.AnnounceNever, nil},
		"trash/other":  {journals.AnnounceSoon, nil},
		"tasks/others": {journals.AnnounceAtEnd, []string{"others 1-3 true"}},
	} {
		r, _, err := s.OpenEnd(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := take(t, s, name, c.when)
		for range 2 {
			if err := commit(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), feed.Line{Source: "roost", Task: "last", Epoch: 1, From: 1, To: 1}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range until(t, r, func(e feed.Entry) bool { return e.Task == "last" }) {
			if e.Task != "last" {
				got = append(got, fmt.Sprintf("%s %d-%d %v", e.Task, e.New.From, e.New.To, e.End))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		_ = r.Close() // was only read
	}
}

// A process that is killed between a commit and its line is found by any other one, which tells what it could not.
func TestKilledBetweenCommitAndLine(t *testing.T) {
	url := migrated(t, pgtest.Shared(t))
	a, b := open(t, url), open(t, url)
	r, _, err := b.OpenEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // was only read
	for i, at := range []int{1, 2, 40} {
		name := fmt.Sprint("k", i)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childURL+"="+url, childOwn+"=tasks/"+name, failpoint.Env+"="+fmt.Sprint("postgres.committed:", at))
		if err := cmd.Run(); err == nil {
			t.Fatal("the process was not killed")
		}
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			orphans, err := r.Orphans(t.Context())
			if err != nil || time.Now().After(end) {
				t.Fatal("the killed owner was not found", err)
			}
			if slices.Contains(orphans, feed.Task{Source: "roost", ID: name}) {
				break
			}
		}
		log, err := b.journals.OpenReader(t.Context(), "tasks/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		head, err := log.Head(t.Context())
		if err != nil || head != uint64(at) { //nolint:gosec // small
			t.Errorf("got %d commits, %v, want %d", head, err, at)
		}
		_ = log.Close()                    // was only read
		for _, s := range []server{a, b} { // both find it
			if err := s.Append(t.Context(), feed.Line{Source: "roost", Task: name, Epoch: 1, From: head, To: head, End: true}); err != nil {
				t.Fatal(err)
			}
		}
		list := until(t, r, func(e feed.Entry) bool { return e.End && e.Task == name })
		first := slices.IndexFunc(list, func(e feed.Entry) bool { return e.Task == name })
		if list[first].New.From == 0 { // the feed never named it: all since its birth
			list[first].New.From = 1
		}
		if got := covered(t, list, name); got != head {
			t.Errorf("killed at commit %d: got %d announced", at, got)
		}
		if orphans, err := r.Orphans(t.Context()); err != nil || len(orphans) != 0 {
			t.Errorf("orphans after they were told: got %v, %v", orphans, err)
		}
	}
}

// While the feed cannot be written, owners commit and close; what they committed is announced when it can.
func TestFeedThatCannotBeWritten(t *testing.T) {
	url := migrated(t, pgtest.Shared(t))
	a, b := open(t, url), open(t, url)
	if err := a.Append(t.Context(), feed.Line{Source: "roost", Task: "first", Epoch: 1, From: 1, To: 1}); err != nil {
		t.Fatal(err)
	}
	r, _, err := b.OpenEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // was only read
	execute(t, url, `ALTER TABLE roost.feed_heads RENAME TO hidden`)
	kept := take(t, a, "tasks/kept", journals.AnnounceSoon)
	gone := take(t, a, "tasks/gone", journals.AnnounceSoon)
	for range 5 {
		for _, o := range []journal.Owner{kept, gone} {
			if err := commit(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	again := take(t, a, "tasks/gone", journals.AnnounceSoon)
	execute(t, url, `ALTER TABLE roost.hidden RENAME TO feed_heads`)
	seen := map[string]bool{}
	list := until(t, r, func(e feed.Entry) bool {
		seen[e.Task] = seen[e.Task] || e.New.To >= 6
		return seen["kept"] && seen["gone"]
	})
	if got := covered(t, list, "kept"); got != 6 {
		t.Errorf("got %d commits of an owner, want 6", got)
	}
	for i, e := range list { // the line of the second owner is the first that names the task
		if e.Task == "gone" && (e.New.From != 0 || e.New.To != 7) {
			t.Errorf("line %d: got %d-%d, want 0-7", i, e.New.From, e.New.To)
		}
	}
	for _, o := range []journal.Owner{kept, again} {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A transaction that somebody left open on the feed delays lines; it delays no commit.
func TestFeedThatIsLocked(t *testing.T) {
	url := migrated(t, pgtest.Shared(t))
	s := open(t, url)
	o := take(t, s, "tasks/a", journals.AnnounceSoon)
	r, err := s.Open(t.Context(), feed.Place{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // was only read
	until(t, r, func(feed.Entry) bool { return true })
	tx, err := fixture.Must[*pgx.Conn](t)(pgx.Connect(t.Context(), url)).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT * FROM roost.feed_state FOR UPDATE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := commit(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if e, ok, err := r.Next(t.Context()); ok || err != nil {
		t.Errorf("got %+v, %v while the feed is locked", e, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := until(t, r, func(e feed.Entry) bool { return e.New.To == 21 })
	if list[0].New.From != 2 {
		t.Errorf("got %+v, want all commits since the first", list)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
