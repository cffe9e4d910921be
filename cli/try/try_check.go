package try

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// onDisk is what a trial's folder holds at one moment.
type onDisk struct {
	dir     string
	commits []string // each commit's events, joined
	ui, api []string
	calls   map[string]string // a call's id: its name and outcome
	answers map[string]int    // a call's id: how often the model was given its result
	status  string
	diary   int // lines
	note    string
}

func (t *trial) look(ctx context.Context, s *store.Store, id string) (onDisk, error) {
	o := onDisk{calls: map[string]string{}, answers: map[string]int{}}
	ref, err := s.Find(ctx, id)
	if err != nil {
		return o, err
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return o, err
	}
	defer v.Close()
	o.dir, o.status = v.Ref.Dir, v.Summary.Status
	if v.Log == nil {
		return o, t.broken("the task has no journal")
	}
	for c, err := range v.Log.Read(ctx, 1) {
		if err != nil {
			return o, fmt.Errorf("read the journal: %w", err)
		}
		o.commits = append(o.commits, fmt.Sprint(c.Seq, c.Epoch, c.At)+string(bytes.Join(raws(c.Events), nil)))
	}
	for _, m := range v.State.UI() {
		o.ui = append(o.ui, string(m.Raw()))
	}
	for _, m := range v.State.API() {
		o.api = append(o.api, string(m.Raw()))
		content, _ := esjson.Get(m.Raw(), "content")
		for block := range esjson.Array(content) {
			if id, ok := esjson.GetString(block, "tool_use_id"); ok {
				o.answers[id]++
			}
		}
	}
	for _, c := range v.State.Calls() {
		outcome := string(c.Outcome())
		if c.Finished != nil {
			outcome = c.Finished.Outcome
		}
		o.calls[c.ID] = c.Name + " " + outcome
	}
	diary, err := os.ReadFile(filepath.Join(t.workspace, "diary.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return o, fmt.Errorf("read the diary: %w", err)
	}
	o.diary = strings.Count(string(diary), "once")
	note, err := os.ReadFile(filepath.Join(t.workspace, "note.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return o, fmt.Errorf("read the note: %w", err)
	}
	o.note = string(note)
	return o, nil
}

func raws[T ~[]byte](list []T) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = b
	}
	return out
}

func (t *trial) check(ok bool, name, detail string, args ...any) {
	t.checks = append(t.checks, check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)})
}

// judge compares the state after the restart with what it must be.
func (t *trial) judge(killed, resumed childRun, before, after onDisk) {
	n := len(before.commits)
	t.check(killed.seq <= uint64(n), "all that was shown was on disk", "shown up to commit %d, %d on disk", killed.seq, n)
	same := len(after.commits) > n && slices.Equal(before.commits, after.commits[:min(n, len(after.commits))])
	t.check(same, "every commit is still there, byte for byte", "%d before, %d after", n, len(after.commits))
	api := len(after.api) >= len(before.api) && slices.Equal(before.api, after.api[:min(len(before.api), len(after.api))])
	t.check(api, "every message of the model's history is still there", "%d before, %d after", len(before.api), len(after.api))
	t.check(before.diary == 1 && after.diary == 1, "the command's effect happened once", "%d line before the restart, %d after",
		before.diary, after.diary)
	t.check(strings.Contains(after.note, "before the kill") && before.note == after.note,
		"the file written before the kill is whole", "%d bytes", len(after.note))
	open, reported := 0, 0
	for id, was := range before.calls {
		if strings.HasSuffix(was, string(task.OutcomeUnknown)) {
			open++
			if strings.HasSuffix(after.calls[id], "unknown") && after.answers[id] == 1 {
				reported++
			}
		}
	}
	t.check(open == 1 && reported == 1, "the model learned, once, that the command's outcome is unknown",
		"%d interrupted, %d reported", open, reported)
	twice := 0
	for _, n := range after.answers {
		if n != 1 {
			twice++
		}
	}
	t.check(twice == 0, "every tool result is there exactly once", "%d results", len(after.answers))
	t.check(resumed.code == 0 && after.status == "completed", "the task continued to its end", "%s", after.status)
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		data, err := os.ReadFile(filepath.Join(after.dir, name))
		t.check(err == nil && esjson.Valid(data), "Roo's "+name+" is whole", "%d bytes", len(data))
	}
}
