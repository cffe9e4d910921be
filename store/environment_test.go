package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// details are what a tool puts at the end of a request.
func details(dir, mode, model string) string {
	return "<environment_details>\n# Current Mode\n<slug>" + mode + "</slug>\n<model>" + model + "</model>\n# Current Workspace Directory (" + dir + ") Files\na\n</environment_details>"
}

func saidRow(ts int64, extra, text string) string {
	inner, _ := json.Marshal(map[string]any{"request": text, "tokensIn": 10, "tokensOut": 1, "cost": 0.5})
	quoted, _ := json.Marshal(string(inner))
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":%s%s}`, ts0+ts, quoted, extra)
}

func requestAPI(ts int64, text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"go on"},{"type":"text","text":%s}],"ts":%d}`, quoted, ts0+ts)
}

// A task that no index names says in its requests where it worked, how, and with what:
// the folder counts as it was first, mode and model as they were last.
func TestWhatNoIndexSaysIsInTheRequests(t *testing.T) {
	first, last := details("/home/ann/fence", "architect", "m-1"), details("/home/ann/other", "code", "m-2")
	type row struct{ Workspace, Mode, Model string }
	for name, c := range map[string]struct {
		ui, api, item string
		want          row
		inferred      []string
	}{
		"both histories": {
			array(uiRow(1, "paint"), saidRow(2, "", first), saidRow(5, "", last)), array(requestAPI(2, first), apiRow(3, "assistant", "ok"), requestAPI(5, last)), "",
			row{"/home/ann/fence", "code", "m-2"}, []string{"workspace", "mode", "model"},
		},
		"what the person saw alone": {
			array(uiRow(1, "paint"), saidRow(2, "", first), uiRow(3, "ok"), saidRow(5, "", last)), "", "",
			row{"/home/ann/fence", "code", "m-2"}, []string{"workspace", "mode", "model"},
		},
		"what the model saw alone": {
			"", array(requestAPI(2, first), apiRow(3, "assistant", "ok"), requestAPI(5, last)), "",
			row{"/home/ann/fence", "code", "m-2"}, []string{"workspace", "mode", "model"},
		},
		"a row of Cline, which names the model beside": {
			array(uiRow(1, "paint"), saidRow(2, `,"modelInfo":{"providerId":"p","modelId":"c-1"}`, "<environment_details>\n# Current Working Directory (c:/fence) Files\n</environment_details>")), "", "",
			row{`c:\fence`, "", "c-1"}, []string{"workspace", "model"},
		},
		"an index, which counts more": {
			array(uiRow(1, "paint"), saidRow(2, "", first)), "", `{"id":"a1","number":1,"ts":1,"task":"paint","workspace":"/w","mode":"ask"}`,
			row{"/w", "ask", "m-1"}, []string{"model"},
		},
		"requests that do not say it": {array(uiRow(1, "paint"), saidRow(2, "", "hello")), array(requestAPI(2, "hello")), "", row{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
			for file, text := range map[string]string{roofmt.UIName: c.ui, roofmt.APIName: c.api, roofmt.ItemName: c.item} {
				if text != "" {
					write(t, filepath.Join(storage, "tasks", "a1"), file, text)
				}
			}
			before := tree(t, storage)
			s := open(t, t.TempDir(), storage)
			sum := view(t, s, "a1").Summary
			if diff := cmp.Diff(c.want, row{sum.Workspace, sum.Mode, sum.Model}); diff != "" {
				t.Error(diff)
			}
			for _, field := range []string{"workspace", "mode", "model"} {
				if got := slices.Contains(sum.Inferred, field); got != slices.Contains(c.inferred, field) {
					t.Errorf("inferred: %v, want %v of these three", sum.Inferred, c.inferred)
				}
			}
			if diff := cmp.Diff(before, tree(t, storage)); diff != "" {
				t.Errorf("reading changed it: %s", diff)
			}
		})
	}
}

// A folder that a request names narrows a list.
func TestFolderOfARequestFiltersAList(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	write(t, filepath.Join(storage, "tasks", "a1"), roofmt.UIName,
		array(uiRow(1, "paint"), saidRow(2, "", details("/home/ann/fence", "code", "m-1")), saidRow(3, "", details("/home/ann/fence", "code", "m-2")), saidRow(4, "", "no details")))
	s := open(t, t.TempDir(), storage)
	for dir, want := range map[string]int{"/home/ann/fence": 1, "/home/ann": 0} {
		if got := fixture.Must[Listing](t)(s.List(context.Background(), Filter{TaskFilter: api.TaskFilter{Workspace: dir}})); len(got.Items) != want {
			t.Errorf("%d tasks of %s, want %d", len(got.Items), dir, want)
		}
	}
}

// Half of a character in a title does not keep a task from being remembered: when its
// storage is gone, it is still listed.
func TestATitleThatIsNoTextIsRemembered(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	write(t, filepath.Join(storage, "tasks", "a1"), roofmt.UIName, array(`{"ts":1700000000001,"type":"say","say":"text","text":"half \ud800 of it"}`))
	s, err := Open(Options{Root: t.TempDir(), Cache: t.TempDir(), Sources: []string{storage}, Program: "store test"})
	fixture.NoError(t, err)
	s.wait.Settle, s.calmIn = 0, 0
	list := func() string {
		got := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
		if len(got.Items) != 1 {
			t.Fatalf("%d tasks", len(got.Items))
		}
		return got.Items[0].Title
	}
	want := "half \ufffd of it"
	if got := list(); got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	fixture.NoError(t, os.Rename(storage, storage+".away"))
	if got := list(); got != want {
		t.Errorf("title %q when its storage is gone, want %q", got, want)
	}
}

// Where the first row is lost, what is said next is a title; what a tool says is none.
func TestATaskWithoutItsFirstRowHasATitle(t *testing.T) {
	for want, ui := range map[string]string{
		"next words": array("5", `{"ts":1,"type":[]}`, saidRow(2, "", "hello"), uiRow(3, " "), uiRow(4, " next words "), uiRow(5, "more")),
		"first":      array(uiRow(1, "first"), uiRow(2, "second")),
		"":           array("5", saidRow(2, "", "hello"), `{"ts":3,"type":"ask","ask":"tool","text":"{}"}`),
	} {
		storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
		write(t, filepath.Join(storage, "tasks", "a1"), roofmt.UIName, ui)
		if got := view(t, open(t, t.TempDir(), storage), "a1").Summary.Title; got != want {
			t.Errorf("title %q, want %q of %s", got, want, ui)
		}
	}
}
