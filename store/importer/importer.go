// Package importer copies tasks of other tools, other roots and archives into Roost's own root.
//
// The originals are only read. A task appears in the root at once and whole, after each of its files was synced, read
// back and compared. A task that cannot be copied does not appear, and the import continues with the others. A task
// whose content is already in the root is left alone, so an import that was killed is continued by running it again.
//
// Of a task that Roost continued in another tool's storage, only that storage's files are copied. A journal is copied
// when the task folder itself holds it, as in another root of Roost; what is derived from a journal is not copied but
// made again. The import ends everything that such a journal holds open: see task.Received. A journal that lacks
// commits which the source knows as saved lacks them in the copy, too, and the copy is damaged.
//
// One import at a time runs into a root. Its lock ends with the process that holds it.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Original is a task that can be imported.
type Original struct {
	Name   string        // of its folder; any bytes
	Dir    string        // its folder; for a task in an archive, its name in messages
	Files  []ArchiveFile // of a task in an archive; nil for a folder
	Saved  uint64        // of a task in an archive: see store.View.Saved
	Labels overlay.Entry // of a task in an archive: see store.View

	// Of a task in an archive: what the archive holds for the checkpoints of all its tasks, by SHA-256, and the store that
	// this task's checkpoints name for its workspace.
	Contents map[string]ArchiveFile
	Store    string
}

// ArchiveFile is one file of a task in an archive.
type ArchiveFile struct {
	Path   string // inside the task folder
	Size   int64
	SHA256 string // hex; a file with other bytes is refused
	MTime  time.Time
	Open   func() (io.ReadCloser, error)
}

// ReadAll returns the bytes of a file, compared with its digest. The caller bounds the size.
func (f ArchiveFile) ReadAll() ([]byte, error) {
	in, err := f.verified()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	return data, errors.Join(err, in.Close())
}

// Options are the options of Run. The zero value copies, and skips conflicts.
type Options struct {
	DryRun     bool   // compare only; nothing is created
	OnConflict string // api.ConflictSkip (default) or api.ConflictFork
	Map        []PathMap
	Trust      bool // keep the policy, address and limits that a journal brings along

	// Keep keeps what an archive holds for the checkpoints of a new task, whose journal was folded to s, before the task
	// exists. It returns the names here of the stores that the checkpoints name, and notes. nil = nothing is kept.
	Keep func(ctx context.Context, id, workspace string, s *task.State, from Original) (map[string]string, []string, error)
}

// copied is one task of an import.
type copied struct {
	api.ImportedTask
	historyItem []byte // history_item.json of the copy, when it differs from the original's
}

// Why an import does not begin, or leaves a task out.
var (
	ErrRunning   = errors.New("another import into it is running")
	ErrInOwnRoot = errors.New("it is in Roost's own root already")
)

const (
	lockName   = "import.lock" // in the root
	stagesName = ".import"     // among the tasks; it holds copies that are not verified yet
)

// Interrupted returns the folder of unverified copies that a killed import left; "" when there is none, or an import
// is running.
func Interrupted(s *store.Store) string {
	dir := filepath.Join(s.TasksDir(), stagesName)
	switch {
	case !projection.Exists(dir):
		return ""
	case !projection.Exists(filepath.Join(s.Root(), lockName)):
		return dir
	}
	lock, err := takeLock(s.Root())
	if err != nil || filelock.Release(lock) != nil {
		return ""
	}
	return dir
}

// takeLock takes the lock of imports into a root. It ends with the process, and its file is never removed.
func takeLock(root string) (*os.File, error) {
	f, err := filelock.TryOpen(filepath.Join(root, lockName), filelock.Exclusive|filelock.FirstByte)
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock imports: %w", err)
	case f == nil:
		return nil, ErrRunning
	}
	return f, nil
}

// RemoveInterrupted removes the copies that a killed import left. It fails with ErrRunning while an import is running.
func RemoveInterrupted(s *store.Store) error {
	lock, err := takeLock(s.Root())
	if err != nil {
		return err
	}
	defer filelock.Release(lock) //nolint:errcheck // nothing is written to it
	return os.RemoveAll(filepath.Join(s.TasksDir(), stagesName))
}

