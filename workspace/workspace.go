// Package workspace is the user's folder as an agent may see and touch it: where
// a path really leads, whether it leaves the folder, whether .rooignore hides it,
// whether it is write-protected, what a file held when it was last read, and
// how it is replaced without ever being half written.
//
// Symbolic links are always followed before a path is judged, also for files
// that do not exist yet. A judgement is about one moment: Apply judges again, and
// works through a pinned directory, so that a link that is swapped in between
// cannot lead it out of the workspace.
//
// Reads follow the same rule: Read opens the file first, and then checks that the path leads
// to that file and through no link.
//
// A write that is killed leaves at most one temporary file, ".NAME.roost-XXXX.tmp",
// beside its target. The next write to that folder removes it, and Sweep does so
// without one; files that a live process still holds stay. Where the system has no
// flock nothing is removed.
//
// Limits: a replaced file is a new file on disk, so hard links to the old one keep
// the old content, and extended attributes are not carried over; a folder that may
// not be written to takes no change of its files, even of those that may.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Errors that callers distinguish.
var (
	// ErrMissing: the workspace folder does not exist or is not a folder.
	ErrMissing = errors.New("workspace folder is missing")
	// ErrPath: a path that no file can have, or that would take too long to judge.
	ErrPath = errors.New("not a usable path")
	// ErrChanged: the file's content is not the content that the caller last saw.
	ErrChanged = errors.New("file has changed in the meantime")
	// ErrNotRegular: the target is a folder, a device or another special file.
	ErrNotRegular = errors.New("not a regular file")
)

// maxPath bounds a path in bytes; Linux takes 4096.
const maxPath = 4096

// Workspace is one folder. It is safe for concurrent use.
type Workspace struct {
	root  string      // absolute, links followed
	given string      // absolute, as the caller wrote it
	info  fs.FileInfo // of root when it was opened

	guards []string // protected wherever they are

	replaceMu sync.Mutex // held while a file is compared and replaced

	mu        sync.Mutex
	rules     *Ignore // parsed from rulesText, the text of .rooignore; nil = not read
	rulesText string
	swept     map[string]bool // folders that were searched for leftover temporary files
}

// Path is a path after judgement.
type Path struct {
	Given         string // as asked for
	Abs           string // absolute and clean, links not followed
	Real          string // absolute, links followed; what a read or write touches
	Readable      string // for people: relative with "/", the folder's name for the root, absolute when outside
	RealReadable  string // the same form of Real
	Outside       bool   // Real is outside the workspace
	LinkedOutside bool   // a link leads out of the workspace: Abs is inside, Real is not
	Ignored       bool   // .rooignore hides Real
	Protected     bool   // a file that steers agents or editors; writing it needs its own consent
}

// Open opens the folder dir. It must exist: a missing workspace is never guessed or created, the error wraps
// ErrMissing and names the path.
func Open(dir string) (*Workspace, error) {
	if strings.IndexByte(dir, 0) >= 0 {
		return nil, fmt.Errorf("open workspace %q: %w: it holds a zero byte", dir, ErrPath)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open workspace %s: %w: there is no such folder", abs, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", abs, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", abs, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open workspace %s: %w: it is a file", abs, ErrMissing)
	}
	return &Workspace{root: real, given: abs, info: info, swept: map[string]bool{}}, nil
}

// Root returns the folder's absolute path, with links followed.
func (w *Workspace) Root() string { return w.root }

// Resolve judges a path, relative to the root or absolute. The file need not
// exist. The error wraps ErrPath for a path that cannot name a file; another error
// means that the rules could not be read, and then nothing may be touched.
func (w *Workspace) Resolve(path string) (Path, error) {
	rules, err := w.Ignore()
	if err != nil {
		return Path{}, err
	}
	return w.resolve(path, rules)
}

func (w *Workspace) resolve(path string, rules *Ignore) (Path, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return Path{}, fmt.Errorf("path %q: %w: it holds a zero byte", path, ErrPath)
	}
	if len(path) > maxPath {
		return Path{}, fmt.Errorf("path %.40q...: %w: longer than %d bytes", path, ErrPath, maxPath)
	}
	abs := filepath.Clean(path)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.root, abs)
	} else if rel, ok := Within(w.given, abs); ok {
		// The root as the user wrote it may lead through a link.
		abs = filepath.Join(w.root, rel)
	}
	real, info, err := followLinks(abs)
	if err != nil {
		return Path{}, fmt.Errorf("path %s: %w", path, err)
	}
	realRel, inside := Within(w.root, real)
	absRel, lexInside := Within(w.root, abs)
	p := Path{Given: path, Abs: abs, Real: real, Readable: filepath.ToSlash(abs), RealReadable: filepath.ToSlash(real),
		Outside: !inside, LinkedOutside: lexInside && !inside, Protected: w.guarded(real)}
	if inside {
		p.RealReadable = w.readable(realRel)
		p.Readable = p.RealReadable
		p.Ignored = realRel != "." && rules.Hides(filepath.ToSlash(realRel), info != nil && info.IsDir())
		p.Protected = p.Protected || Protected(filepath.ToSlash(realRel)) || w.inRepositoryFolder(realRel)
	}
	if lexInside {
		p.Readable = w.readable(absRel)
		p.Protected = p.Protected || Protected(filepath.ToSlash(absRel))
	}
	return p, nil
}

func (w *Workspace) readable(rel string) string {
	if rel == "." {
		return filepath.Base(w.root)
	}
	return filepath.ToSlash(rel)
}
