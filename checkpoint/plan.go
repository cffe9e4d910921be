package checkpoint

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// observes reports whether a checkpoint only observed: its maker changed nothing since the one before, so a difference
// has another author.
func observes(c task.CheckpointSaved) bool {
	switch c.Reason {
	case task.ReasonCommand, task.ReasonTurn, task.ReasonRestored:
		return false
	}
	return true
}

// StateAt is what was at each path that a task's checkpoints know, at one of them; 0 is before any change. A path of
// which that is unknown is left out. The list is in the order of the numbers; a number above all is the newest.
func StateAt(list []task.CheckpointSaved, number int) map[string]api.FileVersion {
	out := map[string]api.FileVersion{}
	judged := map[string]bool{}
	for _, c := range list {
		for _, f := range c.Files {
			switch {
			case c.Number <= number:
				out[f.Path], judged[f.Path] = f.Now, true
			case judged[f.Path]:
			case f.Was != nil:
				out[f.Path], judged[f.Path] = *f.Was, true
			case observes(c):
				out[f.Path], judged[f.Path] = f.Now, true
			default:
				judged[f.Path] = true // what was there before is unknown
			}
		}
	}
	return out
}

// Tracked are the paths that a task's checkpoints know, in order; with paths, only those that are one of them, or
// inside one.
func Tracked(list []task.CheckpointSaved, paths []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, c := range list {
		for _, f := range c.Files {
			if !seen[f.Path] && asked(f.Path, paths) {
				seen[f.Path] = true
				out = append(out, f.Path)
			}
		}
	}
	slices.Sort(out)
	return out
}

// asked reports whether a list of paths and folders covers a path.
func asked(path string, list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		return p == "." || p == path || strings.HasPrefix(path, p+"/")
	})
}

// Step is one change of what is at a path.
type Step struct {
	Checkpoint int // at which it was seen
	Message    uint64
	Call       string
	From, To   api.FileVersion
	Others     bool // no evidence that the task or a command of its own made it
	Doubt      bool // of Others: a command of the task ran at that time, and may have made it
}

// steps adds the steps of one entry. at is what was there before it, nil when that is unknown.
func steps(out []Step, at *api.FileVersion, c task.CheckpointSaved, f task.CheckpointFile) ([]Step, *api.FileVersion) {
	step := func(from, to api.FileVersion, others, doubt bool) {
		if !from.Same(to) {
			out = append(out, Step{Checkpoint: c.Number, Message: c.Message, Call: c.Call, From: from, To: to,
				Others: others, Doubt: others && doubt})
		}
	}
	was := at
	if f.Was != nil {
		if at != nil {
			step(*at, *f.Was, true, false)
		}
		was = f.Was
	}
	if was != nil {
		step(*was, f.Now, observes(c), c.Reason == task.ReasonDoubt)
	}
	now := f.Now
	return out, &now
}

// transitions are all changes that a task's checkpoints know, by path, oldest first. Where the task found something
// else than it had left, others changed it: a person, another program, another task.
func transitions(list []task.CheckpointSaved) map[string][]Step {
	out := map[string][]Step{}
	at := map[string]*api.FileVersion{}
	for _, c := range list {
		for _, f := range c.Files {
			out[f.Path], at[f.Path] = steps(out[f.Path], at[f.Path], c, f)
		}
	}
	return out
}