// Run copies tasks into the root of a store.
//
// An error means that the remaining tasks were not imported; the report holds those before it. Errors wrap
// store.RootError, ErrRunning, syscall.ENOSPC or the context's error.
func Run(ctx context.Context, s *store.Store, list []Original, o Options) (api.Import, error) {
	im := &importer{
		store:   s,
		opt:     o,
		planned: map[string]Original{},
		buf:     make([]byte, 1<<20),
		done:    progress.State{What: "importing", Of: len(list)},
	}
	im.overlay, _ = s.Overlay(ctx) // an overlay that cannot be read keeps no task from being copied
	im.report = api.Import{DryRun: o.DryRun, Items: []api.ImportedTask{}}
	if !o.DryRun {
		if err := s.Prepare(); err != nil {
			return im.report, err
		}
		lock, err := takeLock(s.Root())
		if err != nil {
			return im.report, fmt.Errorf("import into %s: %w", s.Root(), err)
		}
		defer filelock.Release(lock) //nolint:errcheck // nothing is written to it
		// We hold the lock, so nothing needs what a killed import left.
		if err := os.RemoveAll(im.stagesDir()); err != nil {
			return im.report, fmt.Errorf("import into %s: remove the copies of an interrupted import: %w", s.Root(), err)
		}
	}
	err := im.importAll(ctx, list)
	if !o.DryRun {
		err = errors.Join(err, s.Index().Update(context.WithoutCancel(ctx), im.indexIDs), os.RemoveAll(im.stagesDir()))
	}
	return im.report, err
}

// importer is one import.
type importer struct {
	store    *store.Store
	opt      Options
	report   api.Import
	done     progress.State      // reported after each file and each task
	planned  map[string]Original // by the ids that a dry run would have given them
	overlay  overlay.Table
	indexIDs []string // tasks in the root that the history index must name
	buf      []byte
}

// stagesDir holds copies that are not verified yet. Its name begins with a dot, so no list takes it for a task.
func (im *importer) stagesDir() string { return filepath.Join(im.store.TasksDir(), stagesName) }

func (im *importer) importAll(ctx context.Context, list []Original) error {
	for i, from := range list {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), err)
		}
		item, err := im.importTask(ctx, from)
		if err == nil {
			im.copyLabels(ctx, from, &item)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), ctx.Err())
		}
		if err != nil {
			item.Outcome, item.Problem, item.ID, item.Path, item.ByteEqual = api.TaskFailed, err.Error(), "", "", false
		}
		im.count(item)
		im.done.Done = i + 1
		progress.Report(ctx, im.done)
		if errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), err)
		}
	}
	return nil
}

func (im *importer) count(item copied) {
	r := &im.report
	r.Tasks++
	*map[string]*int{
		api.TaskImported: &r.Imported,
		api.TaskForked:   &r.Forked,
		api.TaskSame:     &r.Same,
		api.TaskConflict: &r.Conflicts,
		api.TaskEmpty:    &r.Empty,
		api.TaskFailed:   &r.Failed,
	}[item.Outcome]++
	if item.Outcome == api.TaskImported || item.Outcome == api.TaskForked {
		r.Files += item.Files
		r.Bytes += item.Bytes
	}
	for _, notes := range []*[]api.FileNote{&item.Differs, &item.LeftOut} {
		*notes = append([]api.FileNote{}, *notes...)
	}
	item.Notes = append([]string{}, item.Notes...)
	r.Items = append(r.Items, item.ImportedTask)
}

// copyLabels gives a copy the title, tags and pin that its original has in Roost, because lists show the copy from now
// on. It does so once: a copy whose labels were changed since keeps them. A failure is a note, and the copy stays.
func (im *importer) copyLabels(ctx context.Context, from Original, item *copied) {
	if im.opt.DryRun || item.Outcome != api.TaskImported && item.Outcome != api.TaskForked && item.Outcome != api.TaskSame {
		return
	}
	have := from.Labels
	if from.Files == nil {
		tasks, id := roofmt.PlaceOf(item.From)
		have = im.overlay[overlay.Key{Source: store.SourceName(tasks), ID: id}]
	}
	var l labels.Change
	if have.Title != nil && *have.Title != "" {
		l.Title = have.Title
	}
	if have.Tags != nil {
		l.Add = *have.Tags
	}
	if have.Pinned != nil && *have.Pinned {
		l.Pinned = have.Pinned
	}
	if l.Title == nil && len(l.Add) == 0 && l.Pinned == nil {
		return
	}
	ref := im.store.OwnRef(item.ID)
	state, err := im.store.FoldJournal(ctx, ref)
	if err == nil && item.Outcome == api.TaskSame && state != nil && len(state.Actions.Done)+len(state.Actions.Undone) > 0 {
		return
	}
	if err == nil {
		_, err = labels.Set(ctx, im.store, ref, l)
	}
	if err != nil {
		item.Notes = append(item.Notes, "its title, tags and pin could not be copied: "+err.Error())
		return
	}
	item.Notes = append(item.Notes, "its title, tags and pin in Roost were copied")
}

