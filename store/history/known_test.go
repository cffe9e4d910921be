package history_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/task"
)

// knownFiles are the paths and states of task_metadata.json.
func knownFiles(t *testing.T, dir string) (out string) {
	t.Helper()
	list, _ := esjson.Get([]byte(storetest.Read(t, dir, roofmt.MetadataName)), "files_in_context")
	for raw := range esjson.Array(list) {
		path, _ := esjson.GetString(raw, "path")
		state, _ := esjson.GetString(raw, "record_state")
		out += path + " " + state + "; "
	}
	return out
}

// What another tool's requests name, a fork of the task knows as the task does: its folder, mode and model.
func TestAForkKnowsWhatTheRequestsName(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "roo")
	dir := filepath.Join(storage, "tasks", "a1")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "paint"), storetest.UIRow(2, "ok")))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(
		`{"role":"user","content":[{"type":"text","text":"paint"},{"type":"text","text":"<environment_details>\n`+
			`# Current Mode\n<slug>ask</slug>\n<model>m-1</model>\n# Current Workspace Directory (/w) Files\n</environment_details>"}]}`,
		storetest.APIRow(2, "assistant", "ok")))
	s := storetest.Open(t, t.TempDir(), storage)
	fork, finish, err := history.Fork(t.Context(), s, storetest.Find(t, s, "a1"), history.ForkOptions{})
	storetest.Check(t, err)
	storetest.Check(t, finish(t.Context()))
	for _, id := range []string{"a1", fork.ID} {
		sum := storetest.View(t, s, id).Summary
		if sum.Workspace != "/w" || sum.Mode != "ask" || sum.Model != "m-1" {
			t.Errorf("%s: got the folder %q, the mode %q and the model %q, want /w, ask and m-1", id, sum.Workspace, sum.Mode, sum.Model)
		}
	}
}

// The title of a fork is that of the other task, also where the overlay has it.
func TestAForkTakesTheTitleOver(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	s := storetest.Open(t, t.TempDir(), storage)
	worked(t, s, "mine")
	for _, id := range []string{"mine", "theirs"} {
		storetest.Label(t, s, id, labels.Change{Title: new("named " + id)})
		for given, want := range map[string]string{"": "named " + id, "another": "another"} {
			f, finish, err := history.Fork(t.Context(), s, storetest.Must[store.Ref](t)(s.Find(t.Context(), id)), history.ForkOptions{Title: given})
			storetest.Check(t, err)
			storetest.Check(t, finish(t.Context()))
			if got := s.SummaryOf(t.Context(), s.OwnRef(f.ID)).Title; got != want {
				t.Errorf("a fork of %s with the title %q is called %q, want %q", id, given, got, want)
			}
		}
	}
}

// A fork of an editor's task knows the files that the editor knew, and of Roost's own
// records just those of its history.
func TestAForkKnowsTheEditorsFiles(t *testing.T) {
	ctx := context.Background()
	storage, dir := storetest.RooStorage(t, "theirs")
	s := storetest.Open(t, t.TempDir(), storage)
	k := storetest.Own(t, s, "theirs").Task
	ref := k.Ref
	storetest.Commit(t, k, task.UI, storetest.UIRow(3, "three"))
	storetest.Check(t, k.Commit(ctx, storetest.Message(k, task.API, storetest.APIRow(3, "user", "three")), task.FileChanged{Path: "a.go", Source: "read_tool"}))
	storetest.Commit(t, k, task.UI, storetest.UIRow(4, "four"))
	storetest.Check(t, k.Commit(ctx, storetest.Message(k, task.API, storetest.APIRow(4, "assistant", "four")), task.FileChanged{Path: "b.go", Source: "roo_edited"}))
	storetest.Close(t, k)
	if got := knownFiles(t, dir); got != "a.go stale; a.go active; b.go active; " {
		t.Fatal(got)
	}
	fork := func(from store.Ref, at string) store.Ref {
		t.Helper()
		f, finish, err := history.Fork(ctx, s, from, history.ForkOptions{At: at})
		storetest.Check(t, err)
		storetest.Check(t, finish(ctx))
		return storetest.Must[store.Ref](t)(s.Find(ctx, f.ID))
	}
	for at, want := range map[string]string{
		"#2": "a.go active; ", "#3": "a.go stale; a.go active; ", "": "a.go stale; a.go active; b.go active; ",
	} {
		one := fork(ref, at)
		if got := knownFiles(t, one.Dir); got != want {
			t.Errorf("forked at %q: %s", at, got)
		}
		if got := knownFiles(t, fork(one, "").Dir); got != want {
			t.Errorf("a fork of the fork at %q: %s", at, got)
		}
	}
	// What the editor learned since is its own too; without the file what it knew at first.
	storetest.Write(t, dir, roofmt.MetadataName, `{"files_in_context":[{"path":"a.go","record_state":"active"},{"path":"c.go","record_state":"active","record_source":"file_mentioned","roo_read_date":7}],"more":1}`)
	late := fork(ref, "#2")
	if got := knownFiles(t, late.Dir); got != "a.go active; c.go active; " {
		t.Errorf("after the editor went on: %s", got)
	}
	if more, _ := esjson.GetInt([]byte(storetest.Read(t, late.Dir, roofmt.MetadataName)), "more"); more != 1 {
		t.Error("a member that nobody knows is gone")
	}
	storetest.Write(t, dir, roofmt.MetadataName, `{`)
	if got := knownFiles(t, fork(ref, "#2").Dir); got != "a.go active; " {
		t.Errorf("of a file that is no JSON: %s", got)
	}
	storetest.Write(t, dir, roofmt.MetadataName, `{"files_in_context":[]}`)
	if report := storetest.Must[api.Checkup](t)(doctor.Check(ctx, s, nil, doctor.Options{})); len(report.Damaged) > 0 {
		t.Errorf("doctor: %+v", report.Damaged)
	}
	// It is derived: without the file it comes again from the fork's own log.
	storetest.Check(t, os.Remove(filepath.Join(late.Dir, roofmt.MetadataName)))
	storetest.Close(t, storetest.Own(t, s, late.ID).Task)
	if got := knownFiles(t, late.Dir); got != "a.go active; c.go active; " {
		t.Errorf("made again: %s", got)
	}
}
