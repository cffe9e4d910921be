package checkpoint

import (
	"fmt"
	"path"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Rule decides about files that others changed since.
type Rule string

// The rules.
const (
	Keep      Rule = "keep"      // they stay as they are
	Merge     Rule = "merge"     // the task's changes are removed from them, line by line
	Overwrite Rule = "overwrite" // they become what they were
)

// Act is what a plan does with one file.
type Act string

// The acts. Only the first three change anything.
const (
	ActRestore   Act = task.HowRestore
	ActMerge     Act = task.HowMerge
	ActOverwrite Act = task.HowOverwrite
	ActKeep      Act = "keep" // a conflict that stays as it is
	ActLost      Act = "lost" // its old content is not kept
)

// Changes reports whether the act changes the file.
func (a Act) Changes() bool { return a == ActRestore || a == ActMerge || a == ActOverwrite }

// Item is one file that is not what it was.
type Item struct {
	Path   string
	Act    Act
	Why    string          // the reason, of a kept or lost file
	Now    api.FileVersion // as it was looked at
	Target api.FileVersion // what it becomes, or would

	// Conflict: others changed it since. Doubt: as far as is known, only a command of the task, or something else while
	// that ran.
	Conflict, Doubt bool
	// Undo are the task's own steps since, newest first: a merge removes them.
	Undo []Step
}

// Change is what happens to the file, in a word: added, changed, deleted, mode, or ""
// when nothing does.
func (i Item) Change() string {
	if !i.Act.Changes() {
		return ""
	}
	return changeOf(i.Now, i.Target)
}

func present(v api.FileVersion) bool { return v.Kind == api.KindFile || v.Kind == api.KindLink }

// Plan is what a restore would do. Files that are already what they were are not in it.
type Plan struct {
	To    int
	Rule  Rule
	Items []Item // by path
}

// Bytes is how many bytes the plan writes.
func (p Plan) Bytes() (n int64) {
	for _, i := range p.Items {
		if change := i.Change(); change == api.FileAdded || change == api.FileChanged {
			n += i.Target.Size
		}
	}
	return n
}

// Paths are the files that the plan changes.
func (p Plan) Paths() (out []string) {
	for _, i := range p.Items {
		if i.Act.Changes() {
			out = append(out, i.Path)
		}
	}
	return out
}

// Files are the plan's changes for an intent, with the versions that the safety checkpoint holds. A file that the
// checkpoint does not hold, or that changed since the plan was made, is not changed: it is in left, with the reason.
func (p Plan) Files(held map[string]api.FileVersion) (files []task.RestoreFile, left []Item) {
	for _, i := range p.Items {
		if !i.Act.Changes() {
			continue
		}
		v, ok := held[i.Path]
		switch {
		case !ok && i.Now.Kind == api.KindOther:
			v = i.Now // below a link that is removed first
		case !ok || !v.Same(i.Now):
			i.Act, i.Why = ActKeep, "it changed while the restore was prepared"
			left = append(left, i)
			continue
		case present(v) && v.Blob == "" && (v.Kind != i.Target.Kind || v.Hash != i.Target.Hash):
			i.Act, i.Why = ActKeep, "its present content cannot be kept, and would be lost"
			left = append(left, i)
			continue
		}
		files = append(files, task.RestoreFile{Path: i.Path, From: v, To: i.Target, How: string(i.Act)})
	}
	return files, left
}

// Moment is a checkpoint, or one between checkpoints: within a reply of the model, where
// some of its calls had changed their files, and others had not.
type Moment struct {
	Number int            // the checkpoint whose state counts; 0 is before anything was changed
	Of     map[string]int // and that of some files
}

// at is the checkpoint whose state counts for a file.
func (m Moment) at(path string) int {
	if n, ok := m.Of[path]; ok {
		return n
	}
	return m.Number
}

// First is the oldest checkpoint whose state counts.
func (m Moment) First() int {
	first := m.Number
	for _, n := range m.Of {
		first = min(first, n)
	}
	return first
}

// PlanMoment plans to put the files of a task back to a moment. now is the current state of the tracked paths (see
// Tracked); paths that are not in it are left alone. paths limits the plan to some files and folders; none is all. The
// plan's To is the oldest checkpoint of the moment.
//
// A file that others changed since is a conflict, and the rule decides. The results of merges are not known yet: see
// Keeper.Resolve, which also finds contents that are gone.
func PlanMoment(list []task.CheckpointSaved, m Moment, now map[string]api.FileVersion, paths []string, rule Rule) Plan {
	p := Plan{To: m.First(), Rule: rule}
	targets := map[int]map[string]api.FileVersion{}
	changes := transitions(list)
	var newest map[string]api.FileVersion
	if n := len(list); n > 0 {
		newest = StateAt(list, list[n-1].Number)
	}
	for _, name := range Tracked(list, paths) {
		to := m.at(name)
		if targets[to] == nil {
			targets[to] = StateAt(list, to)
		}
		want, known := targets[to][name]
		is, looked := now[name]
		if !known || !looked || is.Same(want) || !present(is) && !present(want) {
			continue
		}
		i := Item{Path: name, Now: is, Target: want, Act: ActRestore}
		for _, s := range slices.Backward(changes[name]) {
			if s.Checkpoint <= to {
				break
			}
			if s.Others {
				i.Doubt = s.Doubt && (i.Doubt || !i.Conflict)
				i.Conflict = true
			} else {
				i.Undo = append(i.Undo, s)
			}
		}
		// Files below a folder that a command replaced by a link are gone, and the paths now lead through that link:
		// see Plan.behind.
		hidden := is.Kind == api.KindOther && newest[name].Kind == api.KindGone
		if !hidden && !is.Same(newest[name]) {
			i.Conflict, i.Doubt = true, false
		}
		p.Items = append(p.Items, i.judged(rule))
	}
	p.behind()
	return p
}

// judged decides about a single file.
func (i Item) judged(rule Rule) Item {
	switch {
	case !plain(i.Path):
		i.Act, i.Why = ActKeep, "such a path is never touched"
	case i.Conflict && rule == Merge && i.Now.Kind == api.KindOther:
		i.Act, i.Why = ActKeep, "something that is no file is there now"
	case i.Conflict && rule == Merge:
		i.Act = ActMerge
	case i.Conflict && rule == Overwrite:
		i.Act = ActOverwrite
		i = i.lostUnlessKept()
	case i.Conflict:
		i.Act, i.Why = ActKeep, i.whose()
	default:
		i = i.lostUnlessKept()
	}
	return i
}

// whose names the program or user that changed a file with a conflict.
func (i Item) whose() string {
	if i.Doubt {
		return "it changed while a command ran, by the command or by another program"
	}
	return "it was changed by others since"
}

// lostUnlessKept: a content that is available need not be kept, for example where only the mode differs.
func (i Item) lostUnlessKept() Item {
	if present(i.Target) && i.Target.Blob == "" && (i.Now.Kind != i.Target.Kind || i.Now.Hash == "" || i.Now.Hash != i.Target.Hash) {
		i.Act, i.Why = ActLost, "its content was not kept"
		if i.Target.Size > 0 {
			i.Why = fmt.Sprintf("its content (%d bytes) was not kept", i.Target.Size)
		}
	}
	return i
}

// behind judges what is, or was, no file of its own: it can change with a link above it that goes or comes back in the
// same plan, and is never touched otherwise.
func (p Plan) behind() {
	link := map[string]bool{}
	for _, i := range p.Items {
		if i.Act.Changes() && (i.Now.Kind == api.KindLink || i.Target.Kind == api.KindLink) {
			link[i.Path] = true
		}
	}
	for n := range p.Items {
		i := &p.Items[n]
		if !i.Act.Changes() || i.Now.Kind != api.KindOther && i.Target.Kind != api.KindOther || above(i.Path, link) {
			continue
		}
		if i.Target.Kind == api.KindOther {
			i.Act, i.Why = ActLost, "it was no file, and cannot be made again"
			continue
		}
		i.Act, i.Why, i.Conflict = ActKeep, "something that is no file is there now", true
	}
}

func above(p string, set map[string]bool) bool {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if set[p] {
			return true
		}
	}
	return false
}