// FindPath lists the tasks at a path: a task folder, a folder of task folders, or a whole storage. Every folder name
// counts, also one that cannot be an id.
func FindPath(ctx context.Context, s *store.Store, path string) ([]Original, error) {
	found, err := roofmt.Find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	if inOwnRoot(s, path) || found.TasksDir != "" && inOwnRoot(s, found.TasksDir) {
		return nil, fmt.Errorf("import %s: %w", path, ErrInOwnRoot)
	}
	if len(found.Tasks) == 0 {
		return nil, fmt.Errorf("import %s: it holds no task folder: %w", path, store.ErrNotFound)
	}
	return api.Each(found.Tasks, func(f roofmt.Found) Original { return Original{Name: f.ID, Dir: f.Dir} }), nil
}

// FindSource lists the tasks of the sources with a name: the name of a source or of a tool, or "all" for every source
// except Roost's own. It leaves out tasks whose folder an editor deleted: Roost holds them already. It also returns the
// sources that cannot be read, so that the caller can import the others.
func FindSource(ctx context.Context, s *store.Store, name string) (list []Original, unreachable []api.SourceState, err error) {
	if name == store.OwnSource {
		return nil, nil, fmt.Errorf("import from %s: %w", name, ErrInOwnRoot)
	}
	refs, states, err := s.RefsAndSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	matches := func(source, tool string) bool {
		return source != store.OwnSource && (name == "all" || source == name || tool == name)
	}
	known := name == "all"
	for _, state := range states {
		if matches(state.Name, state.Tool) {
			known = true
			if state.Unreachable() {
				unreachable = append(unreachable, state)
			}
		}
	}
	if !known {
		return nil, nil, fmt.Errorf("import from %s: no source has that name: %w", name, store.ErrNotFound)
	}
	for _, r := range refs {
		if !matches(r.Source, r.Tool) {
			continue
		}
		if projection.Exists(r.Dir) {
			_, id := roofmt.PlaceOf(r.Dir)
			list = append(list, Original{Name: id, Dir: r.Dir})
		}
	}
	return list, unreachable, nil
}

// inOwnRoot reports whether a path is among Roost's own tasks.
func inOwnRoot(s *store.Store, path string) bool { return store.Within(s.TasksDir(), path) }

// PathMap maps a folder of another machine to one on this machine.
type PathMap struct{ Old, New string }

