// Package checkpoints lists, compares, verifies and restores the checkpoints of tasks, and removes contents that no
// task needs any more. The agent decides when a run takes a checkpoint; package checkpoint keeps the contents of the
// files, one store per workspace. This package connects both to the tasks of a root.
//
// A restore is an intent, an apply and an outcome. The intent is durable, with a checkpoint of what is replaced, before
// the first file changes. From then on the task is restoring, and its next owner finishes that first (FinishOwned).
// Applying is idempotent for each file. An error in the middle puts back what was done. A rewind that takes files along
// is one such restore, and the histories move in the commit of its outcome.
//
// Nothing here starts a run, and a task that runs is never changed: its owner holds the lock.
package checkpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/reach"
)

// Service works on the checkpoints of a root's tasks. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	resolver func() setup.Resolver
	now      func() int64 // Unix milliseconds
	place    checkpoint.Place
	shared   Shared // nil: the root
}

// Shared is where several servers keep what files held.
type Shared interface {
	checkpoint.Stores
	// Tasks are all tasks of these servers, also those in the trash and those that are being created. What none of them
	// owns is removed.
	Tasks(ctx context.Context) ([]store.Ref, error)
}

// New gives access to the checkpoints of a store's tasks. The resolver that r returns opens workspaces and bounds what is
// kept. shared keeps what files held; nil: the root does, in one folder for each workspace.
func New(s *store.Store, shared Shared, r func() setup.Resolver, now func() int64) *Service {
	place := checkpoint.Place{Dir: Dir(s)}
	if shared != nil {
		place.Stores = shared
	}
	return &Service{store: s, shared: shared, resolver: r, now: now, place: place}
}

// Dir returns the folder of a store's root that is for checkpoints; see checkpoint.Place.
func Dir(s *store.Store) string { return filepath.Join(s.Root(), "checkpoints") }

// storeNames returns the names of the stores that hold a workspace's contents. root is absolute and without links.
// New checkpoints go into the first store. Servers have a shared folder at different paths; then the second store
// holds the checkpoints from before it was shared. A clone continues the store of the workspace that it was made for.
func (svc *Service) storeNames(root string) []string {
	own := checkpoint.NameOf(root)
	id := svc.resolver().Reach.Identify(root)
	switch shared := reach.SharedName(id); {
	case shared != "":
		return []string{checkpoint.NameOf(shared), own}
	case id.Store != "":
		return []string{id.Store, own}
	}
	return []string{own}
}

// openKeeper opens the store with this name, if it is one of the workspace's stores, and otherwise the first of these.
func (svc *Service) openKeeper(w *workspace.Workspace, name string) (*checkpoint.Keeper, error) {
	c := svc.resolver().Config
	names := svc.storeNames(w.Root())
	if !slices.Contains(names, name) {
		name = names[0]
	}
	return checkpoint.Open(svc.place, w, checkpoint.Options{
		Name:      name,
		MaxFile:   c.CheckpointFile,
		MaxSurvey: c.CheckpointSurvey,
		MaxStore:  c.CheckpointStore,
	})
}

// nameInStore returns the name of a task in the stores of contents. The id of another tool's task is unique only
// within its source, so the source is part of the name.
func nameInStore(ref store.Ref) string {
	if ref.Own {
		return ref.ID
	}
	return ref.Source + "." + ref.ID
}

// taskFiles are the files of a task: its workspace, and the store of their contents.
type taskFiles struct {
	ref    store.Ref
	ws     *workspace.Workspace
	keeper *checkpoint.Keeper
}

// openFiles opens a task's workspace, and the store that openKeeper chooses for the name.
func (svc *Service) openFiles(ref store.Ref, root, name string) (*taskFiles, error) {
	ws, err := svc.resolver().OpenWorkspace(root)
	if err != nil {
		return nil, err
	}
	k, err := svc.openKeeper(ws, name)
	if err != nil {
		return nil, err
	}
	return &taskFiles{ref, ws, k}, nil
}

// openFilesOf opens the workspace whose files a checkpoint holds.
func (svc *Service) openFilesOf(ref store.Ref, s *task.State, number int, root string) (*taskFiles, error) {
	name := contentStore(s, number)
	if root == "" {
		var err error
		if root, err = svc.rootOf(s, name); err != nil {
			return nil, err
		}
	}
	f, err := svc.openFiles(ref, root, name)
	if err != nil {
		return nil, err
	}
	if name == "" && len(s.Checkpoints) > 0 && len(checkpointsIn(s, f.keeper.Name())) == 0 { // before all, and none is of this folder
		number, name = s.Checkpoints[0].Number, s.Checkpoints[0].Store
	}
	if name != "" && name != f.keeper.Name() {
		return nil, errors.Join(&StoreMovedError{Checkpoint: number, Store: name, Workspace: f.ws.Root()}, f.close())
	}
	return f, nil
}

