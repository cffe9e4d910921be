package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func entryOf(path, state, source, read, edit, user string) string {
	return fmt.Sprintf(`{"path":%q,"record_state":%q,"record_source":%q,"roo_read_date":%s,"roo_edit_date":%s,"user_edit_date":%s}`, path, state, source, read, edit, user)
}

func recordOf(entries ...string) string {
	return `{"files_in_context":[` + strings.Join(entries, ",") + `]}`
}

// The editor's entries live on beside ours, whoever writes the file next.
func TestAdoptedRecordKeepsTheEditors(t *testing.T) {
	storage, dir := rooStorage(t, "record")
	base := recordOf(entryOf("a.go", "active", "read_tool", "5", "null", "null"))
	write(t, dir, roofmt.MetadataName, base)
	s := open(t, t.TempDir(), storage)
	touched := func(path string) {
		k := own(t, s, "record").Task
		fixture.NoError(t, k.Commit(context.Background(), task.FileChanged{Path: path, Source: "read_tool"}))
		closeTask(t, k)
	}
	now := fmt.Sprint(s.opt.Now())
	touched("b.go")
	first := recordOf(entryOf("a.go", "active", "read_tool", "5", "null", "null"), entryOf("b.go", "active", "read_tool", now, "null", "null"))
	if d := cmp.Diff(first, read(t, dir, roofmt.MetadataName)); d != "" {
		t.Fatal(d)
	}
	// The editor adds one, and respells the file.
	other := entryOf("c.go", "active", "file_mentioned", "7", "null", "null")
	write(t, dir, roofmt.MetadataName, strings.Replace(first, `]}`, ` , `+other+` ] , "more":1 }`, 1))
	closeTask(t, own(t, s, "record").Task)
	if got := read(t, dir, roofmt.MetadataName); !strings.Contains(got, ` , "more":1 }`) {
		t.Errorf("respelled without a reason: %s", got)
	}
	touched("c.go")
	want := strings.TrimSuffix(first, "]}") + "," + strings.Replace(other, "active", "stale", 1) + "," + entryOf("c.go", "active", "read_tool", now, "null", "null") + `],"more":1}`
	if d := cmp.Diff(want, read(t, dir, roofmt.MetadataName)); d != "" {
		t.Error(d)
	}
	// It is derived: without it, the original and our records make it again.
	fixture.NoError(t, os.Remove(filepath.Join(dir, roofmt.MetadataName)))
	closeTask(t, own(t, s, "record").Task)
	want = strings.TrimSuffix(first, "]}") + "," + entryOf("c.go", "active", "read_tool", now, "null", "null") + "]}"
	if d := cmp.Diff(want, read(t, dir, roofmt.MetadataName)); d != "" {
		t.Error(d)
	}
}

// A record that the editor wrote while we were about to is not overwritten.
func TestRecordWrittenMeanwhile(t *testing.T) {
	storage, dir := rooStorage(t, "record")
	s := open(t, t.TempDir(), storage)
	k := own(t, s, "record").Task
	fixture.NoError(t, k.Commit(context.Background(), task.FileChanged{Path: "b.go", Source: "read_tool"}))
	write(t, dir, roofmt.MetadataName, recordOf(entryOf("late.go", "active", "read_tool", "5", "null", "null")))
	write(t, dir, roofmt.ItemName, `{"id":"record","ts":1,"task":"do it","late":true}`)
	closeTask(t, k)
	if got := read(t, dir, roofmt.MetadataName); !strings.Contains(got, "late.go") || !strings.Contains(got, "b.go") {
		t.Errorf("record %s", got)
	}
	if got := read(t, dir, roofmt.ItemName); !strings.Contains(got, `"late":true`) {
		t.Errorf("item %s", got)
	}
}
