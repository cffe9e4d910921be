// Package checkpoint keeps the contents of files that an agent, or a command that it ran, changed, so that they can
// be restored. Look returns what is at a path now, Hold also keeps its content, Survey finds what a command changed,
// and Save gives the contents a name that garbage collection respects. The journal records which file held which
// content when; this package holds the contents, in one content store per workspace. Stores of earlier versions are
// read until the first write carries them over (checkpoint/gitstore).
//
// Nothing here follows a link out of the workspace, or at all: a link is recorded as a link. Nothing under a ".git", of
// any repository, is read, kept or changed. Bytes are kept as they are, whichever filters a repository names.
//
// Where git is installed, the user's own git objects are read, so that a clean checkout need not be copied before each
// command; nothing is ever written to them.
//
// Limits: a change that keeps size, times, inode and mode of a file is not seen (where the system keeps change times
// only root can make one); letter case of paths is taken as given; files that .gitignore hides are examined only when
// they are known; owners, attributes and access lists are not kept; a command that removes a repository removes with it
// the contents that only that had.
package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/checkpoint/gitstore"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/workspace"
)

// Options bound what is kept. The zero value means the defaults; a negative number
// means none at all.
type Options struct {
	MaxHold   int64 // bytes of one file that the agent itself is about to change: 64 MiB
	MaxFile   int64 // bytes of one file that a survey keeps: 2 MiB
	MaxSurvey int64 // bytes that one survey keeps: 64 MiB
	MaxFiles  int   // files that one survey keeps: 20,000
	MaxRead   int64 // bytes that one survey reads: 512 MiB
	MaxWalk   int   // files that a survey examines: 200,000
	MaxStore  int64 // bytes on disk above which nothing more is kept: 2 GiB

	// Name is the name of the store; "" = NameOf the workspace's path.
	Name string

	// Git is the program that reads the user's own repositories; "" = the one on the PATH, "none" = none is used.
	Git string
	// Home is the home folder; "" = that of the current user.
	Home string
}

func (o Options) filled() Options {
	o.MaxHold = max(cmp.Or(o.MaxHold, 64<<20), 0)
	o.MaxFile = max(cmp.Or(o.MaxFile, 2<<20), 0)
	o.MaxSurvey = max(cmp.Or(o.MaxSurvey, 64<<20), 0)
	o.MaxRead = max(cmp.Or(o.MaxRead, 512<<20), 0)
	o.MaxStore = max(cmp.Or(o.MaxStore, 2<<30), 0)
	o.MaxFiles = max(cmp.Or(o.MaxFiles, 20_000), 0)
	o.MaxWalk = max(cmp.Or(o.MaxWalk, 200_000), 0)
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // none: then no folder counts as the home folder
	}
	return o
}

// Keeper keeps the contents of one workspace's files. It is safe for concurrent use;
// any number of processes may have one for the same workspace.
type Keeper struct {
	w    *workspace.Workspace
	name string
	o    Options
	*Contents

	mu      sync.Mutex // guards the next fields
	known   map[string]bool
	sound   map[content.Hash]bool // contents that were read and found whole
	saved   map[string]saved      // by owner
	unsaved map[string]int64      // blobs that were held for a checkpoint that is not saved yet, by time; Unix nanoseconds

	// One survey at a time: its goroutine has put a value into turn.
	turn    chan struct{}
	last    *scan           // the newest survey, nil before the first
	loaded  bool            // load has run
	stored  uint32          // the checksum of the survey on disk
	tracked map[string]bool // paths that .gitignore hides, but that are in a repository's index
	rules   map[string]compiled
	git     userGit
}

// Name returns the name of the store's folder. Unless Options name it, it follows from the workspace's path, so a
// moved workspace has another one.
func (k *Keeper) Name() string { return k.name }

// NameOf returns the name of the store of the workspace at a path, which is absolute and without links.
func NameOf(root string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(root))
	if len(base) > 40 {
		base = base[:40]
	}
	sum := sha256.Sum256([]byte(root))
	return base + "-" + hex.EncodeToString(sum[:8])
}

// Unfit returns why a folder cannot be a project: it is the root of a disk, a home folder or a parent of one, or it
// contains or is inside own, the folder of the program's data. "" = it may be one. root is without links; a home of ""
// is the current user's.
func Unfit(root, own, home string) string {
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	own = real(own)
	switch {
	case filepath.Dir(root) == root:
		return "the workspace is the root of a disk"
	case home != "" && workspace.Below(root, real(home)):
		return root + " is the home folder or holds it, and what a command may change there belongs to no project"
	case workspace.Below(root, own):
		return root + " holds Roost's own data (" + own + ")"
	case workspace.Below(own, root):
		return root + " is inside Roost's own data (" + own + ")"
	}
	return ""
}

