package store

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/task"
)

// An imported task whose journal lacks commits that any witness in its folder knows as saved
// is as damaged in the new root as it was in the old one.
func TestAnImportedJournalThatLacksItsEndIsDamaged(t *testing.T) {
	witnesses := []string{"journal.lock", "journal.idx", watermarkName}
	for _, c := range []struct {
		name string
		cut  int
		kept []string // of the witnesses
		note string
	}{
		{"whole", 0, witnesses, ""},
		{"whole, without a witness", 0, nil, ""},
		{"the record of the lock", 1, witnesses[:1], "it came damaged"},
		{"the index", 1, witnesses[1:2], "it came damaged"},
		{"what was projected", 1, witnesses[2:], "it came damaged"},
		{"all of them", 2, witnesses, "it came damaged"},
		{"no journal", -1, witnesses, "its journal is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := open(t, t.TempDir())
			k := create(t, from, "short")
			commit(t, k, task.UI, uiRow(2, "one"))
			commit(t, k, task.UI, uiRow(3, "two"))
			closeTask(t, k)
			dir := filepath.Join(from.TasksDir(), "short")
			log := filepath.Join(dir, "journal.jsonl")
			if c.cut < 0 {
				check(t, os.Remove(log))
			} else {
				lines := bytes.SplitAfter(must[[]byte](t)(os.ReadFile(log)), []byte("\n"))
				check(t, os.WriteFile(log, bytes.Join(lines[:len(lines)-1-c.cut], nil), 0o600))
			}
			for _, name := range witnesses {
				if !slices.Contains(c.kept, name) {
					check(t, os.Remove(filepath.Join(dir, name)))
				}
			}

			s := open(t, t.TempDir())
			item := bring(t, s, dir, ImportOptions{}).Items[0]
			if item.Outcome != Imported || !item.ByteEqual {
				t.Fatalf("%+v", item)
			}
			if notes := strings.Join(item.Notes, "\n"); (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", item.Notes, c.note)
			}
			report := must[Report](t)(s.Check(t.Context(), []string{"short"}, CheckOptions{}))
			if damaged := c.cut > 0; damaged != (len(report.Damaged) > 0) {
				t.Errorf("damaged is %v, want %v: %+v", !damaged, damaged, report.Damaged)
			}
			if again := bring(t, s, dir, ImportOptions{}).Items[0]; again.Outcome != Same {
				t.Errorf("imported again: %+v", again)
			}
		})
	}
}
