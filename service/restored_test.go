package service

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// A repeated call describes what the first one did in the same words: a file whose mode alone went back is not one whose
// content was written.
func TestARestoreThatIsReadFromTheJournal(t *testing.T) {
	t.Parallel()
	file := func(hash string, mode uint32) api.FileVersion {
		return api.FileVersion{Kind: api.KindFile, Hash: hash, Mode: mode, Size: 10}
	}
	gone := api.FileVersion{Kind: api.KindGone}
	var raw []json.RawMessage
	for _, e := range []task.Event{
		task.RestoreBegun{Restore: "r", To: 1, Files: []task.RestoreFile{
			{Path: "made", From: gone, To: file("a", 0o644), How: "restore"},
			{Path: "mode", From: file("a", 0o755), To: file("a", 0o644), How: "restore"},
			{Path: "removed", From: file("a", 0o644), To: gone, How: "overwrite"},
			{Path: "written", From: file("a", 0o644), To: file("b", 0o644), How: "merge"},
		}, Kept: []string{"theirs"}},
		task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone},
	} {
		line, err := task.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, line)
	}
	got := restoredBy("t", []journal.Commit{{Events: raw}})
	want := []api.RestoreItem{
		{Path: "made", Change: "added", How: "restore", Size: 10},
		{Path: "mode", Change: "mode", How: "restore"},
		{Path: "removed", Change: "deleted", How: "overwrite"},
		{Path: "written", Change: "changed", How: "merge", Size: 10},
	}
	if d := cmp.Diff(want, got.Files); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]api.RestoreItem{{Path: "theirs"}}, got.Conflicts); d != "" || got.Bytes != 20 {
		t.Errorf("%d bytes, %s", got.Bytes, d)
	}
}
