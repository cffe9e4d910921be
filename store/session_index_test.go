package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

const subagentID = sessionID + "__bob"

// clineIndex gives clineData a subagent, and Cline's index, which Cline has open: all of it is in its log yet.
func clineIndex(t *testing.T) (data, dir string, db *sql.DB) {
	t.Helper()
	data, dir = clineData(t)
	write(t, dir, "bob.messages.json", `{"version":1,"agent":"subagent","messages":[
		{"role":"user","content":[{"type":"text","text":"count the posts"},{"type":"image","data":"iVBORw0KGgo=","mediaType":"image/png"}],"id":"x","ts":1776200000005},
		{"role":"assistant","content":[{"type":"text","text":"nine"}],"id":"y","ts":1776200000006,"metrics":{"inputTokens":5,"outputTokens":1,"cost":0.002}}]}`)
	fixture.NoError(t, os.MkdirAll(filepath.Join(data, "db"), 0o700))
	db = fixture.Must[*sql.DB](t)(sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(data, "db", "sessions.db"))+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)"))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { fixture.NoError(t, db.Close()) })
	for _, s := range []string{
		"CREATE TABLE sessions(session_id TEXT PRIMARY KEY, status TEXT, started_at TEXT, cwd TEXT, provider TEXT, model TEXT, prompt TEXT, parent_session_id TEXT, metadata_json TEXT)",
		`INSERT INTO sessions VALUES('` + sessionID + `', 'cancelled', '2026-04-14T20:53:20.000Z', '/shed', 'anthropic', 'm-1', 'mend the gate', NULL, '{"title":"The gate","isFavorited":true}')`,
		`INSERT INTO sessions VALUES('` + subagentID + `', 'failed', '2026-04-14T20:53:21.000Z', '/shed', 'anthropic', 'm-2', 'count the posts', '` + sessionID + `', '{}')`,
	} {
		fixture.Must[sql.Result](t)(db.Exec(s))
	}
	return data, dir, db
}

func byID(t *testing.T, s *Store) map[string]api.Summary {
	t.Helper()
	out := map[string]api.Summary{}
	for _, item := range fixture.Must[Listing](t)(s.List(context.Background(), Filter{})).Items {
		out[item.ID] = item
	}
	return out
}

// What only the index knows is in the list, and a change in it shows at once, also while Cline writes.
func TestTheListKnowsWhatClinesIndexKnows(t *testing.T) {
	data, _, db := clineIndex(t)
	s := open(t, t.TempDir(), data)
	before := tree(t, data)
	got := byID(t, s)
	lead, sub := got[sessionID], got[subagentID]
	if len(got) != 2 || lead.Title != "The gate" || lead.Status != "cancelled" || !lead.Pinned || lead.Model != "m-1" || lead.Provider != "anthropic" || *lead.Usage.Cost != 12300 {
		t.Errorf("%+v", lead)
	}
	if sub.Title != "count the posts" || sub.Status != "failed" || sub.ParentID != sessionID || sub.RootID != sessionID || sub.Pinned || sub.Model != "m-2" || sub.TS != 1776200000006 ||
		*sub.Usage.Cost != 2000 || sub.Messages.API != 2 || sub.Tool != "cline" || sub.Root != lead.Root || sub.Source != lead.Source {
		t.Errorf("%+v", sub)
	}
	if d := cmp.Diff(before, tree(t, data)); d != "" {
		t.Errorf("looking changed it: %s", d)
	}
	fixture.Must[sql.Result](t)(db.Exec("UPDATE sessions SET status='completed', metadata_json='{\"title\":\"Gate and posts\"}' WHERE session_id='" + sessionID + "'"))
	fixture.Must[sql.Result](t)(db.Exec("BEGIN EXCLUSIVE; UPDATE sessions SET status='failed'"))
	if lead := byID(t, s)[sessionID]; lead.Title != "Gate and posts" || lead.Status != "completed" || lead.Pinned {
		t.Errorf(`got %+v, want lead.Title = "Gate and posts" and lead.Status = "completed" and not lead.Pinned`,
			lead)
	}
	fixture.Must[sql.Result](t)(db.Exec("ROLLBACK"))
}

// An index that is broken or gone takes nothing away but what only it knew.
func TestTheListWithoutClinesIndex(t *testing.T) {
	data, _, db := clineIndex(t)
	fixture.Must[sql.Result](t)(db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	for name, change := range map[string]func(path string) error{
		"gone":       os.Remove,
		"cut":        func(path string) error { return os.Truncate(path, 700) },
		"overgrown":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 9000)), 0o600) },
		"a folder":   func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"unreadable": func(path string) error { return os.Chmod(path, 0) },
	} {
		copied := filepath.Join(t.TempDir(), ".cline", "data")
		fixture.NoError(t, os.CopyFS(copied, os.DirFS(data)))
		fixture.NoError(t, change(filepath.Join(copied, "db", "sessions.db")))
		got := byID(t, open(t, t.TempDir(), copied))
		lead, sub := got[sessionID], got[subagentID]
		if name == "unreadable" && os.Geteuid() == 0 {
			continue
		}
		if len(got) != 2 || lead.Title != "mend the gate" || lead.Status != "completed" || len(lead.Damaged) != 0 || sub.ParentID != sessionID || sub.Title != "count the posts" {
			t.Errorf("%s: %+v\n%+v", name, lead, sub)
		}
	}
}

// A subagent goes on as a fork of its own, and the same one again.
func TestASubagentGoesOn(t *testing.T) {
	data, dir, _ := clineIndex(t)
	s := open(t, t.TempDir(), data)
	before := tree(t, data)
	o := own(t, s, subagentID)
	if o.Forked == "" || len(o.Task.State().API()) != 2 || o.Task.State().Parent != sessionID {
		t.Errorf("got %+v, want o.Forked != \"\" and len(o.Task.State().API()) = 2 and o.Task.State().Parent = sessionID",
			o)
	}
	commit(t, o.Task, task.API, apiRow(9, "user", "count again"))
	id := o.Task.Ref.ID
	closeTask(t, o.Task)
	for _, by := range []string{subagentID, id} {
		again := own(t, s, by)
		if again.Task.Ref.ID != id || len(again.Task.State().API()) != 3 || len(again.Task.Intakes()) != 0 {
			t.Errorf("by %s: %+v", by, again)
		}
		closeTask(t, again.Task)
	}
	lead := own(t, s, sessionID)
	if lead.Task.Ref.ID == id || len(lead.Task.State().API()) != 3 {
		t.Errorf("the lead: %+v", lead)
	}
	closeTask(t, lead.Task)
	if d := cmp.Diff(before, tree(t, data)); d != "" {
		t.Errorf("%s was changed: %s", dir, d)
	}
}
