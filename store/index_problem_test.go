package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// An editor's own index that is damaged hides no task, and is no damage of any: but its
// source says so, in every list, until it is mended.
func TestADamagedIndexIsSaid(t *testing.T) {
	global := filepath.Join(t.TempDir(), "Code", "User", "globalStorage")
	roo := filepath.Join(global, "rooveterinaryinc.roo-cline")
	write(t, filepath.Join(roo, "tasks", "one"), roofmt.UIName, array(uiRow(1, "mend the gate")))
	cline := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	write(t, filepath.Join(cline, "tasks", "two"), roofmt.UIName, array(uiRow(1, "paint the gate")))
	sound := filepath.Join(t.TempDir(), "sound")
	write(t, filepath.Join(sound, "tasks", "three"), roofmt.UIName, array(uiRow(1, "oil the gate")))
	files := map[string]string{
		roo:   filepath.Join(global, "state.vscdb"),
		cline: filepath.Join(cline, "state", "taskHistory.json"),
	}
	for _, file := range files {
		write(t, filepath.Dir(file), filepath.Base(file), strings.Repeat("no index at all ", 700))
	}
	s := open(t, t.TempDir(), roo, cline, sound)
	s.opt.Cache = t.TempDir()
	waitForCalm()
	look := func(when string, want map[string]bool) {
		t.Helper()
		got := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
		if len(got.Items) != 3 {
			t.Errorf("%s: %d tasks", when, len(got.Items))
		}
		for _, item := range got.Items {
			if len(item.Damaged) > 0 {
				t.Errorf("%s: got %s: %+v, want len(item.Damaged) <= 0", when, item.ID, item.Damaged)
			}
		}
		bad := map[string]bool{}
		for _, src := range got.Sources {
			if src.State != readable {
				bad[src.Path] = true
			}
			if file := files[src.Path]; bad[src.Path] != (src.Problem != "") || bad[src.Path] && (src.State != partly || !strings.Contains(src.Problem, file) || src.Damaged != 0) {
				t.Errorf("%s: got %+v, want bad[src.Path] = (src.Problem != \"\") and (not bad[src.Path] or (src.State = partly and strings.Contains(src.Problem, file) and src.Damaged = 0))",
					when, src)
			}
		}
		if diff := cmp.Diff(want, bad); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", when, diff)
		}
	}
	before := tree(t, global)
	look("cold", map[string]bool{roo: true, cline: true})
	look("by what the last list kept", map[string]bool{roo: true, cline: true})
	if diff := cmp.Diff(before, tree(t, global)); diff != "" {
		t.Errorf("looking changed it: %s", diff)
	}
	write(t, filepath.Join(cline, "state"), "taskHistory.json", `[{"id":"two","ts":5,"task":"paint the gate"}]`)
	look("one is mended", map[string]bool{roo: true})
	fixture.NoError(t, os.Remove(files[roo]))
	look("the other is gone", map[string]bool{})
	look("and stays so", map[string]bool{})
	s.opt.Cache = ""
	write(t, filepath.Join(cline, "state"), "taskHistory.json", `[{"id":"two","ts":5,"ta`)
	look("without a cache", map[string]bool{cline: true})
}

// NULs are what is left of a history that had messages: the task is in the list, damaged.
func TestNULsAreNotNothing(t *testing.T) {
	storage := t.TempDir()
	for id, text := range map[string]string{"lost": strings.Repeat("\x00", 5000), "cut": "[", "nothing": "", "none": "[]"} {
		write(t, filepath.Join(storage, "tasks", id), roofmt.UIName, text)
	}
	write(t, filepath.Join(storage, "tasks", "lost"), roofmt.ItemName, `{"id":"lost","number":1,"ts":1776200000000,"task":"mend the gate","tokensIn":7,"tokensOut":1,"totalCost":0.5}`)
	got := fixture.Must[Listing](t)(open(t, t.TempDir(), storage).List(context.Background(), Filter{TaskFilter: api.TaskFilter{Sort: "newest"}}))
	if len(got.Items) != 2 || got.Items[0].ID != "lost" || got.Items[1].ID != "cut" {
		t.Fatalf(`got %+v, want len(got.Items) = 2 and got.Items[0].ID = "lost" and got.Items[1].ID = "cut"`,
			got.Items)
	}
	lost := got.Items[0]
	if lost.Title != "mend the gate" || lost.Empty || len(lost.Damaged) != 1 || lost.Usage.Cost == nil || *lost.Usage.Cost != 500_000 || lost.TS != 1776200000000 {
		t.Errorf("got %+v, want lost.Title = \"mend the gate\" and not lost.Empty and len(lost.Damaged) = 1 and lost.Usage.Cost != nil and *lost.Usage.Cost = 500_000 and lost.TS = 1776200000000",
			lost)
	}
	if src := got.Sources[1]; src.Tasks != 2 || src.Damaged != 2 || src.Empty != 2 {
		t.Errorf("got %+v, want src.Tasks = 2 and src.Damaged = 2 and src.Empty = 2", src)
	}
}
