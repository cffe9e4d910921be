package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Importable is a task that can be copied into Roost's own root.
type Importable struct {
	Name  string        // of the folder; any bytes
	Dir   string        // the folder; for a task of an archive what it is called in messages
	Files []ArchiveFile // of a task that lies in an archive; nil for a folder
	Saved uint64        // of a task that lies in an archive: see View.Saved
}

// ArchiveFile is one file of an archived task.
type ArchiveFile struct {
	Path   string // inside the task folder
	Size   int64
	SHA256 string // hex; a file with other bytes is refused
	MTime  time.Time
	Open   func() (io.ReadCloser, error)
}

// What becomes of a task whose id is taken by a task with other content.
const (
	ConflictSkip = "skip" // it stays where it is, and the report says so
	ConflictFork = "fork" // it is imported under an id that follows from its content
)

// ImportOptions say how tasks are imported. The zero value copies and skips what
// is in conflict.
type ImportOptions struct {
	DryRun     bool   // look and compare only: nothing is created
	OnConflict string // ConflictSkip (default) or ConflictFork
	Map        []PathMap
	Trust      bool // take over policy, address and limits that a journal came with

	// Progress, when set, is told after each file and each task. It is called by
	// the goroutine that called Import.
	Progress func(ImportProgress)
}

// ImportProgress is how far an import is.
type ImportProgress struct {
	Tasks, Of int
	Files     int
	Bytes     int64 // copied so far
}

// What became of a task.
const (
	Imported = "imported" // under its own id, or a new one if its name cannot be one
	Forked   = "forked"   // under a new id, because its own is taken by other content
	Same     = "same"     // the same content was there already
	Conflict = "conflict" // its id is taken by other content; left alone
	Vacant   = "empty"    // no byte of a message; left alone
	Failed   = "failed"   // Problem says why; nothing of it is there
)

// ImportReport is what an import did, or would do.
type ImportReport struct {
	DryRun    bool         `json:"dry_run"`
	Tasks     int          `json:"tasks"`
	Imported  int          `json:"imported"`
	Forked    int          `json:"forked"`
	Same      int          `json:"same"`
	Conflicts int          `json:"conflicts"`
	Empty     int          `json:"empty"`
	Failed    int          `json:"failed"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"`
	Items     []ImportItem `json:"items"`
}

// ImportItem is one task of an import. ByteEqual: every file of the copy was read
// back and is the original, byte for byte, but for those in Differs.
type ImportItem struct {
	ID        string       `json:"id"` // in Roost's own root; "" when it is not there
	Name      string       `json:"name"`
	From      string       `json:"from"`
	Path      string       `json:"path"`
	Outcome   string       `json:"outcome"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"`
	SHA256    string       `json:"sha256"` // of the list of the original's files and their sums
	ByteEqual bool         `json:"byte_equal"`
	Differs   []ImportNote `json:"differs"`
	LeftOut   []ImportNote `json:"left_out"`
	Notes     []string     `json:"notes"`
	Problem   string       `json:"problem"`

	history []byte // history_item.json as it will be, when that is not the original's
}

// ImportNote says something about a file.
type ImportNote struct {
	File string `json:"file"`
	What string `json:"what"`
}

// Why an import does not begin, or leaves a task out.
var (
	ErrImporting = errors.New("another import into it is running")
	ErrOwnPlace  = errors.New("it lies in Roost's own root already")
)