// close closes the store. A nil taskFiles has none open.
func (f *taskFiles) close() error {
	if f == nil {
		return nil
	}
	return f.keeper.Close()
}

// recordedPaths returns the paths under which checkpoints may record what is at some paths: where each leads, and, as it
// may be a link, itself. The workspace itself is ".".
func (f *taskFiles) recordedPaths(given ...string) (out []string, err error) {
	for _, path := range given {
		p, err := f.ws.Resolve(path)
		if err != nil {
			return nil, err
		}
		if p.Real == f.ws.Root() {
			p = workspace.Path{Readable: "."}
		}
		out = append(out, p.RulePaths()...)
	}
	return out, nil
}

// holdContents keeps the contents of files at recorded paths.
func (f *taskFiles) holdContents(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	held, err := f.keeper.HoldAt(ctx, paths)
	return held, inUse(err)
}

// inUse makes an error that wraps checkpoint.ErrInUse wrap store.ErrForeignBusy too: it is reported like another program
// at work.
func inUse(err error) error {
	if errors.Is(err, checkpoint.ErrInUse) {
		return fmt.Errorf("%w: %w", store.ErrForeignBusy, err)
	}
	return err
}

// rootOf returns the folder whose contents a store holds: the task's own workspace, or the one that the task had
// then. The error is one of setup.Resolver.FindWorkspace.
func (svc *Service) rootOf(s *task.State, name string) (string, error) {
	own, err := svc.resolver().FindWorkspace(s.Settings)
	if err == nil && (name == "" || slices.Contains(svc.storeNames(inputfile.Resolved(own)), name)) {
		return own, nil
	}
	if s.Received.Untrusted() { // the log may name any folder
		return own, err
	}
	if s.Run != nil {
		was, err := svc.resolver().FindWorkspace(s.Run.Settings)
		if err == nil && slices.Contains(svc.storeNames(inputfile.Resolved(was)), name) {
			return was, nil
		}
	}
	if svc.resolver().Reach != nil { // a folder of the recorded path may be another one here
		return own, err
	}
	data, bad := os.ReadFile(filepath.Join(svc.place.Dir, name, rootFile))
	if root := strings.TrimSpace(string(data)); bad == nil && filepath.IsAbs(root) {
		return root, nil
	}
	return own, err
}

// rootFile is the file of a store that names the folder whose contents it holds.
const rootFile = "workspace"

// contentStore returns the store that holds a checkpoint's contents; "" when the checkpoint names none.
func contentStore(s *task.State, number int) string {
	if c := s.Checkpoint(number); c != nil {
		return c.Store
	}
	return ""
}

// recorded yields what files held before and after each checkpoint, as Now, where a store keeps it.
func recorded(s *task.State) iter.Seq2[task.Checkpoint, task.CheckpointFile] {
	return func(yield func(task.Checkpoint, task.CheckpointFile) bool) {
		for _, c := range s.Checkpoints {
			for _, f := range c.Files {
				for _, v := range []*api.FileVersion{&f.Now, f.Was} {
					if c.Store != "" && v != nil && v.Blob != "" && !yield(c, task.CheckpointFile{Path: f.Path, Now: *v}) {
						return
					}
				}
			}
		}
	}
}

// mayLackContents reports whether contents of a task's checkpoints were possibly never in this root: a folder that was
// copied alone holds none, an archive may lack some, and those of a fork may have been removed with its base.
func mayLackContents(s *task.State) bool { return s.Received != nil || s.Fork != nil }

// newestCommit returns the commit of a task's newest checkpoint in a store; "" without one.
func newestCommit(s *task.State, store string) string {
	for _, c := range slices.Backward(s.Checkpoints) {
		if c.Commit != "" && c.Store == store {
			return c.Commit
		}
	}
	return ""
}

// checkpointsIn returns the checkpoints of a task whose contents are in one store.
func checkpointsIn(s *task.State, name string) []task.CheckpointSaved {
	return api.Some(s.Checkpoints, func(c task.Checkpoint) (task.CheckpointSaved, bool) {
		return c.CheckpointSaved, c.Store == name || c.Store == ""
	})
}

