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
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/overlay"
)

// Original is a task that can be imported.
type Original struct {
	Name  string        // of its folder; any bytes
	Dir   string        // its folder; for a task in an archive, its name in messages
	Files []ArchiveFile // of a task in an archive; nil for a folder
	Saved uint64        // of a task in an archive: see store.View.Saved
}

// ArchiveFile is one file of a task in an archive.
type ArchiveFile struct {
	Path   string // inside the task folder
	Size   int64
	SHA256 string // hex; a file with other bytes is refused
	MTime  time.Time
	Open   func() (io.ReadCloser, error)
}

// Options are the options of Run. The zero value copies, and skips conflicts.
type Options struct {
	DryRun     bool   // compare only; nothing is created
	OnConflict string // api.ConflictSkip (default) or api.ConflictFork
	Map        []PathMap
	Trust      bool // keep the policy, address and limits that a journal brings along

	// Progress, when set, is called after each file and each task, by the goroutine that called Run.
	Progress func(api.ImportProgress)
}

// copied is one task of an import.
type copied struct {
	api.ImportedTask
	historyItem []byte // history_item.json of the copy, when it is not the original's
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

// Interrupted is the folder of unverified copies that a killed import left; "" when there is none, or an import is
// running.
func Interrupted(s *store.Store) string {
	dir := filepath.Join(s.TasksDir(), stagesName)
	if _, err := os.Lstat(dir); err != nil {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(s.Root(), lockName)); err != nil {
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
	}
	im.overlay, _ = s.Overlay(ctx) // an overlay that cannot be read keeps no task from being copied
	im.report = api.Import{DryRun: o.DryRun, Items: []api.ImportedTask{}}
	im.progress.Of = len(list)
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
	progress api.ImportProgress
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
		if err == nil && from.Files == nil {
			im.copyLabels(ctx, &item)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), ctx.Err())
		}
		if err != nil {
			item.Outcome, item.Problem, item.ID, item.Path, item.ByteEqual = api.TaskFailed, err.Error(), "", "", false
		}
		im.count(item)
		im.progress.Tasks = i + 1
		im.reportProgress(ctx)
		if errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), err)
		}
	}
	return nil
}

func (im *importer) reportProgress(ctx context.Context) {
	if im.opt.Progress != nil {
		im.opt.Progress(im.progress)
	}
	p := im.progress
	progress.Report(ctx, progress.State{
		What:  "importing",
		Done:  p.Tasks,
		Of:    p.Of,
		Files: p.Files,
		Bytes: p.Bytes,
	})
}

func (im *importer) count(item copied) {
	r := &im.report
	r.Tasks++
	switch item.Outcome {
	case api.TaskImported:
		r.Imported++
	case api.TaskForked:
		r.Forked++
	case api.TaskSame:
		r.Same++
	case api.TaskConflict:
		r.Conflicts++
	case api.TaskEmpty:
		r.Empty++
	case api.TaskFailed:
		r.Failed++
	}
	if item.Outcome == api.TaskImported || item.Outcome == api.TaskForked {
		r.Files += item.Files
		r.Bytes += item.Bytes
	}
	for _, notes := range []*[]api.FileNote{&item.Differs, &item.LeftOut} {
		if *notes == nil {
			*notes = []api.FileNote{}
		}
	}
	if item.Notes == nil {
		item.Notes = []string{}
	}
	r.Items = append(r.Items, item.ImportedTask)
}

// copyLabels gives a copy the title, tags and pin that its original has in Roost, because lists show the copy from now
// on. It does so once: a copy whose labels were changed since keeps them. A failure is a note, and the copy stays.
func (im *importer) copyLabels(ctx context.Context, item *copied) {
	if im.opt.DryRun || item.Outcome != api.TaskImported && item.Outcome != api.TaskForked && item.Outcome != api.TaskSame {
		return
	}
	tasks, id := roofmt.PlaceOf(item.From)
	have, ok := im.overlay[overlay.Key{Source: store.SourceName(tasks), ID: id}]
	if !ok {
		return
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
	state, err := store.FoldJournal(ctx, ref.Log)
	if err == nil && state != nil && len(state.Actions.Done)+len(state.Actions.Undone) > 0 {
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