// Import copies tasks into Roost's own root. The originals are only read. A task
// appears there at once and whole, after each of its files was synced, read back
// and compared; a task that cannot be copied so does not appear, and the others
// go on. What is there with the same content is left as it is, so an import that
// was killed is continued by doing it again.
//
// Of a task that Roost continued in another tool's storage only that storage's
// files are copied. A journal is copied when the folder itself holds it, as in
// another root of Roost's; what is derived from it is not, and is made again. All that such a
// journal holds open ends with the import: see task.Received. A journal that lacks commits
// which the source knows as saved lacks them here, too, and is damaged.
//
// The error tells that no more tasks could be looked at; the report holds those
// before it. Errors wrap RootError, ErrImporting, syscall.ENOSPC or the context's.
func (s *Store) Import(ctx context.Context, list []Importable, o ImportOptions) (ImportReport, error) {
	im := &importer{store: s, opt: o, planned: map[string]Importable{}, buf: make([]byte, 1<<20)}
	im.marks, _ = s.Marks(ctx) // an overlay that cannot be read keeps no task from being copied
	im.report = ImportReport{DryRun: o.DryRun, Items: []ImportItem{}}
	im.progress.Of = len(list)
	if !o.DryRun {
		if err := s.Prepare(); err != nil {
			return im.report, err
		}
		free, err := lockImport(filepath.Join(s.opt.Root, importLock))
		if err != nil {
			return im.report, fmt.Errorf("import into %s: %w", s.opt.Root, err)
		}
		defer free()
		// What a killed import left is of no use to anybody: we hold its lock.
		if err := os.RemoveAll(im.stages()); err != nil {
			return im.report, fmt.Errorf("import into %s: clear what an interrupted import left: %w", s.opt.Root, err)
		}
	}
	err := im.all(ctx, list)
	if !o.DryRun {
		err = errors.Join(err, s.UpdateIndex(background(ctx), im.there), os.RemoveAll(im.stages()))
	}
	return im.report, err
}

// Names of an import. The folder begins with a dot: nobody takes it for a task.
const (
	importLock   = "import.lock"
	importStages = ".import"
	importRecord = ".roost-import.json"
)

// importer is one import.
type importer struct {
	store    *Store
	opt      ImportOptions
	report   ImportReport
	progress ImportProgress
	planned  map[string]Importable // ids that a dry run would have given away, and to which tasks
	marks    Marks
	there    []string // ids that stand in the root now and belong into the index
	buf      []byte
}

func (im *importer) stages() string { return filepath.Join(im.store.TasksDir(), importStages) }

func (im *importer) all(ctx context.Context, list []Importable) error {
	for i, from := range list {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), err)
		}
		item, err := im.one(ctx, from)
		if err == nil && from.Files == nil {
			im.label(ctx, &item)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), ctx.Err())
		}
		if err != nil {
			item.Outcome, item.Problem, item.ID, item.Path, item.ByteEqual = Failed, err.Error(), "", "", false
		}
		im.count(item)
		im.progress.Tasks = i + 1
		im.tell(ctx)
		if errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("import stopped after %d of %d tasks: %w", i, len(list), err)
		}
	}
	return nil
}

func (im *importer) tell(ctx context.Context) {
	if im.opt.Progress != nil {
		im.opt.Progress(im.progress)
	}
	p := im.progress
	Tell(ctx, Progress{What: "importing", Done: p.Tasks, Of: p.Of, Files: p.Files, Bytes: p.Bytes})
}

func (im *importer) count(item ImportItem) {
	r := &im.report
	r.Tasks++
	switch item.Outcome {
	case Imported:
		r.Imported++
	case Forked:
		r.Forked++
	case Same:
		r.Same++
	case Conflict:
		r.Conflicts++
	case Vacant:
		r.Empty++
	case Failed:
		r.Failed++
	}
	if item.Outcome == Imported || item.Outcome == Forked {
		r.Files += item.Files
		r.Bytes += item.Bytes
	}
	for _, notes := range []*[]ImportNote{&item.Differs, &item.LeftOut} {
		if *notes == nil {
			*notes = []ImportNote{}
		}
	}
	if item.Notes == nil {
		item.Notes = []string{}
	}
	r.Items = append(r.Items, item)
}

// ownPlace reports whether a folder is among Roost's own tasks.
func (s *Store) ownPlace(dir string) bool { return within(s.TasksDir(), dir) }

func within(dir, path string) bool {
	rel, err := filepath.Rel(clean(dir), clean(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