// saveCheckpoint makes a checkpoint of the held contents durable, and returns its event. The contents of targets are kept
// with it, because possibly no other checkpoint holds them.
func (svc *Service) saveCheckpoint(ctx context.Context, f *taskFiles, s *task.State, reason string,
	held map[string]api.FileVersion, targets []task.RestoreFile) (task.CheckpointSaved, error) {
	known := checkpoint.StateAt(checkpointsIn(s, f.keeper.Name()), s.NextCheckpoint())
	c := task.CheckpointSaved{Number: s.NextCheckpoint(), Reason: reason, Store: f.keeper.Name(), Message: newestMessage(s)}
	for path, v := range held {
		last, is := known[path]
		if is && last.Same(v) && (last.Blob != "" || v.Blob == "") || !is && v.Kind == api.KindOther {
			continue
		}
		if v.Kind == api.KindFile && v.Blob == "" {
			c.Unkept++
		}
		c.Files = append(c.Files, task.CheckpointFile{Path: path, Now: v})
		known[path] = v
	}
	slices.SortFunc(c.Files, func(x, y task.CheckpointFile) int { return strings.Compare(x.Path, y.Path) })
	changed := slices.Clone(c.Files)
	for _, t := range targets {
		changed = append(changed, task.CheckpointFile{Path: t.Path, Was: new(t.To), Now: t.From})
	}
	c.Title = titleOf(reason, targets, c.Files)
	var err error
	c.Commit, err = f.keeper.Save(ctx, checkpoint.Snapshot{
		Task: nameInStore(f.ref), Number: c.Number, Title: c.Title, At: svc.now(), Parent: newestCommit(s, f.keeper.Name()),
		Files: known, Changed: changed,
	})
	return c, err
}

// newestMessage returns the newest message of the model's history. It never falls from one checkpoint to the next.
func newestMessage(s *task.State) (message uint64) {
	if api := s.API(); len(api) > 0 {
		message = api[len(api)-1].ID
	}
	if n := len(s.Checkpoints); n > 0 {
		message = max(message, s.Checkpoints[n-1].Message)
	}
	return message
}

// pathsOf returns the paths of files.
func pathsOf(files []task.RestoreFile) []string {
	return api.Each(files, func(f task.RestoreFile) string { return f.Path })
}

// titleOf names a checkpoint after its files.
func titleOf(reason string, targets []task.RestoreFile, files []task.CheckpointFile) string {
	paths := pathsOf(targets)
	if len(targets) == 0 {
		paths = api.Each(files, func(f task.CheckpointFile) string { return f.Path })
	}
	if reason == task.ReasonSafety && len(paths) > 0 {
		return "before a restore of " + checkpoints.Title(paths)
	}
	return checkpoints.Title(paths)
}

// ErrNone: the task has no checkpoints.
var ErrNone = errors.New("the task has no checkpoints")

// StoreMovedError: a checkpoint is of a workspace that was in another folder.
type StoreMovedError struct {
	Checkpoint int
	Store      string // of its contents
	Workspace  string // the folder that was opened
}

func (e *StoreMovedError) Error() string {
	return fmt.Sprintf("checkpoint c%d is of another folder than %s: its contents are kept as %s", e.Checkpoint, e.Workspace, e.Store)
}

// ReferenceError: a reference matches no checkpoint, or several.
type ReferenceError struct {
	Given      string
	Why        string
	Candidates []api.Checkpoint
}

func (e *ReferenceError) Error() string { return fmt.Sprintf("checkpoint %s: %s", e.Given, e.Why) }

// RolledBackError: a restore failed, and everything is as it was before.
type RolledBackError struct{ Err error }

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("%s; everything is as it was before", restoreFailure(e.Err))
}

func (e *RolledBackError) Unwrap() error { return e.Err }

// HalfwayError: a restore failed, and so did reverting it. The task is restoring, and its next owner finishes that
// first.
type HalfwayError struct {
	Task string
	Err  error
}

func (e *HalfwayError) Error() string {
	return fmt.Sprintf("%s; the restore is not finished, and the next command that works on the task continues it", restoreFailure(e.Err))
}

func (e *HalfwayError) Unwrap() error { return e.Err }

// restoreFailure names the failed operation exactly once: most errors already begin with it.
func restoreFailure(err error) string {
	return "put files back: " + strings.TrimPrefix(err.Error(), "put files back: ")
}

