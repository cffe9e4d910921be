package roofmt_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
)

func TestSubagentsAreTasks(t *testing.T) {
	dir := session(t, transcript(4), manifest)
	sessions := filepath.Dir(dir)
	write(t, dir, map[string]string{
		"bob.messages.json": transcript(2), "ann__t7.messages.json": transcript(3), ".messages.json": "{}", sid + ".compaction.json": "{}", "notes.json": "{}",
	})
	mkdirs(t, filepath.Join(dir, "folder.messages.json"), filepath.Join(sessions, "1776200000001_empty"))
	if err := os.Symlink(filepath.Join(dir, "bob.messages.json"), filepath.Join(dir, "link.messages.json")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		sessions: {sid, "1776200000001_empty", sid + "__ann__t7", sid + "__bob"},
		dir:      {sid, sid + "__ann__t7", sid + "__bob"},
	} {
		l, err := roofmt.Find(context.Background(), path)
		var got []string
		for _, f := range l.Tasks {
			got = append(got, f.ID)
			tasks, id := roofmt.PlaceOf(f.Dir)
			if tasks != sessions || id != f.ID || !api.ValidTaskID(f.ID) {
				t.Errorf("%+v is %s in %s", f, id, tasks)
			}
		}
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v, want %v (%v)", path, got, want, err)
		}
	}
	f := read(t, filepath.Join(dir, "bob.messages.json"))
	if f.ID != sid+"__bob" || f.API.Len() != 2 || f.UI.Len() != 0 || f.Tool != roofmt.Cline || f.Empty() || damaged(f) {
		t.Errorf("got %+v %+v, want f.ID = sid+\"__bob\" and f.API.Len() = 2 and f.UI.Len() = 0 and f.Tool = roofmt.Cline and not f.Empty() and no losses",
			f, f.API)
	}
	if want := `"parentTaskId":"` + sid + `","rootTaskId":"` + sid + `","workspace":"/w"`; !strings.Contains(string(f.Row), want) {
		t.Errorf("%s lacks %s", f.Row, want)
	}
	prints, err := roofmt.Prints(f.Dir)
	if err != nil || len(prints) != 1 || prints["bob.messages.json"] != f.API.SourcePrint {
		t.Errorf("got %+v (%v), want no error and len(prints) = 1 and prints[\"bob.messages.json\"] = f.API.SourcePrint",
			prints, err)
	}
}

func TestSubagentsThatAreNotWhole(t *testing.T) {
	dir := session(t, transcript(1), manifest)
	path := filepath.Join(dir, "bob.messages.json")
	for name, c := range map[string]struct {
		text           string
		messages       int
		damaged, empty bool
	}{
		"cut":       {transcript(3)[:len(transcript(3))-120], 2, true, false},
		"no byte":   {"", 0, true, true},
		"no object": {"[]", 0, true, false},
		"begun":     {`{"version":1,"messages":[]}`, 0, false, true},
	} {
		write(t, dir, map[string]string{"bob.messages.json": c.text})
		if f := read(t, path); f.API.Len() != c.messages || damaged(f) != c.damaged || f.Empty() != c.empty {
			t.Errorf("%s: %d messages, damaged %v, empty %v: %+v", name, f.API.Len(), damaged(f), f.Empty(), f.Losses)
		}
	}
	if _, err := roofmt.Read(context.Background(), filepath.Join(dir, "gone.messages.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want errors.Is(err, fs.ErrNotExist)", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := roofmt.Read(cancelled, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want errors.Is(err, context.Canceled)", err)
	}
}

// A copy of a session may have another name than its files.
func TestASessionUnderAnotherName(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string]string
		messages int
	}{
		"one with a manifest":   {map[string]string{sid + ".messages.json": transcript(4), sid + ".json": manifest, "bob.messages.json": transcript(2)}, 4},
		"the only one":          {map[string]string{"bob.messages.json": transcript(2)}, 2},
		"it cannot be told":     {map[string]string{"bob.messages.json": transcript(2), "ann.messages.json": transcript(2)}, 0},
		"its own list is there": {map[string]string{"bob.messages.json": transcript(2), roofmt.APIName: apiList(5)}, 5},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		if f := read(t, dir); f.API.Len() != c.messages {
			t.Errorf("%s: %d messages", name, f.API.Len())
		}
	}
}