// mapPath maps a path of another machine to this one; false when no mapping covers it. The longest mapping wins, and
// only whole names match: /w does not cover /work.
func mapPath(list []PathMap, path string) (string, bool) {
	best, length := "", -1
	for _, m := range list {
		old := strings.TrimRight(m.Old, `/\`)
		rest, ok := below(path, old)
		if !ok || len(old) <= length {
			continue
		}
		to := strings.TrimRight(m.New, `/\`)
		if to == "" {
			to = m.New // the root of the file system
			rest = strings.TrimLeft(rest, `/\`)
		}
		if windowsStyle(path) != windowsStyle(m.New) {
			from, with := "/", `\`
			if windowsStyle(path) {
				from, with = with, from
			}
			rest = strings.ReplaceAll(rest, from, with)
		}
		best, length = to+rest, len(old)
	}
	return best, length >= 0 && path != "" && best != path
}

// below returns the part of a path below a folder.
func below(path, dir string) (string, bool) {
	if len(path) < len(dir) || path[:len(dir)] != dir && !(windowsStyle(dir) && strings.EqualFold(path[:len(dir)], dir)) {
		return "", false
	}
	rest := path[len(dir):]
	return rest, rest == "" || rest[0] == '/' || rest[0] == '\\'
}

// windowsStyle reports whether a path is a Windows path: C:\x or \\server\x.
func windowsStyle(path string) bool {
	drive := len(path) >= 2 && path[1] == ':' && (path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z'
	return drive || strings.HasPrefix(path, `\\`)
}

// maxItem bounds the history item that an import changes, in bytes: real ones have a few kilobytes.
const maxItem = 16 << 20

// mapItem returns the history item of the copy, and a description of the differences from the original. An import
// changes no other file, and only two members of this one: the id, when the task gets another one than its folder's
// name, and the workspace.
func (im *importer) mapItem(raw []byte, item *copied) ([]byte, string) {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return raw, ""
	}
	var what []string
	if id, ok := esjson.GetString(raw, "id"); ok && item.ID != item.Name && id != item.ID {
		raw = esjson.Set(raw, "id", esjson.Quote(nil, item.ID))
		what = append(what, "id")
	}
	for _, key := range []string{"workspace", "cwdOnTaskInitialization"} { // Cline uses the second
		old, _ := esjson.GetString(raw, key)
		if mapped, ok := mapPath(im.opt.Map, old); ok {
			raw = esjson.Set(raw, key, esjson.Quote(nil, mapped))
			what = append(what, fmt.Sprintf("%s: %s, not %s", key, mapped, old))
		}
	}
	return raw, strings.Join(what, "; ")
}

// findChanges determines how the copy will differ. It reads the original, so a dry run reports the same. A task
// without an item gets its row of the storage's index, because that index is not imported.
func (im *importer) findChanges(ctx context.Context, from fileSet, tree taskTree, item *copied) error {
	item.Differs, item.Notes, item.historyItem = nil, nil, nil
	if tree.has(store.JournalName) {
		return nil // the item is derived from that
	}
	i := slices.IndexFunc(tree.Files, func(f treeFile) bool { return f.Path == roofmt.ItemName })
	if i < 0 {
		row, of := im.store.IndexRow(item.From), "the index of its storage"
		if tree.hasTranscript() {
			if folder, err := roofmt.Read(ctx, item.From); err == nil { // it fails for an archive, which has no manifest
				row, of = roofmt.MergeRow(folder.Row, row), "its manifest, its messages and "+of
				if err := folder.Close(); err != nil {
					return err
				}
			}
		}
		if len(row) == 0 {
			return nil
		}
		mapped, what := im.mapItem(slices.Clone(row), item)
		note := roofmt.ItemName + " is made from " + of
		if what != "" {
			note += ", with another " + what
		}
		item.historyItem, item.Notes = mapped, []string{note}
		return nil
	}
	if tree.Files[i].Size > maxItem {
		return nil
	}
	in, err := from.open(roofmt.ItemName)
	if err != nil {
		return err
	}
	defer in.Close()
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if mapped, what := im.mapItem(raw, item); what != "" {
		item.historyItem, item.Differs = mapped, []api.FileNote{{File: roofmt.ItemName, What: what}}
	}
	return nil
}

// mapInferredWorkspace sets the workspace of a copy whose item names none, when its messages name one that the mapping
// covers: the user vouches for it with the mapping. A copy without an item gets one derived from its messages.
func (im *importer) mapInferredWorkspace(ctx context.Context, stage string, item *copied) error {
	if len(im.opt.Map) == 0 || item.historyItem != nil {
		return nil
	}
	ref := im.store.OwnRef(item.ID)
	ref.Dir, ref.Log = stage, stage
	v, err := im.store.Read(ctx, ref)
	if err != nil {
		return nil //nolint:nilerr // a task that cannot be read is copied as it is
	}
	defer v.Close()
	mapped, ok := mapPath(im.opt.Map, v.Summary.Workspace)
	if !ok || !slices.Contains(v.Summary.Inferred, "workspace") {
		return nil
	}
	what := fmt.Sprintf("workspace: %s, as its messages name %s", mapped, v.Summary.Workspace)
	raw := v.Folder.Item
	if len(raw) > 0 {
		item.Differs = append(item.Differs, api.FileNote{File: roofmt.ItemName, What: what})
	} else {
		if raw, err = projection.RenderItem(v.State, im.store.Now(), item.Bytes); err != nil {
			return err
		}
		item.Notes = append(item.Notes, roofmt.ItemName+" is made from its messages, with the "+what)
	}
	item.historyItem = esjson.Set(raw, "workspace", esjson.Quote(nil, mapped))
	return nil
}
