package foreign_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

// Entries of other programs give what they say and nothing else.
func TestForeignRecords(t *testing.T) {
	got := foreign.Records([]byte(`{"files_in_context":[
		{"path":"a","record_state":"active","record_source":"cline_edited","cline_read_date":5,"cline_edit_date":7,"user_edit_date":null},
		{"path":"b","record_state":"stale","record_source":"user_edited","roo_read_date":1,"roo_edit_date":2,"user_edit_date":3},
		{"path":"c","record_source":"other","roo_read_date":4},
		{"path":""},{"path":7},{"path":"z\u0000"},null,3,"x",[]]}`))
	want := []task.FileRecord{
		{Path: "a", State: "active", Source: "roo_edited", RooRead: 5, RooEdit: 7, RecordedAt: 7},
		{Path: "b", State: "stale", Source: "user_edited", RooRead: 1, RooEdit: 2, UserEdit: 3, RecordedAt: 3},
		{Path: "c", Source: "other", RooRead: 4, RecordedAt: 4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzForeignRecords(f *testing.F) {
	for _, s := range []string{`{"files_in_context":[{"path":"a","roo_read_date":1e400}]}`, `[]`, `{`, `{"files_in_context":{}}`, `{"files_in_context":[{"path":"a","path":"b","user_edit_date":-1}]}`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range foreign.Records(data) {
			if r.Path == "" || r.Hash != "" || r.RooRead < 0 || r.RooEdit < 0 || r.UserEdit < 0 {
				t.Errorf(`got %+v, want r.Path != "" and r.Hash = "" and r.RooRead >= 0 and r.RooEdit >= 0 and r.UserEdit >= 0`,
					r)
			}
		}
	})
}
