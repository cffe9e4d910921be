package export

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// An archive says how far a journal went, also when nothing of the place that knew it is in the archive.
func TestAnArchivedJournalThatLacksItsEndIsDamaged(t *testing.T) {
	for _, cut := range []int{0, 2} {
		s := newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"x"}]`, "[]"))
		own, err := s.st.Create(t.Context(), task.Created{Task: "short", Number: 1, CreatedAt: 1},
			task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text","text":"one"}`)}},
			task.MessageAdded{History: task.UI, Message: 2, Body: task.Body{Raw: []byte(`{"ts":2,"type":"say","say":"text","text":"two"}`)}})
		fixture.NoError(t, err)
		fixture.NoError(t, own.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: 3, Body: task.Body{Raw: []byte(`{"ts":3,"type":"say","say":"text","text":"three"}`)}}))
		fixture.NoError(t, own.Close(t.Context()))
		dir := own.Ref.Dir
		log, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
		fixture.NoError(t, err)
		lines := bytes.SplitAfter(log, []byte("\n"))
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), bytes.Join(lines[:len(lines)-1-cut], nil), 0o600))
		fixture.NoError(t, os.Remove(filepath.Join(dir, "projection.json"))) // the archive would hold it
		if _, err := os.Stat(filepath.Join(dir, roofmt.UIName)); err != nil {
			t.Fatal(err)
		}

		path := filepath.Join(t.TempDir(), "short.zip")
		out, err := os.Create(path)
		fixture.NoError(t, err)
		_, err = Archive(t.Context(), out, one(s.open("short")))
		fixture.NoError(t, err)
		fixture.NoError(t, out.Close())
		list, c, err := Unpack(path)
		fixture.NoError(t, err)
		defer c.Close()
		to, err := store.Open(store.Options{Root: t.TempDir(), Program: "test"})
		fixture.NoError(t, err)
		report, err := importer.Run(t.Context(), to, list, importer.Options{})
		fixture.NoError(t, err)
		notes := strings.Join(report.Items[0].Notes, "\n")
		checked, err := doctor.Check(t.Context(), to, []string{"short"}, doctor.Options{})
		fixture.NoError(t, err)
		if report.Imported != 1 || (cut > 0) != strings.Contains(notes, "it was damaged already") || (cut > 0) != (len(checked.Damaged) > 0) {
			t.Errorf("%d commits cut: %+v\nchecked %+v", cut, report.Items[0], checked.Damaged)
		}
	}
}
