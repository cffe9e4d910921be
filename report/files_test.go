package report

import (
	"testing"

	"github.com/roost-dev/roost/task"
)

// Who changed a file is said of changes and of nothing else; a read in the same commit
// as a change is a read.
func TestAuthorsOfRecords(t *testing.T) {
	by := map[string]maker{"user_edited" + recordKey(3, "a"): {"command", ""}, "user_edited" + recordKey(5, "a"): {"other", "task-2"}}
	for source, want := range map[string]string{"user_edited": "command", "roo_edited": "agent", "read_tool": "", "file_mentioned": "", "": ""} {
		got := ""
		if who, _ := author(by, task.FileRecord{Seq: 3, Path: "a", Source: source}); who != nil {
			got = *who
		}
		if got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	if who, _ := author(by, task.FileRecord{Seq: 4, Path: "a", Source: "user_edited"}); who == nil || *who != "other" {
		t.Errorf("a change that nobody is named for: %v", who)
	}
	if _, other := author(by, task.FileRecord{Seq: 5, Path: "a", Source: "user_edited"}); other != "task-2" {
		t.Errorf("the other task is %q", other)
	}
}
