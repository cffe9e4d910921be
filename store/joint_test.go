package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// The two files are one state: either both go in, or neither.
func TestHistoriesAreJudgedTogether(t *testing.T) {
	grownUI, grownAPI := with(fourRows, uiRow(5, "five")), with(threeAPI, apiRow(6, "assistant", "five"))
	memoryUI, memoryAPI := array(fourRows[0], fourRows[1], uiRow(7, "own")), array(threeAPI[0], threeAPI[1], apiRow(8, "user", "own"))
	keep := ""
	for name, c := range map[string]struct {
		ui, api string // "" = as Roost left it
		applied bool
		refused []string // files, in order
	}{
		"both grew":                           {grownUI, grownAPI, true, nil},
		"only the rows grew":                  {grownUI, keep, true, nil},
		"only the turns grew":                 {keep, grownAPI, true, nil},
		"rows from memory, turns grew":        {memoryUI, grownAPI, false, []string{roofmt.UIName, roofmt.APIName}},
		"rows grew, turns from memory":        {grownUI, memoryAPI, false, []string{roofmt.UIName, roofmt.APIName}},
		"both from memory":                    {memoryUI, memoryAPI, false, []string{roofmt.UIName, roofmt.APIName}},
		"rows made an empty list, turns grew": {"[]", grownAPI, false, []string{roofmt.UIName, roofmt.APIName}},
		"rows cut, turns grew":                {grownUI[:len(grownUI)-9], grownAPI, false, []string{roofmt.UIName, roofmt.APIName}},
		"turns lost, rows as they were":       {keep, "\x00\x00", false, []string{roofmt.APIName}},
		"rows respelled, turns from memory":   {"[ " + strings.Join(fourRows, " , ") + " ]", memoryAPI, false, []string{roofmt.APIName}},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, want := continued(t)
			before := map[string]string{roofmt.UIName: c.ui, roofmt.APIName: c.api}
			for file, text := range before {
				if text != keep {
					write(t, dir, file, text)
				}
			}
			if v := view(t, s, "live-one"); (rows(v.State) != want) != c.applied {
				t.Errorf("a reader sees %s", rows(v.State))
			}
			o := own(t, s, "live-one")
			var refused []string
			for _, in := range o.Task.Intakes() {
				if in.Refused != "" {
					refused = append(refused, in.File)
				}
				blob, err := o.Task.log.Blob(context.Background(), journal.Hash(in.Kept))
				fixture.NoError(t, err)
				if data := fixture.Must[[]byte](t)(blob.ReadAll()); string(data) != before[in.File] {
					t.Errorf("%s is kept as %q", in.File, data)
				}
				fixture.NoError(t, blob.Close())
			}
			if d := cmp.Diff(c.refused, refused); d != "" {
				t.Error(d)
			}
			if (rows(o.Task.State()) != want) != c.applied {
				t.Errorf("head is %s", rows(o.Task.State()))
			}
			closeTask(t, o.Task)
			if len(c.refused) > 0 && read(t, dir, roofmt.APIName) != array(threeAPI...) {
				t.Errorf("not put back: %s", read(t, dir, roofmt.APIName))
			}
			if again := own(t, s, "live-one"); len(again.Task.Intakes()) != 0 {
				t.Errorf("met again: %+v", again.Task.Intakes())
				closeTask(t, again.Task)
			} else {
				closeTask(t, again.Task)
			}
		})
	}
}

// An editor that dies between its two renames leaves no file under the name, and
// the whole of it beside.
func TestEditorKilledBetweenItsRenames(t *testing.T) {
	grownUI, grownAPI := with(fourRows, uiRow(5, "five")), with(threeAPI, apiRow(6, "assistant", "five"))
	for name, c := range map[string]struct {
		fresh, backup string // what stands beside, for the rows
		api           string
		ui            string // what the task says in the end; "" = as Roost left it
		refused       bool
	}{
		"with the new list":         {grownUI, array(fourRows...), grownAPI, grownUI, false},
		"with the new list torn":    {grownUI[:40], array(fourRows...), "", "", false},
		"with the old list only":    {"", array(fourRows...), "", "", false},
		"with a list from long ago": {"", array(fourRows[:2]...), "", "", false},
		"with a window's memory":    {array(fourRows[0], uiRow(7, "own")), "", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := continued(t)
			fixture.NoError(t, os.Remove(filepath.Join(dir, roofmt.UIName)))
			if c.fresh != "" {
				write(t, dir, ".ui_messages.json.new_200_a.tmp", c.fresh)
			}
			if c.backup != "" {
				write(t, dir, ".ui_messages.json.bak_201_a.tmp", c.backup)
			}
			if c.api != "" {
				write(t, dir, roofmt.APIName, c.api)
			}
			o := own(t, s, "live-one")
			refused := false
			for _, in := range o.Task.Intakes() {
				refused = refused || in.Refused != ""
			}
			if refused != c.refused {
				t.Errorf("got %+v, want refused = c.refused", o.Task.Intakes())
			}
			closeTask(t, o.Task)
			want := c.ui
			if want == "" {
				want = array(fourRows...)
			}
			if got := read(t, dir, roofmt.UIName); got != want {
				t.Errorf("rows are %s", got)
			}
		})
	}
}

