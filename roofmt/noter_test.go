package roofmt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// transcriber notes every message in full.
type transcriber struct {
	kind roofmt.Kind
	list []string
	each func() // at every message
}

func (n *transcriber) Note(message *esjson.Index) {
	n.list = append(n.list, string(message.Raw(0)))
	if n.each != nil {
		n.each()
	}
}

// looking reads a folder with somebody looking on.
func looking(t fataler, dir string, each func()) *roofmt.Folder {
	f, err := roofmt.ReadNoting(context.Background(), dir, func(k roofmt.Kind) roofmt.Noter {
		return &transcriber{kind: k, each: each}
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// checkNotes: of a document with notes, they are those of its elements, in order, and of its history.
func checkNotes(t fataler, d *roofmt.Document) {
	n, ok := d.Notes.(*transcriber)
	if !ok {
		return
	}
	if want := elements(t, d); n.kind != d.Kind || !slices.Equal(n.list, want) {
		t.Fatalf("%s from %s (%s): noted %.300q of %s\nwant %.300q", d.Name, d.Source, d.State, n.list, n.kind, want)
	}
}

// Whichever file is used in the end, and however it was put together, the notes are of that one.
func TestNotesAreOfTheFileThatWasUsed(t *testing.T) {
	ui, bak, fresh := roofmt.UIName, ".ui_messages.json.bak_200_abc.tmp", ".ui_messages.json.new_199_abd.tmp"
	long := fmt.Sprintf(uiRow, 7, 7)
	long = strings.Replace(long, "row", strings.Repeat("long ", 500_000), 1) // it is not in memory when its end is found
	hole := func(text string) string {
		at := strings.Index(text, `"ts":1001`)
		return text[:at] + strings.Repeat("\x00", 40) + text[at+40:]
	}
	for _, c := range []struct {
		name   string
		files  map[string]string
		source string
		len    int
	}{
		{"its own", map[string]string{ui: uiList(3)}, ui, 3},
		{"nothing in it", map[string]string{ui: "[]"}, ui, 0},
		{"cut", map[string]string{ui: uiList(3)[:150]}, ui, 2},
		{"with a hole", map[string]string{ui: hole(uiList(6))}, ui, 5},
		{"twice in a row", map[string]string{ui: uiList(2) + uiList(3)}, ui, 5},
		{"a leftover", map[string]string{bak: uiList(2)}, bak, 2},
		{"the longer of two leftovers", map[string]string{ui: uiList(1)[:20], bak: uiList(2), fresh: uiList(3)}, fresh, 3},
		{"a long message", map[string]string{ui: "[" + long + "," + long + "," + long[:len(long)/2]}, ui, 2},
		{"a long message behind a hole", map[string]string{ui: "[\x00" + long + "]"}, ui, 1},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		f := looking(t, dir, nil)
		if f.UI.Source != c.source || f.UI.Len() != c.len || f.UI.Notes == nil {
			t.Errorf("%s: %d rows from %q, notes %v", c.name, f.UI.Len(), f.UI.Source, f.UI.Notes != nil)
		}
		checkNotes(t, f.UI)
		_ = f.Close()
	}
}

// Where what was noted may not be what will be read, there are no notes rather than wrong ones.
func TestDoubtfulNotesAreDropped(t *testing.T) {
	t.Run("which history it is", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, map[string]string{roofmt.LegacyName: `[{"role":"user","content":"x"}]`})
		f := looking(t, dir, nil)
		defer f.Close()
		if f.API.Len() != 1 || f.API.Notes != nil {
			t.Errorf("%d turns, notes %v", f.API.Len(), f.API.Notes)
		}
	})
	t.Run("whether it stands still", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, map[string]string{roofmt.UIName: uiList(3)})
		grown := 0
		f := looking(t, dir, func() {
			grown++
			if err := os.WriteFile(filepath.Join(dir, roofmt.UIName), []byte(uiList(3+grown)), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		defer f.Close()
		if !f.UI.Unstable || f.UI.Notes != nil {
			t.Errorf("unstable %v, notes %v", f.UI.Unstable, f.UI.Notes)
		}
	})
	t.Run("whether it is there", func(t *testing.T) {
		dir := t.TempDir()
		f := looking(t, dir, nil)
		defer f.Close()
		if f.UI.Notes != nil || f.API.Notes != nil || !f.Empty() {
			t.Errorf("got %+v %+v, want f.UI.Notes = nil and f.API.Notes = nil and f.Empty()", f.UI, f.API)
		}
	})
}
