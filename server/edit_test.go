package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"

	"github.com/roost-dev/roost/engine/setup"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
)

// painter is a model that writes a file twice and ends.
const painter = `
- text: first
  tools: [{name: write_to_file, input: {path: wall.txt, content: "red\n"}}]
- text: second
  tools: [{name: write_to_file, input: {path: wall.txt, content: "blue\n"}}]
- tools: [{name: attempt_completion, input: {result: "painted"}}]
`

// editBench is a fixture whose server has an engine, with a task that wrote a file twice.
type editBench struct {
	*bench
	engine *engine.Engine
}

func newEditBench(t testing.TB, change ...func(*testOptions)) *editBench {
	t.Helper()
	w := &editBench{}
	w.bench = newBench(t, append([]func(*testOptions){func(o *testOptions) {
		w.engine = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
		o.Engine = w.engine
		t.Cleanup(func() {
			if err := w.engine.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}}, change...)...)
	w.file("painter.yaml", painter)
	w.id = w.run(engine.Request{Text: "paint the wall", Choice: setup.Choice{Workspace: w.path2("ws"), Provider: "script", Model: w.path2("painter.yaml"), Approve: "all"}})
	return w
}

func (w *editBench) path2(name string) string { return filepath.Join(w.dir, name) }

func (w *editBench) file(name, text string) {
	w.Helper()
	if err := os.WriteFile(w.path2(name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *editBench) wall() string {
	data, err := os.ReadFile(w.path2("ws/wall.txt"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// send sends a body and gives the answer whole.
func (w *editBench) send(method, path, body string, headers ...string) (*http.Response, []byte) {
	w.Helper()
	req := fixture.Must[*http.Request](w)(http.NewRequest(method, w.url+path, strings.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp := fixture.Must[*http.Response](w)(client.Do(req))
	defer resp.Body.Close()
	return resp, fixture.Must[[]byte](w)(io.ReadAll(resp.Body))
}

// did sends what must be done, and reads the document.
func did[T any](w *editBench, status int, path, body string, headers ...string) (doc T) {
	w.Helper()
	resp, data := w.send("POST", path, body, headers...)
	if resp.StatusCode != status {
		w.Fatalf("POST %s %s: %s\n%s", path, body, resp.Status, data)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil {
		w.Fatalf("%s: got %v, want no error", data, err)
	}
	return doc
}

// refuses sends what must be refused.
func (w *editBench) refuses(status int, code, path, body string, headers ...string) api.Problem {
	w.Helper()
	resp, data := w.send("POST", path, body, headers...)
	var p api.Problem
	if err := json.Unmarshal(data, &p); err != nil || resp.StatusCode != status || p.Code != code || resp.Header.Get("Content-Type") != "application/problem+json" {
		w.Errorf("POST %s %s: %s, want %d %s\n%s", path, body, resp.Status, status, code, data)
	}
	return p
}

func (w *editBench) histories() [2]string {
	w.Helper()
	messages, _, _ := strings.Cut(string(w.get(w.path("/messages"))), `,"notices":`) // what was done to files stays told
	return [2]string{messages, string(w.get(w.path("/history")))}
}

func TestRewindUndoAndRedoOverHTTP(t *testing.T) {
	w := newEditBench(t)
	whole := w.histories()
	// A follower hears of each, as of everything else that happens.
	heard := w.follow(w.path("/events"))

	dry := did[api.Rewound](w, 200, w.path("/rewinds"), `{"dry_run":true}`)
	if !dry.DryRun || dry.Turns != 1 || dry.Restore != nil || w.histories() != whole {
		t.Errorf("the dry run of a turn: %+v", dry)
	}
	took := did[api.Rewound](w, 200, w.path("/rewinds"), `{"to":"#3"}`)
	if took.ID != w.id || took.To == nil || took.To.Number != 3 || took.Branch == "" || took.Gone.UI == 0 {
		t.Errorf("the rewind: %+v", took)
	}
	back := w.histories()
	if back == whole {
		t.Fatal("the rewind changed nothing")
	}
	list := fixture.Must[api.TaskActions](t)(decodeAs[api.TaskActions](w.get(w.path("/undo"))))
	if len(list.Undo) != 1 || list.Undo[0].Kind != "rewind" || len(list.Redo) != 0 {
		t.Fatalf("what can be taken back: %+v", list)
	}
	w.refuses(409, "changed_meanwhile", w.path("/undo"), `{"expect":"journal-1"}`)
	would := did[api.Undone](w, 200, w.path("/undo"), `{"dry_run":true}`)
	if !would.DryRun || would.Undone == nil || would.Undone.ID != list.Undo[0].ID || w.histories() != back {
		t.Errorf("the dry run of an undo: %+v", would)
	}
	undone := did[api.Undone](w, 200, w.path("/undo"), `{"expect":"`+list.Undo[0].ID+`"}`)
	if undone.Undone == nil || undone.Redone != nil || len(undone.Redo) != 1 {
		t.Errorf("the undo: %+v", undone)
	}
	if diff := cmp.Diff(whole, w.histories()); diff != "" {
		t.Errorf("histories behind the undo:\n%s", diff)
	}
	redone := did[api.Undone](w, 200, w.path("/redo"), ``)
	if redone.Redone == nil || redone.Redone.ID != list.Undo[0].ID || w.histories() != back {
		t.Errorf("the redo: %+v", redone)
	}
	w.refuses(404, "nothing_to_redo", w.path("/redo"), `{}`)
	branches := fixture.Must[api.BranchTree](t)(decodeAs[api.BranchTree](w.get(w.path("/branches"))))
	if len(branches.Items) != 2 {
		t.Errorf("branches: %+v", branches)
	}
	var types []string
	for len(types) < 3 {
		f, ok := heard.next()
		if !ok {
			t.Fatal("the stream ended behind", types)
		}
		if strings.HasPrefix(f.Type, "history.") {
			types = append(types, f.Type)
		}
	}
	if diff := cmp.Diff([]string{"history.rewound", "history.undone", "history.undone"}, types); diff != "" {
		t.Errorf("what a follower heard:\n%s", diff)
	}
}

func decodeAs[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

func TestRewindsThatCannotBe(t *testing.T) {
	w := newEditBench(t)
	before := w.histories()
	for _, c := range []struct {
		status             int
		code, path, body   string
		pointer, suggested string
	}{
		{404, "message_not_found", "/rewinds", `{"to":"#99"}`, "", "#"},
		{422, "bad_reference", "/rewinds", `{"to":"yesterday"}`, "", ""},
		{404, "message_not_found", "/rewinds", `{"to":"~99"}`, "", ""},
		{422, "validation_failed", "/rewinds", `{"edit":"other words"}`, "/edit", ""},
		{422, "validation_failed", "/rewinds", `{"to":"#2","edit":" "}`, "/edit", ""},
		{422, "validation_failed", "/rewinds", `{"delete":true}`, "/delete", ""},
		{422, "validation_failed", "/rewinds", `{"on_conflict":"merge"}`, "/on_conflict", ""},
		{422, "validation_failed", "/rewinds", `{"files":true,"on_conflict":"burn"}`, "/on_conflict", ""},
		{422, "validation_failed", "/rewinds", `{"too":"#2"}`, "/too", ""},
		{422, "validation_failed", "/forks", `{"workspace":"here"}`, "/workspace", ""},
		{422, "validation_failed", "/forks", `{"workspace":"/none/such"}`, "/workspace", ""},
		{422, "validation_failed", "/forks", `{"provider":"nosuch"}`, "/provider", ""},
		{404, "branch_not_found", "/forks", `{"branch":"b999"}`, "", ""},
		{404, "message_not_found", "/forks", `{"at":"#99"}`, "", ""},
		{404, "nothing_to_undo", "/undo", `{}`, "", ""},
		{404, "checkpoint_not_found", "/checkpoints/c99/restore", `{}`, "", "c1"},
		{422, "validation_failed", "/checkpoints/c1/restore", `{"on_conflict":"burn"}`, "/on_conflict", ""},
		{422, "validation_failed", "/condense", `{"workspace":"here"}`, "/workspace", ""},
	} {
		p := w.refuses(c.status, c.code, w.path("%s", c.path), c.body)
		if c.pointer != "" && (len(p.Errors) == 0 || p.Errors[0].Parameter != c.pointer) {
			t.Errorf("%s %s: it names %+v, want %s", c.path, c.body, p.Errors, c.pointer)
		}
		if !strings.Contains(strings.Join(p.Suggestions, "\n"), c.suggested) {
			t.Errorf("%s %s: suggestions %q", c.path, c.body, p.Suggestions)
		}
		if p.Task != w.id {
			t.Errorf("%s %s: of task %q", c.path, c.body, p.Task)
		}
	}
	for _, path := range []string{"/rewinds", "/undo", "/redo", "/forks", "/condense", "/checkpoints", "/checkpoints/c1/restore"} {
		w.refuses(404, "task_not_found", "/v1/tasks/no-such-task"+path, `{}`)
	}
	w.refused(404, "checkpoint_not_found", "GET", w.path("/checkpoints/c99/diff"))
	if diff := cmp.Diff(before, w.histories()); diff != "" {
		t.Errorf("refusals changed the task:\n%s", diff)
	}
}

func TestCheckpointsOverHTTP(t *testing.T) {
	w := newEditBench(t)
	list := fixture.Must[api.Checkpoints](t)(decodeAs[api.Checkpoints](w.get(w.path("/checkpoints"))))
	if list.ID != w.id || len(list.Checkpoints) < 2 {
		t.Fatalf("the checkpoints: %+v", list)
	}
	diff := fixture.Must[api.Diff](t)(decodeAs[api.Diff](w.get(w.path("/checkpoints/0/diff"))))
	if len(diff.Files) != 1 || diff.Files[0].Path != "wall.txt" || diff.Files[0].Patch == "" {
		t.Errorf("from before everything to now: %+v", diff)
	}
	if stat := string(w.get(w.path("/checkpoints/0/diff?stat=true&path=wall.txt"))); strings.Contains(stat, `"patch"`) {
		t.Errorf("--stat has a patch: %s", stat)
	}
	saved := did[api.SavedCheckpoint](w, 200, w.path("/checkpoints"), ``)
	if saved.Saved || saved.Checkpoint != nil || saved.Task != w.id {
		t.Errorf("nothing differs, and it saved %+v", saved)
	}
	dry := did[api.RestoreResult](w, 200, w.path("/checkpoints/0/restore"), `{"dry_run":true}`)
	if !dry.DryRun || len(dry.Files) != 1 || w.wall() != "blue\n" {
		t.Errorf("the dry run: %+v, the wall is %q", dry, w.wall())
	}
	done := did[api.RestoreResult](w, 200, w.path("/checkpoints/newest/restore"), `{}`)
	if done.Outcome != "done" || w.wall() == "blue\n" {
		t.Errorf("the restore: %+v, the wall is %q", done, w.wall())
	}
	undone := did[api.Undone](w, 200, w.path("/undo"), `{}`)
	if undone.Restore == nil || w.wall() != "blue\n" {
		t.Errorf("the undo: %+v, the wall is %q", undone, w.wall())
	}

	w.file("ws/wall.txt", "somebody else's\n")
	p := w.refuses(409, "checkpoint_conflict", w.path("/checkpoints/0/restore"), `{}`)
	if !strings.Contains(p.Detail, "wall.txt") || w.wall() != "somebody else's\n" {
		t.Errorf("a conflict: %+v, the wall is %q", p, w.wall())
	}
	kept := did[api.RestoreResult](w, 200, w.path("/checkpoints/0/restore"), `{"on_conflict":"keep"}`)
	if len(kept.Conflicts) != 1 || w.wall() != "somebody else's\n" {
		t.Errorf("kept: %+v, the wall is %q", kept, w.wall())
	}
	saved = did[api.SavedCheckpoint](w, 201, w.path("/checkpoints"), ``)
	if !saved.Saved || saved.Checkpoint == nil || saved.Checkpoint.Reason != "manual" {
		t.Errorf("saved: %+v", saved)
	}
	if did[api.RestoreResult](w, 200, w.path("/checkpoints/0/restore"), `{"on_conflict":"overwrite"}`); w.wall() == "somebody else's\n" {
		t.Error("overwrite left the file")
	}
}

func TestRewindWithFilesOverHTTP(t *testing.T) {
	w := newEditBench(t)
	whole := w.histories()
	dry := did[api.Rewound](w, 200, w.path("/rewinds"), `{"to":"~2","files":true,"dry_run":true}`)
	if dry.Restore == nil || len(dry.Restore.Files) != 1 || w.wall() != "blue\n" || w.histories() != whole {
		t.Errorf("the dry run: %+v", dry)
	}
	took := did[api.Rewound](w, 200, w.path("/rewinds"), `{"to":"~2","files":true}`)
	if took.Restore == nil || took.Restore.Outcome != "done" || w.wall() != "red\n" {
		t.Errorf("the rewind: %+v, the wall is %q", took, w.wall())
	}
	did[api.Undone](w, 200, w.path("/undo"), `{}`)
	if diff := cmp.Diff(whole, w.histories()); diff != "" || w.wall() != "blue\n" {
		t.Errorf("behind the undo the wall is %q, and the histories:\n%s", w.wall(), diff)
	}
}

func TestCondenseOverHTTP(t *testing.T) {
	w := newEditBench(t)
	whole := w.histories()
	dry := did[api.Condensed](w, 200, w.path("/condense"), `{"dry_run":true}`)
	if !dry.DryRun || dry.Messages == 0 || dry.Condense != "" || w.histories() != whole {
		t.Errorf("the dry run: %+v", dry)
	}
	done := did[api.Condensed](w, 200, w.path("/condense"), `{"keep":"the colours"}`)
	if done.Task != w.id || done.Condense == "" || done.Messages != dry.Messages || done.Summary == "" || w.histories() == whole {
		t.Errorf("condensed: %+v", done)
	}
	w.refuses(409, "too_short", w.path("/condense"), `{}`)
	undone := did[api.Undone](w, 200, w.path("/undo"), `{}`)
	if undone.Undone == nil || undone.Undone.Kind != "condense" {
		t.Errorf("the undo: %+v", undone)
	}
}

func TestForksOverHTTP(t *testing.T) {
	w := newEditBench(t)
	dry := did[api.ForkResult](w, 200, w.path("/forks"), `{"at":"#3","dry_run":true}`)
	if !dry.DryRun || dry.ID != "" || dry.Messages.UI != 3 {
		t.Errorf("the dry run: %+v", dry)
	}
	w.refuses(422, "unknown_mode", w.path("/forks"), `{"mode":"nosuch"}`)
	w.refuses(422, "unknown_mode", w.path("/forks"), `{"mode":"nosuch","dry_run":true}`)
	resp, data := w.send("POST", w.path("/forks"), `{"at":"#3","title":"another way","mode":"ask"}`)
	made := fixture.Must[api.ForkResult](t)(decodeAs[api.ForkResult](data))
	if resp.StatusCode != 201 || resp.Header.Get("Location") != "/v1/tasks/"+made.ID || resp.Header.Get("Roost-Task-Id") != made.ID || made.From.ID != w.id {
		t.Fatalf("got %s %v\n%s, want resp.StatusCode = 201 and resp.Header.Get(\"Location\") = \"/v1/tasks/\"+made.ID and resp.Header.Get(\"Roost-Task-Id\") = made.ID and made.From.ID = w.id",
			resp.Status, resp.Header, data)
	}
	sum := fixture.Must[api.Summary](t)(decodeAs[api.Summary](w.get("/v1/tasks/" + made.ID)))
	if sum.Title != "another way" || sum.Origin != "api" || sum.Mode != "ask" || sum.Messages.UI != 3 {
		t.Errorf("the fork: %+v", sum)
	}
}

// B-24, 19.21.10: what was done is not done twice, whoever was killed in between.
func TestEditsWithAKeyAreDoneOnce(t *testing.T) {
	for name, c := range map[string]struct{ path, body string }{
		"condense":          {"/condense", `{}`},
		"restore":           {"/checkpoints/0/restore", `{}`},
		"fork":              {"/forks", `{"at":"#3"}`},
		"rewind":            {"/rewinds", `{}`},
		"rewind with files": {"/rewinds", `{"to":"~2","files":true}`},
		"rewind, no files":  {"/rewinds", `{"files":true}`},
		"undo":              {"/undo", `{}`},
		"redo":              {"/redo", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEditBench(t)
			switch name {
			case "undo":
				did[api.Rewound](w, 200, w.path("/rewinds"), `{}`)
				did[api.Rewound](w, 200, w.path("/rewinds"), `{}`)
			case "redo":
				did[api.Rewound](w, 200, w.path("/rewinds"), `{}`)
				did[api.Rewound](w, 200, w.path("/rewinds"), `{}`)
				did[api.Undone](w, 200, w.path("/undo"), `{}`)
				did[api.Undone](w, 200, w.path("/undo"), `{}`)
			}
			key := "Idempotency-Key: once-" + strings.Map(func(r rune) rune { return max(r, '-') }, name)
			first, one := w.send("POST", w.path("%s", c.path), c.body, key)
			if first.StatusCode/100 != 2 {
				t.Fatalf("got %s\n%s, want first.StatusCode/100 = 2", first.Status, one)
			}
			tasks, histories := w.get("/v1/tasks"), w.histories()
			again, two := w.send("POST", w.path("%s", c.path), c.body, key)
			if again.StatusCode != first.StatusCode || !bytes.Equal(one, two) || again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("again: %s\n%s\n%s", again.Status, one, two)
			}
			w.forgetOutcomes() // as a kill between the deed and the note of it leaves them
			again, two = w.send("POST", w.path("%s", c.path), c.body, key)
			if again.StatusCode != first.StatusCode || again.Header.Get("Location") != first.Header.Get("Location") {
				t.Errorf("behind a kill: %s\n%s", again.Status, two)
			}
			if diff := cmp.Diff(simplified(one), simplified(two)); diff != "" {
				t.Errorf("what a repeat behind a kill is told:\n%s", diff)
			}
			if !bytes.Equal(tasks, w.get("/v1/tasks")) || histories != w.histories() {
				t.Error("it was done twice")
			}
			if name != "fork" {
				return
			}
			var fork api.ForkResult
			fixture.NoError(t, json.Unmarshal(one, &fork))
			for of, want := range map[string]bool{w.id: true, fork.ID: false} { // a day later nothing is known of the key
				for _, name := range w.records() {
					fixture.NoError(t, os.Remove(name))
				}
				if got := did[api.ForkResult](w, 201, "/v1/tasks/"+of+c.path, c.body, key); (got.ID == fork.ID) != want {
					t.Errorf("a day later, of %s: got the fork %s, want the first one, %s: %v", of, got.ID, fork.ID, want)
				}
			}
		})
	}
}

// simplified leaves out what only who did it knew.
func simplified(doc []byte) map[string]any {
	var v map[string]any
	_ = json.Unmarshal(doc, &v)
	if r, ok := v["restore"].(map[string]any); ok {
		delete(r, "to")
	}
	for _, name := range []string{"to", "summary", "cost", "sent", "kept"} {
		delete(v, name)
	}
	return v
}

// forgetOutcomes takes the second line of each keyed request away.
func (w *editBench) forgetOutcomes() {
	w.Helper()
	names := fixture.Must[[]string](w)(filepath.Glob(filepath.Join(w.store.Root(), "server", "idempotency", "*.jsonl")))
	for _, name := range names {
		data := fixture.Must[[]byte](w)(os.ReadFile(name))
		if line, _, ok := bytes.Cut(data, []byte("\n")); ok {
			if err := os.WriteFile(name, append(line, '\n'), 0o600); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// B-04, 19.3: a task that a run works on is nobody else's to move.
func TestARunningTaskIsNotMoved(t *testing.T) {
	w := newEditBench(t)
	w.file("slow.yaml", strings.Repeat("- {text: slow, delay: 1h}\n", 50)) // past its last turn a script completes the task
	run := fixture.Must[engine.Ticket](t)(w.engine.Submit(context.Background(), engine.Request{Task: w.id, Text: "more", Choice: setup.Choice{Provider: "script", Model: w.path2("slow.yaml")}, Interactive: true}))
	for _, path := range []string{"/rewinds", "/undo", "/redo", "/condense", "/checkpoints", "/checkpoints/0/restore"} {
		p := w.refuses(409, "task_busy", w.path("%s", path), `{}`)
		if !p.Retryable || len(p.Suggestions) == 0 {
			t.Errorf("%s: got %+v, want p.Retryable and len(p.Suggestions) != 0", path, p)
		}
	}
	if f := did[api.ForkResult](w, 201, w.path("/forks"), `{}`); f.ID == "" {
		t.Error("a running task has no fork")
	}
	if got := fixture.Must[engine.RunInfo](t)(w.engine.CancelTask(context.Background(), w.id, "")); got.ID != run.ID {
		t.Errorf("cancelled %+v", got)
	}
}

func TestIfMatchGuardsEdits(t *testing.T) {
	w := newEditBench(t)
	resp := w.ask("GET", w.path(""))
	tag := resp.Header.Get("ETag")
	did[api.Rewound](w, 200, w.path("/rewinds"), `{}`, "If-Match: "+tag)
	before := w.histories()
	w.refuses(412, "etag_mismatch", w.path("/rewinds"), `{}`, "If-Match: "+tag)
	w.refuses(412, "etag_mismatch", w.path("/undo"), `{}`, "If-Match: "+tag)
	if w.histories() != before {
		t.Error("it was moved all the same")
	}
}
