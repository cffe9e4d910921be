package importer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// An imported task whose journal lacks commits that any witness in its folder knows as saved
// is as damaged in the new root as it was in the old one.
func TestAnImportedJournalThatLacksItsEndIsDamaged(t *testing.T) {
	witnesses := []string{"journal.lock", "journal.idx", "projection.json"}
	for _, c := range []struct {
		name string
		cut  int
		kept []string // of the witnesses
		note string
	}{
		{"whole", 0, witnesses, ""},
		{"whole, without a witness", 0, nil, ""},
		{"the record of the lock", 1, witnesses[:1], "it was damaged already"},
		{"the index", 1, witnesses[1:2], "it was damaged already"},
		{"what was projected", 1, witnesses[2:], "it was damaged already"},
		{"all of them", 2, witnesses, "it was damaged already"},
		{"no journal", -1, witnesses, "its journal is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := storetest.Open(t, t.TempDir())
			k := storetest.Create(t, from, "short")
			storetest.Commit(t, k, task.UI, storetest.UIRow(2, "one"))
			storetest.Commit(t, k, task.UI, storetest.UIRow(3, "two"))
			storetest.Close(t, k)
			dir := filepath.Join(from.TasksDir(), "short")
			log := filepath.Join(dir, "journal.jsonl")
			if c.cut < 0 {
				storetest.Check(t, os.Remove(log))
			} else {
				lines := bytes.SplitAfter(storetest.Must[[]byte](t)(os.ReadFile(log)), []byte("\n"))
				storetest.Check(t, os.WriteFile(log, bytes.Join(lines[:len(lines)-1-c.cut], nil), 0o600))
			}
			for _, name := range witnesses {
				if !slices.Contains(c.kept, name) {
					storetest.Check(t, os.Remove(filepath.Join(dir, name)))
				}
			}

			s := storetest.Open(t, t.TempDir())
			item := bring(t, s, dir, importer.Options{}).Items[0]
			if item.Outcome != api.TaskImported || !item.ByteEqual {
				t.Fatalf("got %+v, want item.Outcome = api.TaskImported and item.ByteEqual", item)
			}
			if notes := strings.Join(item.Notes, "\n"); (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", item.Notes, c.note)
			}
			report := storetest.Must[api.Checkup](t)(doctor.Check(t.Context(), s, []string{"short"}, doctor.Options{}))
			if damaged := c.cut > 0; damaged != (len(report.Damaged) > 0) {
				t.Errorf("damaged is %v, want %v: %+v", !damaged, damaged, report.Damaged)
			}
			if again := bring(t, s, dir, importer.Options{}).Items[0]; again.Outcome != api.TaskSame {
				t.Errorf("imported again: %+v", again)
			}
		})
	}
}
