package checkpoint

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// observes reports whether a checkpoint only observed: its maker changed nothing since the previous one, so any
// difference has another author.
func observes(c task.CheckpointSaved) bool {
	switch c.Reason {
	case task.ReasonCommand, task.ReasonTurn, task.ReasonRestored:
		return false
	}
	return true
}

// StateAt returns what was at each path at a checkpoint, as far as the task's checkpoints show; 0 is before any
// change. It leaves out paths for which that is unknown. The list is in the order of the numbers; a number above all
// is the newest.
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

// Tracked returns the paths in a task's checkpoints, in order; with paths, only those that are one of paths, or
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

// Step is one change of a path.
type Step struct {
	Checkpoint int // the checkpoint that found it
	From, To   api.FileVersion
	Others     bool // there is no evidence that the task or a command of it made the change
	Doubt      bool // with Others: a command of the task ran at that time, and may have made it
}

// steps appends the steps of one entry. at is what was there before; nil when that is unknown.
func steps(out []Step, at *api.FileVersion, c task.CheckpointSaved, f task.CheckpointFile) ([]Step, *api.FileVersion) {
	step := func(from, to api.FileVersion, others, doubt bool) {
		if !from.Same(to) {
			out = append(out, Step{Checkpoint: c.Number, From: from, To: to, Others: others, Doubt: others && doubt})
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
	return out, new(f.Now)
}

// Transitions returns all changes in a task's checkpoints, by path, oldest first. Where the task found a file in
// another state than it had left it, others changed it: a person, another program, another task.
func Transitions(list []task.CheckpointSaved) map[string][]Step {
	out := map[string][]Step{}
	at := map[string]*api.FileVersion{}
	for _, c := range list {
		for _, f := range c.Files {
			out[f.Path], at[f.Path] = steps(out[f.Path], at[f.Path], c, f)
		}
	}
	return out
}

// Rule decides about files that others have changed.
type Rule string

// The rules for such files.
const (
	Keep      Rule = "keep"      // they are not restored
	Merge     Rule = "merge"     // the task's changes are removed from them, line by line
	Overwrite Rule = "overwrite" // they are restored like other files
)

// Act is what a plan does with one file.
type Act string

// The values of Act. Only the first three change a file.
const (
	ActRestore   Act = task.HowRestore
	ActMerge     Act = task.HowMerge
	ActOverwrite Act = task.HowOverwrite
	ActKeep      Act = "keep" // a conflict: the file is not changed
	ActLost      Act = "lost" // its old content is not kept
)

// Changes reports whether the act changes the file.
func (a Act) Changes() bool { return a == ActRestore || a == ActMerge || a == ActOverwrite }

// Item is one file that differs from its target.
type Item struct {
	Path   string
	Act    Act
	Why    string          // the reason, for a kept or lost file
	Now    api.FileVersion // its version when the plan was made
	Target api.FileVersion // the version that it gets, or would get

	// Conflict: others have changed it. Doubt: the only known cause is a command of the task, or something else while
	// that ran.
	Conflict, Doubt bool
	// Undo are the task's own steps after the target, newest first: a merge removes them.
	Undo []Step

	text []byte // the content to write, if no store holds it yet; nil = a store does
}

// Change returns what happens to the file, in a word: added, changed, deleted, mode, or "" for nothing.
func (i Item) Change() string {
	if !i.Act.Changes() {
		return ""
	}
	return changeOf(i.Now, i.Target)
}

// Result describes for the user what happens to the file.
func (i Item) Result() api.RestoreItem {
	out := api.RestoreItem{Path: i.Path, Change: i.Change(), Why: i.Why, Doubt: i.Doubt}
	if i.Act.Changes() {
		out.How = string(i.Act)
	}
	if out.Change == api.FileAdded || out.Change == api.FileChanged {
		out.Size = i.Target.Size
	}
	return out
}

// Plan lists what a restore would do. It leaves out files that already have their target.
type Plan struct {
	Items []Item // by path
}

// Bytes returns how many bytes the plan writes.
func (p Plan) Bytes() (n int64) {
	for _, i := range p.Items {
		n += i.Result().Size
	}
	return n
}

// Paths returns the files that the plan changes.
func (p Plan) Paths() []string {
	return api.Some(p.Items, func(i Item) (string, bool) { return i.Path, i.Act.Changes() })
}

// Files returns the plan's changes for an intent, with the versions that the safety checkpoint holds. From then on the
// plan keeps a file that the checkpoint does not hold, or that changed after the plan was made.
func (p Plan) Files(held map[string]api.FileVersion) (files []task.RestoreFile) {
	for n := range p.Items {
		i := &p.Items[n]
		if !i.Act.Changes() {
			continue
		}
		v, ok := held[i.Path]
		switch {
		case !ok && i.Now.Kind == api.KindOther:
			v = api.FileVersion{Kind: api.KindGone, Dirs: i.Now.Dirs} // below a link that is removed first
		case present(v) && v.Blob == "" && (v.Kind != i.Target.Kind || v.Hash != i.Target.Hash):
			i.Act, i.Why = ActKeep, "its present content cannot be kept, and would be lost"
			continue
		case !ok || !v.Same(i.Now):
			i.Act, i.Why = ActKeep, "it changed while the restore was prepared"
			continue
		}
		files = append(files, task.RestoreFile{Path: i.Path, From: v, To: i.Target, How: string(i.Act)})
	}
	return files
}

// Moment is a checkpoint, or a moment between checkpoints: within a reply of the model, when some of its calls had
// changed their files and others had not.
type Moment struct {
	Number int            // the checkpoint whose state applies; 0 is before any change
	Of     map[string]int // by path: another checkpoint that applies to the file
}

// at returns the checkpoint whose state applies to a file.
func (m Moment) at(path string) int {
	if n, ok := m.Of[path]; ok {
		return n
	}
	return m.Number
}

// First returns the oldest checkpoint whose state applies.
func (m Moment) First() int {
	first := m.Number
	for _, n := range m.Of {
		first = min(first, n)
	}
	return first
}

// PlanMoment plans to put the files of a task back to a moment. now is the current state of the tracked paths (see
// Tracked); other paths stay unchanged. paths limits the plan to some files and folders; none = all.
//
// A file that others changed since is a conflict, and the rule decides. The results of merges are not known yet: see
// Keeper.Resolve, which also finds missing contents.
func PlanMoment(list []task.CheckpointSaved, m Moment, now map[string]api.FileVersion, paths []string, rule Rule) (p Plan) {
	targets := map[int]map[string]api.FileVersion{}
	changes := Transitions(list)
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
			if s.Checkpoint > to {
				i.add(s)
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

// add records a step after the target; steps come newest first. A step of others makes a conflict, and one of the
// task is to be undone.
func (i *Item) add(s Step) {
	if s.Others {
		i.Doubt = s.Doubt && (i.Doubt || !i.Conflict)
		i.Conflict = true
	} else {
		i.Undo = append(i.Undo, s)
	}
}

// judged decides about a single file, and returns it with its Act.
func (i Item) judged(rule Rule) Item {
	switch {
	case !plain(i.Path):
		i.Act, i.Why = ActKeep, "Roost never changes such a path"
	case i.Conflict && rule == Merge && i.Now.Kind == api.KindOther:
		i.Act, i.Why = ActKeep, "the path now holds something that is not a file"
	case i.Conflict && rule == Merge:
		i.Act = ActMerge
	case i.Conflict && rule == Overwrite:
		i.Act = ActOverwrite
		i = i.lostUnlessKept()
	case i.Conflict && i.Now.Kind == api.KindFile && i.Now.Hash == "":
		i.Act, i.Why = ActKeep, "it cannot be read"
	case i.Conflict:
		i.Act, i.Why = ActKeep, i.whose()
	default:
		i = i.lostUnlessKept()
	}
	return i
}

// whose names the program or user that changed a file with a conflict. Of a file that is too large to be kept, no
// content is recorded: whether it changed is not known.
func (i Item) whose() string {
	if lost := i.lostUnlessKept(); lost.Act == ActLost {
		return lost.Why
	}
	if i.Doubt {
		return "it changed while a command ran, by the command or by another program"
	}
	return "others have changed it since"
}

// lostUnlessKept gives up a file whose target content was not kept, unless the file still has that content, for example
// where only the mode differs.
func (i Item) lostUnlessKept() Item {
	if present(i.Target) && i.Target.Blob == "" && (i.Now.Kind != i.Target.Kind || i.Now.Hash == "" || i.Now.Hash != i.Target.Hash) {
		i.Act, i.Why = ActLost, "its content was not kept"
		if i.Target.Size > 0 {
			i.Why = fmt.Sprintf("its content (%d bytes) was not kept", i.Target.Size)
		}
	}
	return i
}

// behind decides about paths that hold, or held, something other than a file. Such a path changes only with a link
// above it that the same plan removes or restores; otherwise the plan does not touch it.
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
			i.Act, i.Why = ActLost, "it was not a file, and cannot be made again"
			continue
		}
		i.Act, i.Why, i.Conflict = ActKeep, "the path now holds something that is not a file", true
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

// Resolve adds to a plan what needs the store: which contents still exist, and the results of merges. A file whose
// merge fails is kept, with the reason. With keep, contents that no store holds yet are durable when it returns, as an
// intent needs; without, for a preview, nothing is written.
func (k *Keeper) Resolve(ctx context.Context, p Plan, keep bool) (out Plan, err error) {
	var b content.Batch // nil for a preview, which must not write
	if keep {
		if b, err = k.begin(ctx); err != nil {
			return out, fmt.Errorf("merge files: %w", err)
		}
		defer b.Discard()
	}
	for _, i := range p.Items {
		if i.Act == ActMerge && i.text == nil {
			if i, err = k.mergeItem(ctx, i); err != nil {
				return out, fmt.Errorf("merge %s: %w", i.Path, err)
			}
			if i.Act == ActMerge && i.Target.Same(i.Now) && i.Doubt {
				i.Act, i.Why = ActKeep, i.whose()
			} else if i.Act == ActMerge && i.Target.Same(i.Now) {
				continue // everything that the task did to it was undone already
			}
		}
		if b != nil && i.text != nil && i.Target.Hash != i.Now.Hash {
			id, err := b.Add(i.text)
			if err != nil {
				return out, fmt.Errorf("keep the new content of %s: %w", i.Path, err)
			}
			i.Target.Blob = string(id)
		}
		if i.Act.Changes() && present(i.Target) && i.Target.Hash != i.Now.Hash && i.Target.Blob != "" &&
			i.text == nil && !k.Has(ctx, i.Target) {
			i.Act, i.Why = ActLost, "its content is not in the store of this workspace any more"
		}
		out.Items = append(out.Items, i)
	}
	out.behind()
	if keep {
		if err := b.Close(); err != nil {
			return out, fmt.Errorf("keep merged files: %w", err)
		}
	}
	return out, nil
}

// mergeItem removes the task's steps from the content at a path now, newest first.
func (k *Keeper) mergeItem(ctx context.Context, i Item) (Item, error) {
	kept := func(why string) (Item, error) {
		i.Act, i.Why = ActKeep, why
		return i, nil
	}
	at := i.Now
	var text []byte // the content of at after a merge; nil before the first
	for _, s := range i.Undo {
		switch {
		case at.Same(s.To):
			at, text = s.From, nil
			continue
		case at.Same(s.From):
			continue
		case at.Kind != api.KindFile || s.From.Kind != api.KindFile || s.To.Kind != api.KindFile:
			return kept("others have changed more than its text since")
		}
		mode, ok := mergeMode(at.Mode, s)
		if !ok {
			return kept("others have given it another mode than the task since")
		}
		base, why, err := k.side(ctx, i.Path, s.To, maxMerge, false)
		if err == nil && why == "" && text == nil {
			text, why, err = k.side(ctx, i.Path, at, maxMerge, at.Same(i.Now))
		}
		var old []byte
		if err == nil && why == "" {
			old, why, err = k.side(ctx, i.Path, s.From, maxMerge, false)
		}
		if err != nil {
			return i, err
		}
		if why != "" {
			return kept("it cannot be merged: " + why)
		}
		data, ok := MergeText(base, text, old)
		if !ok {
			return kept("others changed the same lines since")
		}
		text = append([]byte{}, data...)
		at = api.FileVersion{Kind: api.KindFile, Mode: mode, Size: int64(len(text)), Hash: workspace.HashOf(text)}
	}
	i.Target = at
	if text == nil {
		return i.lostUnlessKept(), nil
	}
	i.text = text
	return i, nil
}

// mergeMode takes back a step's change of the mode; false when others changed the mode, too.
func mergeMode(now uint32, s Step) (uint32, bool) {
	switch {
	case s.From.Mode == s.To.Mode, now == s.From.Mode:
		return now, true
	case now == s.To.Mode:
		return s.From.Mode, true
	}
	return now, false
}

// Apply carries out an intent: a file that is still From becomes To, one that is To already is done, and all others
// stay unchanged: left names them, by path. So any process can repeat it after a kill. Deletions come first, then all
// others, so that files can replace folders and the other way round. Folders that Apply makes stay within the workspace,
// and it writes nothing through a link. Everything is durable when it returns nil.
//
// Before it touches the first file, Apply finds missing contents, of targets and of what it replaces; the error wraps
// ErrUnkept. When something fails later, what is done stays, also that of an earlier call that was killed: the reversed
// intent (task.Swapped) undoes all of it.
func (k *Keeper) Apply(ctx context.Context, files []task.RestoreFile) (left []string, err error) {
	for _, f := range files {
		if err := k.ready(ctx, f); err != nil {
			return nil, fmt.Errorf("put files back: %w", err)
		}
	}
	b := k.w.NewRestorer()
	list := ordered(files)
	orders := api.Each(list, func(f task.RestoreFile) workspace.RestoreStep {
		return workspace.RestoreStep{
			Path: OnDisk(f.Path), From: f.From, To: f.To,
			Data: func() ([]byte, error) { return k.Content(ctx, f.To, 0) },
		}
	})
	err = b.RestoreAll(ctx, orders, func(i int, put workspace.RestoreResult) {
		switch put {
		case workspace.LeftAlone:
			left = append(left, list[i].Path)
		case workspace.Restored:
			failpoint.Hit("restore.applied-one")
		}
	})
	if err == nil {
		failpoint.Hit("restore.applied-all")
		err = b.Sync()
	}
	slices.Sort(left)
	return left, api.Failed(err, "put files back")
}

// ready reports whether a file that is From could be changed to To, and back.
func (k *Keeper) ready(ctx context.Context, f task.RestoreFile) error {
	kept := func(v api.FileVersion) bool {
		return !present(v) || k.Has(ctx, v) // the safety checkpoint's ref holds it
	}
	if kept(f.From) && kept(f.To) || f.From.Kind == f.To.Kind && f.From.Hash != "" && f.From.Hash == f.To.Hash {
		return nil
	}
	now, err := k.Look(ctx, []string{f.Path})
	if err != nil || !now[f.Path].Same(f.From) {
		return err // it is not touched
	}
	return fmt.Errorf("%s: %w", f.Path, ErrUnkept)
}

// ordered puts deletions first, deepest paths first.
func ordered(files []task.RestoreFile) []task.RestoreFile {
	var gone, rest []task.RestoreFile
	for _, f := range files {
		if present(f.To) {
			rest = append(rest, f)
		} else {
			gone = append(gone, f)
		}
	}
	byPath := func(a, b task.RestoreFile) int { return strings.Compare(a.Path, b.Path) }
	slices.SortStableFunc(gone, func(a, b task.RestoreFile) int { return byPath(b, a) })
	slices.SortStableFunc(rest, byPath)
	return append(gone, rest...)
}
