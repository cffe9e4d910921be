package try

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/service"
)

// onDisk is what a trial's folder holds at one moment.
type onDisk struct {
	service.Evidence
	diary int // lines
	note  string
}

func (t *trial) look(ctx context.Context, s *local.Roost, id string) (o onDisk, err error) {
	all := s.Service()
	defer all.Close()
	if o.Evidence, err = all.Evidence(ctx, id); err != nil {
		return o, err
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

func (t *trial) check(ok bool, name, detail string, args ...any) {
	t.checks = append(t.checks, check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)})
}

// judge compares the state after the restart with what it must be.
func (t *trial) judge(killed, resumed childRun, before, after onDisk) {
	n := len(before.Commits)
	t.check(killed.seq <= uint64(n), "all that was shown was on disk", "shown up to commit %d, %d on disk", killed.seq, n)
	same := len(after.Commits) > n && slices.Equal(before.Commits, after.Commits[:min(n, len(after.Commits))])
	t.check(same, "every commit is still there, byte for byte", "%d before, %d after", n, len(after.Commits))
	api := len(after.API) >= len(before.API) && slices.Equal(before.API, after.API[:min(len(before.API), len(after.API))])
	t.check(api, "every message of the model's history is still there", "%d before, %d after", len(before.API), len(after.API))
	t.check(before.diary == 1 && after.diary == 1, "the command's effect happened once", "%d line before the restart, %d after",
		before.diary, after.diary)
	t.check(strings.Contains(after.note, "before the kill") && before.note == after.note,
		"the file written before the kill is whole", "%d bytes", len(after.note))
	open, reported := 0, 0
	for id, was := range before.Calls {
		if was == "unknown" {
			open++
			if after.Calls[id] == "unknown" && after.Results[id] == 1 {
				reported++
			}
		}
	}
	t.check(open == 1 && reported == 1, "the model learned, once, that the command's outcome is unknown",
		"%d interrupted, %d reported", open, reported)
	twice := 0
	for _, n := range after.Results {
		if n != 1 {
			twice++
		}
	}
	t.check(twice == 0, "every tool result is there exactly once", "%d results", len(after.Results))
	t.check(resumed.code == 0 && after.Status == "completed", "the task continued to its end", "%s", after.Status)
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		data, err := os.ReadFile(filepath.Join(after.Folder, name))
		t.check(err == nil && esjson.Valid(data), "Roo's "+name+" is whole", "%d bytes", len(data))
	}
}