// ChangedSinceError: the task changed a file again after the restore that is to be undone, or the task came from
// elsewhere after it. The checkpoint of what the restore replaced can be restored instead.
type ChangedSinceError struct {
	Task       string
	Path       string // "" = the task came from elsewhere
	Checkpoint int    // at which it changed
	Safety     int    // the checkpoint of what the restore replaced
	Redo       bool
}

func (e *ChangedSinceError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("the task came from elsewhere since files were put back; what the restore replaced is kept as c%d", e.Safety)
	}
	return fmt.Sprintf("the task changed %s since (c%d); what the restore replaced is kept as c%d", e.Path, e.Checkpoint, e.Safety)
}

// List lists the checkpoints of a task. It changes nothing.
func (svc *Service) List(ctx context.Context, given string) (api.Checkpoints, error) {
	var out api.Checkpoints
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return out, err
	}
	s, err := store.FromView(ctx, svc.store, ref, func(v *store.View) (*task.State, error) {
		out = api.Checkpoints{
			ID: ref.ID, Title: v.Summary.Title, Status: v.Summary.Status, Workspace: v.State.Settings.Workspace, Checkpoints: checkpointsOf(v.State),
		}
		return v.State, nil
	})
	if err != nil || len(out.Checkpoints) == 0 {
		return out, err
	}
	out.Store = out.Checkpoints[len(out.Checkpoints)-1].Store
	dir, err := svc.resolver().FindWorkspace(s.Settings)
	var f *taskFiles
	if err == nil {
		f, err = svc.openFiles(ref, dir, out.Store)
	}
	if err != nil {
		return out, nil //nolint:nilerr // this server lacks the folder, or the folder has no store; the journal holds the list
	}
	out.Store = f.keeper.Name()
	out.Objects, out.Bytes, err = f.keeper.Usage(ctx, nameInStore(ref))
	if mayLackContents(s) && errors.Is(err, content.ErrMissing) {
		err = nil // its contents were never kept here
	}
	if err != nil && ctx.Err() == nil {
		// The list comes from the journal. Only reading all contents shows which ones are lost.
		out.Damaged, err = err.Error(), svc.countDamaged(ctx, ref, &out)
	}
	return out, errors.Join(err, f.close())
}

// countDamaged counts the damaged files of each checkpoint.
func (svc *Service) countDamaged(ctx context.Context, ref store.Ref, list *api.Checkpoints) error {
	check := checkpoint.NewVerifier(svc.place)
	defer func() { _ = check.Close() }() // it only reads
	return svc.store.WithView(ctx, ref, func(v *store.View) error {
		for i := range list.Checkpoints {
			c := &list.Checkpoints[i]
			saved := v.State.Checkpoint(c.Number)
			if saved == nil || saved.Store == "" {
				continue
			}
			for _, f := range saved.Files {
				if check.Verify(ctx, saved.Store, f.Now) != nil {
					c.Damaged++
				}
			}
		}
		return ctx.Err()
	})
}

// checkpointsOf returns a task's checkpoints as a list shows them.
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

// describe is one checkpoint as a list shows it.
func describe(s *task.State, c task.Checkpoint, tracked int) api.Checkpoint {
	out := api.Checkpoint{
		Number: c.Number, Reason: c.Reason, Title: c.Title, At: c.At, Time: api.Stamp(c.At),
		Run: c.Run, Call: c.Call, Message: c.Message, Commit: c.Commit, Store: c.Store,
		Files: len(c.Files), Tracked: tracked, Unkept: c.Unkept, Rewound: s.RewoundCheckpoint(c),
	}
	if !out.Rewound {
		out.Row, _ = slices.BinarySearchFunc(s.UI(), c.Seq+1, func(m *task.Message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
	}
	return out
}

// initialState returns the state before the task changed anything.
func initialState() api.Checkpoint {
	return api.Checkpoint{Title: "before anything was changed"}
}

// describeNumber returns the checkpoint of a number as a list shows it.
func describeNumber(s *task.State, n int) api.Checkpoint {
	for _, c := range checkpointsOf(s) {
		if c.Number == n {
			return c
		}
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
	// The word may be the beginning of a commit's name.
	if len(word) >= 4 && len(word) <= 40 && strings.Trim(word, "0123456789abcdef") == "" {
		fits := api.Some(s.Checkpoints, func(c task.Checkpoint) (int, bool) {
			return c.Number, strings.HasPrefix(c.Commit, word)
		})
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
