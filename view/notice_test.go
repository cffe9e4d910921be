package view

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// A notice stands behind the rows that were there before its commit, or came with it.
// Those of rewound turns, reads, and checkpoints of what a restore replaced are none.
func TestWhereNoticesStand(t *testing.T) {
	t.Parallel()
	s, seq, messages := task.New(nil), uint64(0), uint64(0)
	commit := func(events ...task.Event) {
		t.Helper()
		seq++
		c := journal.Commit{Seq: seq, Epoch: 1, At: int64(1000 + seq)}
		for _, e := range events {
			raw, err := task.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			c.Events = append(c.Events, raw)
		}
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	added := func(h task.History, raw string) task.Event {
		messages++
		return task.MessageAdded{History: h, Message: messages, Body: task.Body{Raw: []byte(raw)}}
	}
	row := func() task.Event {
		return added(task.UI, fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"x"}`, seq))
	}
	changed := func(path, by string) task.Event {
		return task.FileChanged{Path: path, Source: "user_edited", By: by, Hash: "h", MTime: 1}
	}
	saved := func(n int, reason string, message uint64) task.Event {
		return task.CheckpointSaved{Number: n, Reason: reason, Title: "f.go", Message: message}
	}
	commit(task.Created{Task: "t"}, changed("early", "other"))
	commit(row())
	commit(row(), task.FileChanged{Path: "read", Source: "read_tool", Hash: "h"}, saved(1, task.ReasonBefore, 0))
	commit(changed("a", "command"), changed("b", "other"), task.FileChanged{Path: "c", Source: "user_edited", By: "other", Task: "t2"})
	commit(changed("d", "restore"), saved(2, task.ReasonDoubt, 0))
	commit(row())
	commit(added(task.API, `{"role":"user","content":"gone"}`))
	gone := messages
	commit(saved(3, task.ReasonTurn, gone), saved(4, task.ReasonSafety, gone), saved(5, task.ReasonManual, gone))
	commit(task.MessageHidden{Messages: []uint64{gone}, Reason: "rewind"})
	var got []string
	for _, n := range Notices(s) {
		got = append(got, fmt.Sprintf("%d %s", n.Row, n.Text()))
	}
	want := []string{
		"0 changed since the model saw it: early",
		"2 checkpoint c1 before f.go",
		"2 changed since the model saw it: a while a command ran, b, c deleted by another task (t2)",
		"2 checkpoint c2 in doubt: f.go",
		"2 changed since the model saw it: d by a restore",
		"3 checkpoint c5 saved by you f.go",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if by := ByRow(Notices(s)); len(by[1]) != 1 || len(by[2]) != 4 || len(by[3]) != 1 {
		t.Errorf("by row: %v", by)
	}
}

// A notice names eight files and counts the rest.
func TestNoticeOfManyFiles(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		8:  "changed since the model saw it: f1, f2, f3, f4, f5, f6, f7, f8",
		9:  "changed since the model saw it: f1, f2, f3, f4, f5, f6, f7, f8 and 1 more",
		12: "changed since the model saw it: f1, f2, f3, f4, f5, f6, f7, f8 and 4 more",
	} {
		var notice Notice
		for i := range n {
			notice.Files = append(notice.Files, task.FileRecord{Path: fmt.Sprintf("f%d", i+1), Hash: "h", MTime: 1})
		}
		if got := notice.Text(); got != want {
			t.Errorf("%d files: got %q, want %q", n, got, want)
		}
	}
}
