package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// List lists the checkpoints of a task. It changes nothing.
func (svc *Service) List(ctx context.Context, given string) (api.Checkpoints, error) {
	var out api.Checkpoints
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return out, err
	}
	err = svc.store.WithView(ctx, ref, func(v *store.View) error {
		s := v.State
		out = api.Checkpoints{
			ID: ref.ID, Title: v.Summary.Title, Status: v.Summary.Status, Workspace: s.Settings.Workspace, Checkpoints: checkpointsOf(s),
		}
		return nil
	})
	if err != nil || len(out.Checkpoints) == 0 {
		return out, err
	}
	out.Store = out.Checkpoints[len(out.Checkpoints)-1].Store
	ws, err := workspace.Open(out.Workspace)
	if err != nil {
		return out, nil //nolint:nilerr // the folder is missing, and the journal holds the list
	}
	k, err := svc.openKeeper(ws)
	if err != nil {
		return out, nil //nolint:nilerr // this folder has no store
	}
	out.Store = k.Name()
	usage, err := k.Usage(ctx, nameInStore(ref))
	out.Objects, out.Bytes = usage.Objects, usage.Bytes
	if err = ignoreMissing(err); err != nil && ctx.Err() == nil {
		// The list comes from the journal. Only reading all contents shows which ones are lost.
		out.Damaged, err = err.Error(), svc.countDamaged(ctx, ref, &out)
	}
	return out, errors.Join(err, k.Close())
}

// countDamaged counts the damaged files of each checkpoint.
func (svc *Service) countDamaged(ctx context.Context, ref store.Ref, list *api.Checkpoints) error {
	stores := map[string]*checkpoint.Verifier{}
	defer func() {
		for _, v := range stores {
			_ = v.Close() // it only reads
		}
	}()
	return svc.store.WithView(ctx, ref, func(v *store.View) error {
		for i := range list.Checkpoints {
			c := &list.Checkpoints[i]
			saved := v.State.Checkpoint(c.Number)
			if saved == nil || saved.Store == "" {
				continue
			}
			check := stores[saved.Store]
			if check == nil {
				var err error
				if check, err = checkpoint.OpenVerifier(svc.dir(), saved.Store); err != nil {
					return err
				}
				stores[saved.Store] = check
			}
			for _, f := range saved.Files {
				if check.Verify(ctx, f.Now) != nil {
					c.Damaged++
				}
			}
		}
		return ctx.Err()
	})
}

// checkpointsOf are a task's checkpoints as a list shows them.
func checkpointsOf(s *task.State) []api.Checkpoint {
	out := make([]api.Checkpoint, 0, len(s.Checkpoints))
	tracked := map[string]bool{}
	for _, c := range s.Checkpoints {
		for _, f := range c.Files {
			tracked[f.Path] = true
		}
		out = append(out, describe(s, c, len(tracked)))
	}
	return out
}

// trackedFiles counts the files of which a task has recorded a state up to a checkpoint.
func trackedFiles(s *task.State, number int) int {
	paths := map[string]bool{}
	for _, c := range s.Checkpoints {
		if c.Number > number {
			break
		}
		for _, f := range c.Files {
			paths[f.Path] = true
		}
	}
	return len(paths)
}

// describe is one checkpoint as a list shows it.
func describe(s *task.State, c task.Checkpoint, tracked int) api.Checkpoint {
	out := api.Checkpoint{
		Number: c.Number, Reason: c.Reason, Title: c.Title, At: c.At, Time: time.UnixMilli(c.At).UTC().Format("2006-01-02T15:04:05.000Z"),
		Run: c.Run, Call: c.Call, Message: c.Message, Commit: c.Commit, Store: c.Store,
		Files: len(c.Files), Tracked: tracked, Unkept: c.Unkept, Rewound: s.RewoundCheckpoint(c),
	}
	if !out.Rewound {
		ui := s.UI()
		n, _ := slices.BinarySearchFunc(ui, c.Seq, func(m *task.Message, seq uint64) int {
			if m.Seq <= seq {
				return -1
			}
			return 1
		})
		out.Row = n
	}
	return out
}

// initialState is the state before the task changed anything.
func initialState() api.Checkpoint {
	return api.Checkpoint{Title: "before anything was changed"}
}

// describeNumber is the checkpoint of a number as a list shows it.
func describeNumber(s *task.State, n int) api.Checkpoint {
	if c := s.Checkpoint(n); c != nil {
		return describe(s, *c, trackedFiles(s, c.Number))
	}
	return initialState()
}

// resolve finds the checkpoint that a reference names: c3 or 3, the beginning of a commit's name, #12 (the state at that
// row), 0 or c0 (before anything was changed), or "" (before the newest change of the agent).
func resolve(s *task.State, given string) (int, error) {
	word := strings.TrimSpace(given)
	bad := func(why string) error {
		list := checkpointsOf(s)
		return &ReferenceError{Given: given, Why: why, Candidates: list[max(0, len(list)-8):]}
	}
	if len(s.Checkpoints) == 0 {
		return 0, ErrNone
	}
	last := s.Checkpoints[len(s.Checkpoints)-1].Number
	switch {
	case word == "":
		for _, c := range slices.Backward(s.Checkpoints) {
			switch c.Reason {
			case task.ReasonBefore:
				return c.Number, nil
			case task.ReasonCommand, task.ReasonDoubt, task.ReasonTurn:
				return c.Number - 1, nil
			}
		}
		return last, nil
	case strings.HasPrefix(word, "#"):
		n, err := strconv.Atoi(word[1:])
		if err != nil || n < 1 || n > len(s.UI()) {
			return 0, bad(fmt.Sprintf("the task has the messages #1 to #%d", len(s.UI())))
		}
		return s.CheckpointAt(s.UI()[n-1].ID), nil
	}
	digits, named := strings.CutPrefix(word, "c")
	n, err := strconv.Atoi(digits)
	if err == nil && (n == 0 || s.Checkpoint(n) != nil) {
		return n, nil
	}
	if mayBeCommit(word) {
		var fits []int
		for _, c := range s.Checkpoints {
			if strings.HasPrefix(c.Commit, word) {
				fits = append(fits, c.Number)
			}
		}
		switch len(fits) {
		case 1:
			return fits[0], nil
		case 0:
		default:
			return 0, bad(fmt.Sprintf("%d commits begin with it", len(fits)))
		}
	}
	if err == nil || named {
		return 0, bad(fmt.Sprintf("the task has the checkpoints c1 to c%d", last))
	}
	return 0, bad("want a checkpoint such as c3, the beginning of its commit, or a message such as #12")
}

// ignoreMissing drops the error of a task whose checkpoints were never kept here: it has no ref.
func ignoreMissing(err error) error {
	if errors.Is(err, checkpoint.ErrUnkept) {
		return nil
	}
	return err
}

// mayBeCommit reports whether a word may be the beginning of a commit's name.
func mayBeCommit(word string) bool {
	return len(word) >= 4 && len(word) <= 40 && strings.Trim(word, "0123456789abcdef") == ""
}
