package export

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	tasks "github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/labels"
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
		_, err = Archive(t.Context(), out, one(s.open("short")), nothingKept)
		fixture.NoError(t, err)
		fixture.NoError(t, out.Close())
		to, report := importedAnew(t, path)
		notes := strings.Join(report.Items[0].Notes, "\n")
		checked, err := doctor.Check(t.Context(), to, []string{"short"}, doctor.Options{})
		fixture.NoError(t, err)
		if report.Imported != 1 || (cut > 0) != strings.Contains(notes, "it was damaged already") || (cut > 0) != (len(checked.Damaged) > 0) {
			t.Errorf("%d commits cut: %+v\nchecked %+v", cut, report.Items[0], checked.Damaged)
		}
	}
}

// What a person named, tagged and pinned in Roost comes out of an archive, also of a task whose journal was rewound.
func TestAnArchiveHoldsTheLabelsOfOtherToolsTasks(t *testing.T) {
	for name, prepare := range map[string]func(s storage, ref store.Ref){
		"only read": func(storage, store.Ref) {},
		"continued, and rewound": func(s storage, ref store.Ref) {
			_, finish, err := tasks.Rewind(t.Context(), s.st, ref, tasks.RewindOptions{To: "#2"})
			fixture.NoError(t, err)
			fixture.NoError(t, finish(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"x"},{"ts":2,"type":"say","say":"text","text":"y"}]`,
				`[{"role":"user","content":"x","ts":1},{"role":"assistant","content":"y","ts":2}]`))
			ref := s.open("t1").Ref
			_, err := labels.Set(t.Context(), s.st, ref, labels.Change{Title: new("named"), Add: []string{"a", "b"}, Pinned: new(true)})
			fixture.NoError(t, err)
			prepare(s, ref)
			path := filepath.Join(t.TempDir(), "tasks.zip")
			fixture.NoError(t, ToFile(path, func(w io.Writer) error {
				_, err := Archive(t.Context(), w, one(s.open("t1")), nothingKept)
				return err
			}, nil))
			to, report := importedAnew(t, path)
			sum, err := labels.Row(t.Context(), to, to.OwnRef("t1"))
			fixture.NoError(t, err)
			if sum.Title != "named" || !slices.Equal(sum.Tags, []string{"a", "b"}) || !sum.Pinned {
				t.Errorf("got %q %v %v of %+v, want \"named\" [a b] true", sum.Title, sum.Tags, sum.Pinned, report.Items)
			}
		})
	}
}

// importedAnew imports an archive into a new root.
func importedAnew(t *testing.T, path string) (*store.Store, api.Import) {
	t.Helper()
	list, c, err := Unpack(path)
	fixture.NoError(t, err)
	defer c.Close()
	to, err := store.Open(store.Options{Root: t.TempDir(), Program: "test"})
	fixture.NoError(t, err)
	report, err := importer.Run(t.Context(), to, list, importer.Options{})
	fixture.NoError(t, err)
	return to, report
}