// real returns a path with links followed as far as it exists.
func real(path string) string {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if r, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(r, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// Know names paths that belong to a task, so that a survey examines them even where .gitignore hides them. Hold and
// Changes do that for their paths by themselves.
func (k *Keeper) Know(paths ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range paths {
		if plain(p) {
			k.known[p] = true
		}
	}
}

// expand returns the recorded paths of a path that a tool was given: the path where a write to it would end, and the
// link that leads there. It returns none when the path is outside the workspace, or git's own.
func (k *Keeper) expand(given string) ([]string, error) {
	name := OnDisk(given)
	if name != given {
		// Most likely given is a recorded path. Otherwise it is a file that really has such a name.
		if _, err := os.Lstat(filepath.Join(k.w.Root(), given)); err == nil {
			name = given
		}
	}
	p, err := k.w.Resolve(name)
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(abs string) {
		rel, err := filepath.Rel(k.w.Root(), abs)
		if err != nil {
			return
		}
		if rel = Recorded(rel); plain(rel) {
			out = append(out, rel)
		}
	}
	add(p.Real)
	// The other path follows the links of the folder and keeps the last name: the link itself.
	if p.Abs != p.Real {
		dir, err := k.w.Resolve(filepath.Dir(p.Abs))
		if err != nil {
			return nil, err
		}
		at := filepath.Join(dir.Real, filepath.Base(p.Abs))
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			add(at)
		}
	}
	return out, nil
}

// saved is the newest manifest that a Keeper saved for a task, and the contents that it is known to reach.
type saved struct {
	commit string
	named  map[string]bool
}

// Open opens the keeper of a workspace. The folder of the place is the program's own (<root>/checkpoints) and is made
// when absent. The error wraps ErrRefused for the root of a disk, a home folder or a folder around one, and for
// folders that hold the program's own data or lie in it.
func Open(p Place, w *workspace.Workspace, o Options) (*Keeper, error) {
	o = o.filled()
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints of %s: %w", w.Root(), err)
	}
	p.Dir = dir
	if why := Unfit(w.Root(), filepath.Dir(dir), o.Home); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrRefused, why)
	}
	name := cmp.Or(o.Name, NameOf(w.Root()))
	c, err := p.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints of %s: %w", w.Root(), err)
	}
	k := &Keeper{
		w: w, name: name, o: o, Contents: c,
		known: map[string]bool{}, sound: map[content.Hash]bool{}, saved: map[string]saved{}, unsaved: map[string]int64{},
		turn: make(chan struct{}, 1), rules: map[string]compiled{},
		tracked: map[string]bool{},
	}
	k.git.program = o.Git
	return k, nil
}

// load reads the survey of an earlier process, once.
func (k *Keeper) load() {
	if k.loaded {
		return
	}
	k.loaded = true
	k.sweep()
	name := filepath.Join(k.dir, cacheName)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return
	}
	if list, ok := decodeCache(data); ok {
		k.last = &scan{list: list}
		k.stored = cacheSum(data)
	}
}

// sweep removes temporary files that killed processes left.
func (k *Keeper) sweep() {
	names, _ := filepath.Glob(filepath.Join(k.dir, cacheName+"-*.tmp")) // with an unusual path a leftover stays
	more, _ := filepath.Glob(filepath.Join(k.dir, "."+beforeName+"*.tmp"))
	for _, name := range append(names, more...) {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
}

// remember stores the newest survey when it differs from the stored one. A failure costs only time at the next start.
func (k *Keeper) remember() {
	data := encodeCache(k.last.list)
	sum := cacheSum(data)
	if sum == k.stored {
		return
	}
	k.stored = sum
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return
	}
	_ = atomicfile.WriteDerived(filepath.Join(k.dir, cacheName), cacheName+"-*.tmp", data)
}

// Usage returns the number and the size of the contents that the checkpoints of one task reach. Contents that tasks share
// count for each of them. For a task whose checkpoints are in the store of an earlier version, it is the size of that
// store.
func (k *Keeper) Usage(ctx context.Context, task string) (objects int, bytes int64, err error) {
	owner := OwnerOf(task)
	objects, bytes, err = k.store.Reaches(ctx, owner)
	if k.old == nil || !errors.Is(err, content.ErrMissing) {
		return objects, bytes, err
	}
	refs, bad := k.old.Refs()
	if bad != nil || refs[owner] == "" {
		return objects, bytes, errors.Join(err, bad)
	}
	blobs, _, err := k.old.Reaches(ctx, refs[owner])
	return len(blobs), k.old.Size(), err
}

var errNoTask = errors.New("a task without an id has no checkpoints")

// Forget removes contents from an owner; the next Collect removes those that no other task has. An owner without
// contents is no error.
func (c *Contents) Forget(ctx context.Context, owner string) error {
	ForgetCalls(c.dir, owner)
	err := c.store.RemoveName(ctx, owner)
	if c.old != nil {
		err = errors.Join(err, c.old.RemoveRef(owner))
	}
	return err
}

// Collect removes contents that no task owns. With surveys, contents stay that the newest survey of the workspace, or
// a survey of a running or interrupted command, relies on. A dry run treats the owners in without as removed, and
// ignores a store that is not carried over yet.
func (c *Contents) Collect(ctx context.Context, dry, surveys bool, without ...string) (done content.Collected, err error) {
	carried := int64(0)
	if !c.shared && gitstore.Open(c.dir) != nil {
		carried = c.old.Size()
		if !dry {
			if err := c.carryOver(ctx); err != nil {
				return done, err
			}
		}
	}
	o := content.CollectOptions{DryRun: dry, Without: without}
	if surveys {
		o.Keep = func() ([]content.Hash, error) { return relied(c.dir), nil }
	}
	done, err = c.store.Collect(ctx, o)
	if carried > 0 && err == nil && dry {
		done.Before, done.After = done.Before+carried, done.After+carried
	}
	return done, err
}
