package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Stretch is a part of a task's history, by messages of the model's history.
type Stretch struct {
	Ref   store.Ref
	State *task.State
	From  uint64 // the message before its first one
	To    uint64 // its last one
}

// Stretched is what changed in a stretch.
type Stretched struct {
	End   int            // the checkpoint at its end; 0 = none
	Files []api.FileDiff // without patches
}

// side is a stretch with the states of the files at its ends.
type side struct {
	*taskFiles
	base, end int
	list      []task.CheckpointSaved
}

func (svc *Service) side(x Stretch) (side, error) {
	out := side{base: x.State.CheckpointAt(x.From), end: x.State.CheckpointAt(x.To)}
	if out.end == 0 {
		return out, nil
	}
	f, err := svc.openFilesOf(x.Ref, x.State, out.end, "")
	if err != nil {
		return out, err
	}
	out.taskFiles, out.list = f, checkpointsIn(x.State, f.keeper.Name())
	return out, nil
}

// changed returns the files that differ between the ends of the stretch.
func (s side) changed(ctx context.Context) ([]api.FileDiff, error) {
	if s.taskFiles == nil {
		return nil, nil
	}
	return s.keeper.Diff(ctx, checkpoint.StateAt(s.list, s.base), checkpoint.StateAt(s.list, s.end), checkpoint.DiffOptions{Stat: true})
}

// ErrElsewhere: two tasks work in different folders, so that their files are not compared.
var ErrElsewhere = errors.New("the two tasks work in different folders")

// ErrNoEnd: a side has no checkpoint at its end.
var ErrNoEnd = errors.New("one of the two tasks has no checkpoint, because it changed no file")

// Compare finds what two stretches that begin at the same message did to the files, and what differs between their ends. A
// file that only one of them knows is at the end of the other as it was at the common message. why is ErrElsewhere or
// ErrNoEnd where the ends are not compared.
func (svc *Service) Compare(ctx context.Context, a, b Stretch) (x, y Stretched, between []api.FileDiff, why, err error) {
	p, err := svc.side(a)
	if err != nil {
		return x, y, nil, nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	q, err := svc.side(b)
	if err != nil {
		return x, y, nil, nil, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	x.End, y.End = p.end, q.end
	if x.Files, err = p.changed(ctx); err == nil {
		y.Files, err = q.changed(ctx)
	}
	switch {
	case err != nil:
		return x, y, nil, nil, fmt.Errorf("compare the files of two tasks: %w", err)
	case p.taskFiles == nil || q.taskFiles == nil:
		return x, y, nil, ErrNoEnd, nil
	case p.keeper.Name() != q.keeper.Name():
		return x, y, nil, ErrElsewhere, nil
	}
	from, to := checkpoint.StateAt(p.list, p.end), checkpoint.StateAt(q.list, q.end)
	missing := func(in, of map[string]api.FileVersion, base side) {
		at := checkpoint.StateAt(base.list, base.base)
		for path := range of {
			v, known := at[path]
			if _, is := in[path]; known && !is {
				in[path] = v
			}
		}
	}
	known := maps.Clone(from)
	missing(from, to, q)
	missing(to, known, p)
	between, err = p.keeper.Diff(ctx, from, to, checkpoint.DiffOptions{})
	return x, y, between, nil, err
}
