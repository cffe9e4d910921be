package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

const sessionID = "1776200000000_ab3xz"

// clineData is a data folder of Cline's with one session.
func clineData(t *testing.T) (data, dir string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), ".cline", "data")
	dir = filepath.Join(data, "sessions", sessionID)
	write(t, dir, sessionID+".json", `{"version":1,"session_id":"`+sessionID+`","status":"completed","cwd":"/shed","prompt":"mend the gate","metadata":{}}`)
	write(t, dir, roofmt.TranscriptName(sessionID), `{
  "version": 1,
  "messages": [
    {"role":"user","content":[{"type":"text","text":"<user_input mode=\"act\">mend the gate</user_input>"}],"id":"a","ts":1776200000001},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"read_files","input":{"paths":["a"]}}],"id":"b","ts":1776200000002,"metrics":{"inputTokens":100,"outputTokens":7,"cacheReadTokens":40,"cacheWriteTokens":0,"cost":0.0123}},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","name":"read_files","content":"x"}],"id":"c","ts":1776200000003}
  ]
}
`)
	return data, dir
}

// A session is listed, shown and added up like every task.
func TestASessionIsATask(t *testing.T) {
	data, dir := clineData(t)
	before := tree(t, data)
	for _, source := range []string{data, filepath.Dir(dir), dir} {
		got := listing(t, open(t, t.TempDir(), source), Filter{})
		if len(got.Items) != 1 {
			t.Fatalf("%s: got %+v, want len(got.Items) = 1", source, got)
		}
		item := got.Items[0]
		if item.Title != "mend the gate" || item.TS != 1776200000003 || item.Tool != "cline" || item.Status != "completed" || item.Workspace != "/shed" ||
			item.Messages.API != 3 || len(item.Damaged) != 0 || item.Empty {
			t.Errorf("%s: %+v", source, item)
		}
		if u := item.Usage; u.TokensIn != 100 || u.TokensOut != 7 || u.CacheReads != 40 || u.Cost == nil || *u.Cost != 12300 {
			t.Errorf("%s: got %+v, want u.TokensIn = 100 and u.TokensOut = 7 and u.CacheReads = 40 and u.Cost != nil and *u.Cost = 12300",
				source, u)
		}
	}
	if d := cmp.Diff(before, tree(t, data)); d != "" {
		t.Errorf("looking changed it: %s", d)
	}
}

// Older tasks lie beside the sessions.
func TestBothLayoutsInOneFolder(t *testing.T) {
	data, _ := clineData(t)
	write(t, filepath.Join(data, "tasks", "old"), roofmt.UIName, array(uiRow(1, "old")))
	var got []string
	for _, r := range fixture.Must[[]Ref](t)(open(t, t.TempDir(), data).Refs(context.Background())) {
		got = append(got, r.ID)
	}
	if slices.Sort(got); !slices.Equal(got, []string{sessionID, "old"}) {
		t.Errorf("got %v, want slices.Equal(got, []string{sessionID, \"old\"})", got)
	}
}

// It goes on as a fork in Roost's root, and its own folder is left as it is.
func TestASessionGoesOnAsAFork(t *testing.T) {
	data, dir := clineData(t)
	before := tree(t, data)
	root := t.TempDir()
	s := open(t, root, data)
	o := own(t, s, sessionID)
	if o.Forked == "" || len(o.Task.State().API()) != 3 || o.Task.State().Settings.Workspace != "/shed" {
		t.Errorf(`got %+v, want o.Forked != "" and len(o.Task.State().API()) = 3 and o.Task.State().Settings.Workspace = "/shed"`,
			o)
	}
	commit(t, o.Task, task.API, apiRow(9, "assistant", "mended"))
	id := o.Task.Ref.ID
	closeTask(t, o.Task)
	if d := cmp.Diff(before, tree(t, data)); d != "" {
		t.Errorf("it was changed: %s", d)
	}
	again := own(t, s, sessionID)
	if again.Task.Ref.ID != id || !again.Again || len(again.Task.State().API()) != 4 || len(again.Task.Intakes()) != 0 {
		t.Errorf("again: %+v", again)
	}
	closeTask(t, again.Task)
	// Without the original the fork is whole.
	fixture.NoError(t, os.RemoveAll(dir))
	if v := view(t, s, id); len(v.State.API()) != 4 || v.Summary.Usage.TokensIn != 100 {
		t.Errorf("got %+v, want len(v.State.API()) = 4 and v.Summary.Usage.TokensIn = 100", v.Summary)
	}
}

// Messages that Cline adds to a session get rows in its fork, too, as long as all rows of the fork are reconstructed.
func TestASessionThatGrowsGetsRows(t *testing.T) {
	data, dir := clineData(t)
	file := filepath.Join(dir, roofmt.TranscriptName(sessionID))
	s := open(t, t.TempDir(), data)
	s.opt.Rows = func(messages [][]byte) (list [][]byte) {
		for i, m := range messages {
			if ts := esjson.IntOf(m, "ts"); ts != 1776200000003 { // a result has no row
				list = append(list, []byte(uiRow(i, fmt.Sprint(ts))))
			}
		}
		return list
	}
	o := own(t, s, sessionID)
	fork := o.Task.Ref
	closeTask(t, o.Task)
	grow := func(ts int) {
		old := string(fixture.Must[[]byte](t)(os.ReadFile(file)))
		row := fmt.Sprintf(`,{"role":"user","content":[{"type":"text","text":"more"}],"id":"m%d","ts":%d}]`, ts, ts)
		write(t, dir, filepath.Base(file), strings.Replace(old, "\n  ]", row, 1)+"\n")
	}
	check := func(by Ref, api, ui int) {
		t.Helper()
		o := fixture.Must[*Owned](t)(s.Own(t.Context(), by))
		if a, u := len(o.Task.State().API()), len(o.Task.State().UI()); a != api || u != ui {
			t.Errorf("got %d messages and %d rows, want %d and %d", a, u, api, ui)
		}
		closeTask(t, o.Task)
	}
	original := foreignRef(t, s, sessionID)
	check(original, 3, 2)
	grow(1776200000004)
	check(original, 4, 3)
	check(fork, 4, 3)
	write(t, dir, filepath.Base(file), strings.Replace(string(fixture.Must[[]byte](t)(os.ReadFile(file))), "]\n", "\n  ]\n", 1))
	grow(1776200000005)
	check(fork, 5, 4)
	check(original, 5, 4)
}

// Where a session was begun its manifest says; else it follows from where the folder lies.
func TestASessionSaysWhereItWasBegun(t *testing.T) {
	for source, want := range map[string]string{"cli": "cli", "api": "api", "vscode": "extension", "": "extension"} {
		data, dir := clineData(t)
		write(t, dir, sessionID+".json", `{"version":1,"session_id":"`+sessionID+`","source":"`+source+`","status":"completed","cwd":"/shed","prompt":"mend the gate","metadata":{}}`)
		s := fixture.Must[*Store](t)(Open(Options{Root: filepath.Join(t.TempDir(), "root"), Sources: []string{data}}))
		list := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
		if len(list.Items) != 1 || list.Items[0].Origin != want {
			t.Errorf("source %q: %+v, want origin %s", source, list.Items, want)
		}
		if got := slices.Contains(list.Items[0].Inferred, "origin"); got != (want == "extension") {
			t.Errorf("source %q: the origin is inferred: %v", source, got)
		}
	}
}
