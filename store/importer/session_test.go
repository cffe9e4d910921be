package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// Sessions and their subagents come in as verified copies, which are shown and go on by themselves.
func TestSessionsAreImported(t *testing.T) {
	data, dir, _ := storetest.ClineIndex(t)
	ctx := context.Background()
	before := storetest.Tree(t, data)
	root := t.TempDir()
	s := storetest.Open(t, root, data)
	list, away, err := importer.FindSource(ctx, s, "cline")
	if err != nil || len(away) != 0 || len(list) != 2 {
		t.Fatalf("got %+v %v %v, want no error and len(away) = 0 and len(list) = 2", list, away, err)
	}
	for _, dry := range []bool{true, false} {
		report := storetest.Must[api.Import](t)(importer.Run(ctx, s, list, importer.Options{DryRun: dry, Map: []importer.PathMap{{"/shed", "/barn"}}}))
		if report.Imported != 2 || report.Failed+report.Empty+report.Conflicts != 0 {
			t.Fatalf("dry %v: %+v", dry, report)
		}
		for _, item := range report.Items {
			if item.ByteEqual == dry || len(item.Notes) != 1 {
				t.Errorf("dry %v: %+v", dry, item)
			}
		}
	}
	if d := cmp.Diff(before, storetest.Tree(t, data)); d != "" {
		t.Errorf("the originals were changed: %s", d)
	}
	alone := storetest.Open(t, root)
	got := byID(storetest.List(t, alone, store.Filter{}))
	lead, sub := got[storetest.SessionID], got[storetest.SubagentID]
	if len(got) != 2 || lead.Title != "The gate" || lead.Status != "cancelled" || lead.Workspace != "/barn" || *lead.Usage.Cost != 12300 || !lead.Pinned || lead.Messages.API != 3 || len(lead.Damaged) != 0 {
		t.Errorf("%+v", lead)
	}
	if sub.ParentID != storetest.SessionID || sub.Title != "count the posts" || sub.Messages.API != 2 || sub.Status != "failed" {
		t.Errorf(`got %+v, want sub.ParentID = storetest.SessionID and sub.Title = "count the posts" and sub.Messages.API = 2 and sub.Status = "failed"`,
			sub)
	}
	// The copy and the original are one task, and a second import finds both there.
	if both := byID(storetest.List(t, s, store.Filter{})); len(both) != 2 || both[storetest.SessionID].Source != store.OwnSource || len(both[storetest.SubagentID].Copies) != 1 {
		t.Errorf("got %+v, want len(both) = 2 and both[storetest.SessionID].Source = store.OwnSource and len(both[storetest.SubagentID].Copies) = 1",
			both)
	}
	if again := storetest.Must[api.Import](t)(importer.Run(ctx, s, list, importer.Options{})); again.Same != 2 {
		t.Errorf("got %+v, want again.Same = 2", again)
	}
	// They go on in their place, with the transcript left as it is.
	o := storetest.Own(t, alone, storetest.SessionID)
	storetest.Commit(t, o.Task, task.API, storetest.APIRow(9, "user", "and the hinge"))
	storetest.Close(t, o.Task)
	if o.Forked != "" || storetest.Read(t, filepath.Join(root, "tasks", storetest.SessionID), roofmt.TranscriptName(storetest.SessionID)) != storetest.Read(t, dir, roofmt.TranscriptName(storetest.SessionID)) {
		t.Errorf("%+v", o)
	}
	if v := storetest.View(t, alone, storetest.SessionID); len(v.State.API()) != 4 || v.Summary.Usage.TokensIn != 100 {
		t.Errorf("got %+v, want len(v.State.API()) = 4 and v.Summary.Usage.TokensIn = 100", v.Summary)
	}
}

// Another session of the same id comes in under a new one, and its files keep their names.
func TestASessionInConflict(t *testing.T) {
	data, dir, _ := storetest.ClineIndex(t)
	root := t.TempDir()
	s := storetest.Open(t, root)
	bring(t, s, dir, importer.Options{})
	storetest.Write(t, dir, roofmt.TranscriptName(storetest.SessionID), strings.Replace(storetest.Read(t, dir, roofmt.TranscriptName(storetest.SessionID)), "mend the gate", "mend the fence", 1))
	storetest.Write(t, dir, storetest.SessionID+".json", strings.Replace(storetest.Read(t, dir, storetest.SessionID+".json"), "mend the gate", "mend the fence", 1))
	storetest.Check(t, os.Remove(filepath.Join(data, "db", "sessions.db")))
	report := bring(t, storetest.Open(t, root), dir, importer.Options{OnConflict: api.ConflictFork})
	forked := slices.IndexFunc(report.Items, func(i api.ImportedTask) bool { return i.Outcome == api.TaskForked })
	if report.Forked != 1 || report.Same != 1 {
		t.Fatalf("got %+v, want report.Forked = 1 and report.Same = 1", report)
	}
	item := byID(storetest.List(t, s, store.Filter{}))[report.Items[forked].ID]
	if item.Title != "mend the fence" || item.Messages.API != 3 {
		t.Errorf("got %+v, want item.Title = \"mend the fence\" and item.Messages.API = 3", item)
	}
}

func byID(list store.Listing) map[string]api.Summary {
	out := map[string]api.Summary{}
	for _, item := range list.Items {
		out[item.ID] = item
	}
	return out
}

// Roo's command line tool ends without a question. A task that it finished stays finished in a copy, and in one that continued.
func TestATaskOfRoosCommandLineStaysCompleted(t *testing.T) {
	storage := filepath.Join(t.TempDir(), ".vscode-mock", "global-storage")
	dir := filepath.Join(storage, "tasks", "done")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(0, "paint"), fmt.Sprintf(`{"ts":%d,"type":"say","say":"completion_result","text":"white"}`, storetest.TS0+1)))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(0, "user", "paint")))
	s := storetest.Open(t, t.TempDir())
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(t.Context(), s, storage))
	if got := storetest.Must[api.Import](t)(importer.Run(t.Context(), s, list, importer.Options{})); got.Imported != 1 {
		t.Fatalf("got %+v, want one imported task", got)
	}
	for _, when := range []string{"imported", "taken over"} {
		if got := storetest.List(t, s, store.Filter{}).Items; len(got) != 1 || got[0].Status != "completed" || got[0].Origin != roofmt.CLIOrigin {
			t.Errorf("%s: got %+v, want one completed task of the origin cli", when, got)
		}
		storetest.Close(t, storetest.Own(t, s, "done").Task)
	}
}
