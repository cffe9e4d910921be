package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// feedOf is what the stream of all tasks must give from the oldest that is kept on, read
// off the files in one go.
func feedOf(t testing.TB, s *store.Store) (out []frame) {
	t.Helper()
	_, err := events.ReadAll(context.Background(), s, events.Cursor{}, func(one events.Item) error {
		out = append(out, frame{one.CursorID(), one.Type, string(one.Data)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// byTask are the events of each task, as the task's own stream numbers them not: by data.
func byTask(t testing.TB, frames []frame) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, f := range frames {
		var data struct {
			Task string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(f.Data), &data); err != nil {
			t.Fatal(err)
		}
		out[data.Task] = append(out[data.Task], f.Type+" "+f.Data)
	}
	return out
}

// asJournals checks that events are exactly those of the tasks' journals, in their order.
func asJournals(t testing.TB, s *store.Store, frames []frame, ids ...string) {
	t.Helper()
	got := byTask(t, frames)
	if len(got) != len(ids) {
		t.Errorf("events of %d tasks, want %d", len(got), len(ids))
	}
	for _, id := range ids {
		var want []string
		for _, f := range journalOf(t, s, id) {
			want = append(want, f.Type+" "+f.Data)
		}
		if diff := cmp.Diff(want, got[id]); diff != "" {
			t.Errorf("task %s: %.2000s", id, diff)
		}
	}
}

// another task of the bench.
func (g *bench) another(text string) string {
	g.Helper()
	return g.run(engine.Request{Text: text, Choice: setup.Choice{Workspace: filepath.Join(g.dir, "ws"), Provider: "script", Model: filepath.Join(g.dir, "model.yaml"), Approve: "all"}})
}

// All that the journals of all tasks hold comes once, the same bytes as on the tasks' own
// streams, and behind each event the rest.
func TestRuleB25AllTasksEveryCursorGivesTheRest(t *testing.T) {
	g := newBench(t)
	ids := []string{g.id, g.another("mow the lawn")}
	g.run(engine.Request{Task: g.id, Text: "again"})
	want := feedOf(t, g.store)
	asJournals(t, g.store, want, ids...)
	for i := 0; i < len(want); i += 1 + i/10 {
		s := g.follow("/v1/events?after=" + want[i].ID)
		if i%2 == 0 {
			s = g.follow("/v1/events", "Last-Event-ID: "+want[i].ID)
		}
		if diff := firstDifference(want[i+1:], s.take(len(want)-1-i)); diff != "" {
			t.Fatalf("behind %s: %s", want[i].ID, diff)
		}
		s.resp.Body.Close()
	}
	if diff := firstDifference(want, g.follow("/v1/events?after=0").take(len(want))); diff != "" {
		t.Error(diff)
	}
}

// Without a cursor what comes is told, of tasks that are new as well, whichever process
// writes them; who is cut off before the first event misses none.
func TestAllTasksLive(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.Heartbeat = 50 * time.Millisecond })
	old := len(feedOf(t, g.store))
	s, cut := g.follow("/v1/events"), g.follow("/v1/events")
	id := ""
	for id == "" {
		id, _ = strings.CutPrefix(strings.TrimSpace(fixture.Must[string](t)(cut.in.ReadString('\n'))), "id: ")
		if strings.ContainsAny(id, ": ") {
			id = ""
		}
	}
	cut.resp.Body.Close()
	g.run(engine.Request{Task: g.id, Text: "again"})
	writer := child(t, "writer", g.dir, "ROOST_TEST_COMMITS=20")
	if out, err := writer.Output(); err != nil {
		t.Fatal(err, string(out))
	}
	want := feedOf(t, g.store)[old:]
	if diff := firstDifference(want, s.take(len(want))); diff != "" {
		t.Error(diff)
	}
	if diff := firstDifference(want, g.follow("/v1/events", "Last-Event-ID: "+id).take(len(want))); diff != "" {
		t.Errorf("cut off before the first event: %s", diff)
	}
}

// Who is killed between its sync and telling of it has told nothing: whoever follows
// gets it all the same, although nobody touches the task again.
func TestAllTasksOfKilledOwners(t *testing.T) {
	g := newBench(t)
	s := g.follow("/v1/events?after=0")
	s.take(len(feedOf(t, g.store)))
	var ids []string
	for _, at := range []string{"1", "2", "9"} {
		writer := child(t, "writer", g.dir, "ROOST_TEST_COMMITS=100", failpoint.Env+"=journal.synced:"+at)
		writer.Stderr = nil
		out, _ := writer.Output()
		if writer.ProcessState.Success() {
			t.Fatal("it was not killed")
		}
		if id := strings.TrimSpace(string(out)); id != "" {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		want := journalOf(t, g.store, id)
		var got []frame
		for len(got) < len(want) {
			f := s.take(1)[0]
			if strings.Contains(f.Data, id) {
				got = append(got, f)
			}
		}
		for i := range want {
			if want[i].Data != got[i].Data {
				t.Fatalf("%d: %.300s\nwant %.300s", i, got[i].Data, want[i].Data)
			}
		}
	}
	if len(ids) == 0 {
		t.Fatal("no task was made")
	}
}

// A cursor of another feed, or of one that has let go of it, gets which tasks run or wait,
// and what comes from then on.
func TestAllTasksUnknownCursor(t *testing.T) {
	g := newBench(t)
	running := fixture.Must[*store.Task](t)(g.store.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}, task.RunStarted{Run: "r"}))
	defer running.Close(t.Context())
	want := feedOf(t, g.store)
	last := want[len(want)-1].ID
	parts := strings.Split(last, ".")
	for _, change := range []struct{ at, to int }{{0, 0}, {1, 7}, {2, 1}, {3, 1}} {
		bad := slices.Clone(parts)
		bad[change.at] = fmt.Sprint(change.to)
		s := g.follow("/v1/events?after=" + strings.Join(bad, "."))
		f := s.take(1)[0]
		var data struct{ Tasks []api.Summary }
		if err := json.Unmarshal([]byte(f.Data), &data); err != nil || f.Type != "stream.snapshot" || len(data.Tasks) != 1 || data.Tasks[0].ID != running.Ref.ID {
			t.Errorf("%v: got %v %+v, want no error and f.Type = \"stream.snapshot\" and len(data.Tasks) = 1 and data.Tasks[0].ID = running.Ref.ID",
				bad, err, f)
		}
		s.resp.Body.Close()
		if again := g.follow("/v1/events", "Last-Event-ID: "+f.ID); again.resp.StatusCode != 200 {
			t.Error(again.resp.Status)
		}
	}
	s := g.follow("/v1/events?after=x" + last)
	s.take(1)
	g.run(engine.Request{Task: g.id, Text: "again"})
	now := feedOf(t, g.store)[len(want):]
	if diff := firstDifference(now, s.take(len(now))); diff != "" {
		t.Errorf("behind the snapshot: %s", diff)
	}
	for _, bad := range []string{"1.7-0", "x", "00", last + "x", "a.b.c.d.e-f", strings.Repeat("9", 300), last[:len(last)-1]} {
		g.refused(400, "bad_cursor", "GET", "/v1/events?after="+bad)
	}
}

// The feed is derived: when it is deleted, streams end, who comes back is told how things
// stand, and what comes is told.
func TestAllTasksWhenTheFeedIsDeleted(t *testing.T) {
	g := newBench(t)
	s := g.follow("/v1/events?after=0")
	got := s.take(len(feedOf(t, g.store)))
	if err := os.RemoveAll(g.store.FeedDir()); err != nil {
		t.Fatal(err)
	}
	if f, ok := s.next(); ok {
		t.Errorf("got %+v, want not ok", f)
	}
	s = g.follow("/v1/events", "Last-Event-ID: "+got[len(got)-1].ID)
	if f := s.take(1)[0]; f.Type != "stream.snapshot" {
		t.Errorf("got %+v, want f.Type = \"stream.snapshot\"", f)
	}
	before := len(g.events())
	g.run(engine.Request{Task: g.id, Text: "again"})
	var want []string
	for _, f := range g.events()[before:] {
		want = append(want, f.Type+" "+f.Data)
	}
	if diff := cmp.Diff(want, byTask(t, s.take(len(want)))[g.id]); diff != "" {
		t.Error(diff)
	}
}

// A list that is asked for when an event was seen shows what the event says.
func TestListsAreAsFreshAsEvents(t *testing.T) {
	g := newBench(t)
	s := g.follow("/v1/events")
	for i := range 5 {
		title := fmt.Sprintf("title %d", i)
		g.another(title)
		for {
			f := s.take(1)[0]
			if f.Type != "run.ended" {
				continue
			}
			var l struct{ Items []api.Summary }
			if err := json.Unmarshal(g.get("/v1/tasks"), &l); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(l.Items, func(s api.Summary) bool { return s.Title == title && s.Status == "completed" }) {
				t.Errorf("%s is not listed as it ended: %+v", title, l.Items)
			}
			break
		}
	}
}

// Only the types that were asked for come, on both streams, and a client that is cut off
// does not look at the others again.
func TestTypesOfEvents(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.Heartbeat = 20 * time.Millisecond })
	for _, path := range []string{"/v1/events?after=0", g.path("/events?after=0")} {
		all := g.events()
		var want []string
		for _, f := range all {
			if strings.HasPrefix(f.Type, "run.") || f.Type == "task.created" {
				want = append(want, f.Data)
			}
		}
		s := g.follow(path + "&types=run.*,task.created")
		var got []string
		for _, f := range s.take(len(want)) {
			got = append(got, f.Data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", path, diff)
		}
		s = g.follow(path + "&types=task.created")
		s.take(1)
		for id := ""; ; { // the newest id comes with a heartbeat
			line := fixture.Must[string](t)(s.in.ReadString('\n'))
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(rest)
			} else if line == "\n" && id != "" {
				base, _, _ := strings.Cut(path, "?")
				more := g.follow(base+"?types=run.*", "Last-Event-ID: "+id)
				g.run(engine.Request{Task: g.id, Text: "again"})
				if f := more.take(1)[0]; f.Type != "run.started" || strings.Contains(f.Data, `"seq":2,`) {
					t.Errorf("%s: got %+v, want f.Type = \"run.started\" and not strings.Contains(f.Data, `\"seq\":2,`)",
						path, f)
				}
				break
			}
		}
	}
	for _, bad := range []string{"Run", "run.ended,", "*x", "run..%0A"} {
		g.refused(422, "validation_failed", "GET", "/v1/events?types="+bad)
	}
}

// A root that cannot be written, or has no feed yet, is followed all the same.
func TestAllTasksBeforeThereIsAFeed(t *testing.T) {
	g := newBench(t)
	if err := os.RemoveAll(g.store.FeedDir()); err != nil {
		t.Fatal(err)
	}
	s := g.follow("/v1/events")
	if _, err := os.Stat(g.store.FeedDir()); err == nil {
		t.Error("following made a feed")
	}
	id := g.another("mow the lawn")
	want := feedOf(t, g.store)
	asJournals(t, g.store, want, id)
	if diff := firstDifference(want, s.take(len(want))); diff != "" {
		t.Error(diff)
	}
	f, err := os.Create(filepath.Join(g.dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.RemoveAll(g.store.FeedDir()); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(g.dir, "x"), g.store.FeedDir()) // nothing can be told: no task minds
	g.run(engine.Request{Task: g.id, Text: "again"})
}
