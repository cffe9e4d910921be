package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Trouble of the disk that passes costs a run none of Roo's files; other trouble is said at
// once, and trouble that stays is said, too.
func TestTheLastProjectionIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault error
		times int
		tries int
		want  error
	}{
		{"twice an input/output error", syscall.EIO, 2, 3, nil},
		{"once a full disk", syscall.ENOSPC, 1, 2, nil},
		{"a full disk for good", syscall.ENOSPC, 100, 6, syscall.ENOSPC},
		{"no permission", syscall.EACCES, 100, 1, syscall.EACCES},
		{"a lock of another program", roofmt.ErrLocked, 100, 1, ErrForeignBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			owned := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Task: "t-1"}, task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(uiRow(1, "hello"))}}))
			tries := 0
			owned.proj.Replace = func(ctx context.Context, dir string, list []roofmt.Replacement, o roofmt.Options) error {
				if tries++; tries <= c.times {
					return &os.PathError{Op: "write", Path: dir, Err: c.fault}
				}
				return roofmt.Replace(ctx, dir, list, o)
			}
			if err := owned.Close(context.Background()); !errors.Is(err, c.want) || tries != c.tries {
				t.Fatalf("%d tries: %v", tries, err)
			}
			there := exists(s.OwnRef("t-1").Dir, roofmt.UIName)
			behind := fixture.Must[[]Ref](t)(s.Behind(t.Context()))
			if there != (c.want == nil) || (len(behind) > 0) != (c.want != nil) {
				t.Fatalf("there: %v, behind: %v", there, behind)
			}
			report := fixture.Must[CheckReport](t)(Rooms.Check(t.Context(), s, nil, false))
			if len(report.Damaged) > 0 || c.want != nil && len(report.Stale) == 0 {
				t.Errorf("doctor: %+v", report)
			}
			for _, ref := range behind { // as the next server does
				fixture.NoError(t, fixture.Must[*Owned](t)(s.Own(t.Context(), ref)).Task.Close(context.Background()))
			}
			if left := fixture.Must[[]Ref](t)(s.Behind(t.Context())); len(left) > 0 || !exists(s.OwnRef("t-1").Dir, roofmt.UIName) {
				t.Errorf("behind for ever: %v", left)
			}
		})
	}
}

// Tasks that nobody worked on here, damaged ones, and those that somebody owns are not behind.
func TestWhoIsNotBehind(t *testing.T) {
	s := open(t, t.TempDir())
	make1 := func(id string) *Task {
		return fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Task: id}, task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(uiRow(1, "hello"))}}))
	}
	owned := make1("owned")
	for _, id := range []string{"foreign", "damaged", "whole"} {
		fixture.NoError(t, make1(id).Close(context.Background()))
	}
	fixture.NoError(t, os.Remove(filepath.Join(s.OwnRef("foreign").Log, projection.Name)))
	fixture.NoError(t, os.Remove(filepath.Join(s.OwnRef("foreign").Log, "journal.lock")))
	fixture.NoError(t, os.Remove(filepath.Join(s.OwnRef("damaged").Log, projection.Name)))
	fixture.NoError(t, os.Truncate(filepath.Join(s.OwnRef("damaged").Log, JournalName), 300))
	if list := fixture.Must[[]Ref](t)(s.Behind(t.Context())); len(list) > 0 {
		t.Errorf("got %+v, want len(list) <= 0", list)
	}
	fixture.NoError(t, owned.Close(context.Background()))
}
