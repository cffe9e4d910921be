package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
)

// aside writes a task into the storage of another tool and gives a server that reads it.
func (g *bench) aside(id string) *bench {
	g.Helper()
	storage := filepath.Join(g.dir, "rooveterinaryinc.roo-cline")
	dir := filepath.Join(storage, "tasks", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		g.Fatal(err)
	}
	for name, text := range map[string]string{
		"ui_messages.json":              `[{"ts":1700000000000,"type":"say","say":"text","text":"weed the beds"}]`,
		"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"<task>weed the beds</task>"}],"ts":1700000000000}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			g.Fatal(err)
		}
	}
	s := fixture.Must[*store.Store](g)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache-aside"), Program: "test", Sources: []string{storage}}))
	return newWorkingBenchOn(g, s, g)
}

// told is what an event of all tasks says of labels and the trash.
type told struct {
	Type    string    `json:"type"`
	Task    string    `json:"task_id"`
	Source  string    `json:"source"`
	Title   *string   `json:"title"`
	Tags    *[]string `json:"tags"`
	Pinned  *bool     `json:"pinned"`
	Deleted *bool     `json:"deleted"`
	Purged  bool      `json:"purged"`
	Hidden  bool      `json:"hidden"`
	Name    string    `json:"name"`
}

func (s *stream) told() (f frame, out told) {
	s.t.Helper()
	f = s.take(1)[0]
	if err := json.Unmarshal([]byte(f.Data), &out); err != nil || out.Type != f.Type {
		s.t.Fatal(err, f)
	}
	return f, out
}

// What people file a task of another tool under, and every task's way into the trash and
// back, are events of all tasks: each once, live and behind every cursor.
func TestWhatTheOverlaySaysIsAnEvent(t *testing.T) {
	g := newBench(t)
	const id = "0199aaaa-0000-7000-8000-00000000000b"
	w := g.aside(id)
	other := fixture.Must[store.Ref](t)(w.store.Find(t.Context(), id))
	s := w.follow("/v1/events?types=task.*")
	own, foreign := "/v1/tasks/"+g.id, "/v1/tasks/"+id
	yes, no := true, false
	title, bare, tags := "beds", "", []string{"garden", "may"}
	var seen []frame
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     told
	}{
		{"title", "PATCH", foreign, `{"title":"beds"}`, 200, told{Type: "task.changed", Title: &title}},
		{"tags", "PATCH", foreign, `{"tags":["garden","may"]}`, 200, told{Type: "task.changed", Tags: &tags}},
		{"favourite", "PATCH", foreign, `{"pinned":true}`, 200, told{Type: "task.changed", Pinned: &yes}},
		{"taken back", "POST", foreign + "/undo", `{}`, 200, told{Type: "task.changed", Pinned: &no}},
		{"no title", "PATCH", foreign, `{"title":null}`, 200, told{Type: "task.changed", Title: &bare}},
		{"hidden", "DELETE", foreign, "", 200, told{Type: "task.deleted", Deleted: &yes, Hidden: true, Name: other.Source + ":" + id}},
		{"shown again", "POST", "/v1/trash/" + other.Source + ":" + id + "/restore", `{}`, 200, told{Type: "task.changed", Deleted: &no}},
		{"own, deleted", "DELETE", own, "", 200, told{Type: "task.deleted", Deleted: &yes, Name: g.id}},
		{"own, restored", "POST", "/v1/trash/" + g.id + "/restore", `{}`, 200, told{Type: "task.changed", Deleted: &no}},
		{"own, deleted again", "POST", own + "/redo", `{}`, 200, told{Type: "task.deleted", Deleted: &yes, Name: g.id}},
		{"purged", "DELETE", "/v1/trash/" + g.id, "", 200, told{Type: "task.deleted", Deleted: &yes, Purged: true}},
	} {
		w.did(c.status, nil, c.method, c.path, c.body)
		f, got := s.told()
		c.want.Task, c.want.Source = id, other.Source
		if c.path != foreign && c.want.Name == g.id || c.name == "own, restored" || c.name == "purged" {
			c.want.Task, c.want.Source = g.id, "roost"
		}
		if want, is := fixture.Must[[]byte](t)(json.Marshal(c.want)), fixture.Must[[]byte](t)(json.Marshal(got)); c.want.Purged {
			if !got.Purged || got.Task != g.id || got.Name != "" {
				t.Errorf("%s: got %s, want got.Purged and got.Task = g.id and got.Name = \"\"", c.name, is)
			}
		} else if string(want) != string(is) {
			t.Errorf("%s: %s, want %s", c.name, is, want)
		}
		seen = append(seen, f)
	}
	for i, f := range seen {
		again := w.follow("/v1/events?types=task.*", "Last-Event-ID: "+f.ID)
		if diff := firstDifference(seen[i+1:], again.take(len(seen)-1-i)); diff != "" {
			t.Errorf("behind %s: %s", f.ID, diff)
		}
		again.resp.Body.Close()
	}
}
