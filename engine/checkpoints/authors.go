package checkpoints

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/task"
)

// authorsOf names what made each step of a file, as far as the journal knows it. Where the calls of one reply wrote the
// file, a step has several.
type authorsOf struct {
	s       *task.State
	files   *taskFiles
	written map[string][]int // indexes in s.Calls() of the calls that were to write a file, by its recorded path
	records map[string][]task.FileRecord
}

func (f *taskFiles) authors(s *task.State) *authorsOf {
	a := &authorsOf{s: s, files: f, written: map[string][]int{}, records: map[string][]task.FileRecord{}}
	found := map[string][]string{} // the recorded paths of each path, resolved on the disk once
	recorded := func(given string) []string {
		paths, is := found[given]
		if !is {
			paths, _ = f.recordedPaths(given) // none: it is outside of what checkpoints record
			found[given] = paths
		}
		return paths
	}
	for i, c := range s.Calls() {
		if !c.Started {
			continue
		}
		for given := range c.Before {
			for _, path := range recorded(given) {
				a.written[path] = append(a.written[path], i)
			}
		}
	}
	for _, r := range s.Files {
		if r.By == "" || r.By == "command" {
			continue
		}
		for _, path := range recorded(r.Path) {
			a.records[path] = append(a.records[path], r)
		}
	}
	return a
}

// of returns the authors of one step of a path.
func (a *authorsOf) of(path string, step checkpoint.Step) []api.Author {
	out := api.Author{By: api.ByUnknown, Checkpoint: step.Checkpoint}
	c := a.s.Checkpoint(step.Checkpoint)
	switch {
	case c == nil:
		return []api.Author{a.other(path, step, out)}
	case c.Reason == task.ReasonDoubt, c.Reason == task.ReasonOthers && c.Call != "":
		// It changed while a command ran, or since one was interrupted.
		if !step.Doubt && c.Reason == task.ReasonDoubt {
			return []api.Author{a.other(path, step, out)}
		}
		return []api.Author{a.called(out, a.s.Call(c.Call))}
	case step.Others:
		return []api.Author{a.other(path, step, out)}
	case c.Reason == task.ReasonRestored:
		out.By = api.ByRestore
		return []api.Author{out}
	case c.Reason == task.ReasonCommand:
		out.By = api.ByCommand
		return []api.Author{a.called(out, a.s.Call(c.Call))}
	}
	out.By = api.ByAgent
	if all := a.writers(path, c); len(all) > 0 {
		return api.Each(all, func(call *task.Call) api.Author { return a.called(out, call) })
	}
	return []api.Author{out}
}

// called adds the call to an author; a nil call is unknown.
func (a *authorsOf) called(out api.Author, call *task.Call) api.Author {
	if call == nil {
		return out
	}
	out.Call, out.Tool = call.ID, call.Name
	if call.UI != 0 {
		out.Row = 1 + slices.IndexFunc(a.s.UI(), func(m *task.Message) bool { return m.ID == call.UI })
	}
	return out
}

// other returns an author outside of the task. A record of the file with the same content may name it.
func (a *authorsOf) other(path string, step checkpoint.Step, out api.Author) api.Author {
	out.By = api.ByOther
	for _, r := range slices.Backward(a.records[path]) {
		if step.To.Hash == "" || r.Hash != step.To.Hash {
			continue
		}
		switch {
		case r.By == api.ByOther && r.Task != "":
			out.Task = r.Task
			return out
		case r.By == api.BySubtask, r.By == api.ByRestore:
			out.By = r.By
			return out
		}
	}
	return out
}

// writers returns the calls whose writes to path a checkpoint after a turn may hold: those after the previous
// checkpoint with this file, and before the point that the checkpoint was made for.
func (a *authorsOf) writers(path string, c *task.Checkpoint) []*task.Call {
	calls := a.s.Calls()
	// first is the place of the first call that a checkpoint comes before.
	first := func(c *task.Checkpoint) int {
		for i, call := range slices.Backward(calls) {
			if c.Call != "" && call.ID == c.Call {
				return i
			}
		}
		if i := slices.IndexFunc(calls, func(call *task.Call) bool { return call.Message >= c.Message }); i >= 0 {
			return i
		}
		return len(calls)
	}
	from := 0
	for i := range a.s.Checkpoints {
		before := &a.s.Checkpoints[i]
		if before.Number >= c.Number {
			break
		}
		if slices.ContainsFunc(before.Files, func(f task.CheckpointFile) bool { return f.Path == path }) {
			from = first(before)
		}
	}
	to := first(c)
	return api.Some(a.written[path], func(i int) (*task.Call, bool) { return calls[i], i >= from && i < to })
}

// sign adds the authors to a difference between two checkpoints; newer is onDisk for the present files. A difference
// that goes back in time has none.
func (a *authorsOf) sign(ctx context.Context, d *api.FileDiff, all []checkpoint.Step, older, newer int) {
	if newer >= 0 && newer < older {
		return
	}
	steps := checkpoint.StepsOf(all, older, newer, d.To)
	by := make([][]api.Author, len(steps))
	for i, step := range steps {
		by[i] = a.of(d.Path, step)
		d.Authors = appendNew(d.Authors, by[i]...)
	}
	if len(steps) == 0 {
		d.Authors = []api.Author{{By: api.ByUnknown}}
	}
	if len(d.Hunks) < 2 || len(d.Authors) < 2 {
		for i := range d.Hunks {
			d.Hunks[i].Authors = d.Authors
		}
		return
	}
	for i, made := range a.files.keeper.Attribute(ctx, *d, steps, newer < 0) {
		for _, n := range made {
			d.Hunks[i].Authors = appendNew(d.Hunks[i].Authors, by[n]...)
		}
		if len(made) == 0 {
			d.Hunks[i].Authors = []api.Author{{By: api.ByUnknown}}
		}
	}
}

// appendNew appends authors. The same one, at another checkpoint, comes once.
func appendNew(list []api.Author, more ...api.Author) []api.Author {
	for _, one := range more {
		same := func(o api.Author) bool {
			o.Checkpoint = one.Checkpoint
			return o == one
		}
		if !slices.ContainsFunc(list, same) {
			list = append(list, one)
		}
	}
	return list
}