// A window that writes the same memory again and again does not fill the journal.
func TestTheSameRefusalIsKeptOnce(t *testing.T) {
	s, dir, want := continued(t)
	memory := array(fourRows[0], uiRow(7, "window"))
	for range 3 {
		write(t, dir, roofmt.UIName, memory)
		o := own(t, s, "live-one")
		if len(o.Task.Intakes()) != 1 || o.Task.Intakes()[0].Kept == "" {
			t.Fatalf("the person is not told: %+v", o.Task.Intakes())
		}
		if got := o.Task.State(); len(got.Refused) != 1 || rows(got) != want {
			t.Errorf("%d refusals, %s", len(got.Refused), rows(got))
		}
		closeTask(t, o.Task)
	}
}

func TestIntakesWhileOwnedAreTold(t *testing.T) {
	s, dir, _ := continued(t)
	write(t, dir, roofmt.UIName, with(fourRows, uiRow(5, "before")))
	k := own(t, s, "live-one").Task
	if got := k.Intakes(); len(got) != 1 {
		t.Errorf("at first %+v", got)
	}
	commit(t, k, task.UI, uiRow(8, "ours"))
	write(t, dir, roofmt.UIName, with(fourRows, uiRow(5, "before"), uiRow(6, "meanwhile")))
	closeTask(t, k)
	got := k.Intakes()
	if len(got) != 2 || got[1].File != roofmt.UIName || got[1].Refused == "" || got[1].Lacking != 1 {
		t.Errorf("in the end %+v", got)
	}
}

// What the editor adds while we only watched goes in without a loss.
func TestEditorGoesOnWhileOwned(t *testing.T) {
	s, dir, _ := continued(t)
	k := own(t, s, "live-one").Task
	grown := with(fourRows, uiRow(5, "five"))
	fixture.NoError(t, k.Commit(context.Background(), task.FileChanged{Path: "a.go", Source: "read_tool"}))
	write(t, dir, roofmt.UIName, grown)
	closeTask(t, k)
	o := own(t, s, "live-one")
	if n := len(o.Task.State().UI()); n != 5 {
		t.Errorf("%d rows, intakes %+v", n, o.Task.Intakes())
	}
	closeTask(t, o.Task)
	if read(t, dir, roofmt.UIName) != grown {
		t.Errorf("rows %s", read(t, dir, roofmt.UIName))
	}
}

func TestDamagedSmallFilesAreKept(t *testing.T) {
	s, dir, _ := continued(t)
	broken := map[string]string{roofmt.ItemName: `{"id":"live-one","ts":`, roofmt.MetadataName: "\x00\x00\x00"}
	for name, text := range broken {
		write(t, dir, name, text)
	}
	o := own(t, s, "live-one")
	if len(o.Task.Intakes()) != 2 {
		t.Fatalf("got %+v, want len(o.Task.Intakes()) = 2", o.Task.Intakes())
	}
	for _, in := range o.Task.Intakes() {
		blob, err := o.Task.log.Blob(context.Background(), journal.Hash(in.Kept))
		fixture.NoError(t, err)
		if data := fixture.Must[[]byte](t)(blob.ReadAll()); string(data) != broken[in.File] {
			t.Errorf("%s is kept as %q", in.File, data)
		}
		fixture.NoError(t, blob.Close())
	}
	fixture.NoError(t, o.Task.Commit(context.Background(), task.FileChanged{Path: "b.go", Source: "read_tool"}))
	closeTask(t, o.Task)
	if got := read(t, dir, roofmt.ItemName); !strings.Contains(got, `"id":"live-one"`) || !strings.Contains(got, "novel") {
		t.Errorf("item %s", got)
	}
	// The editor's record is made again from the original that the adoption kept.
	if got := read(t, dir, roofmt.MetadataName); !strings.Contains(got, `"a.go"`) || !strings.Contains(got, `"b.go"`) {
		t.Errorf("record %s", got)
	}
}
