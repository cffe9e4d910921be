package roofmt

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
)

// Replacement is the new content of one file in a folder.
type Replacement struct {
	Name  string                  // file name, such as UIName
	Bytes []byte                  // the content, when Write is nil
	Write func(w io.Writer) error // writes the content; called once, before any lock is taken
	// Expect, when set, is the state that the file must have when it is replaced (the zero value: it must not exist).
	// If the state differs, Replace replaces nothing and returns ErrChanged.
	Expect *Fingerprint
	// Done, when set, receives the fingerprint of the new file.
	Done *Fingerprint
}

// Options of Replace. The zero value is for a folder that exists.
type Options struct {
	// Create makes the folder (0700) when it is missing; the folder above it must exist.
	Create bool
	// Once makes Replace give up at once, with ErrLocked, when another program holds a lock.
	Once bool
}

// ErrChanged is wrapped when a file is no longer what the caller expects. The message names it.
var ErrChanged = errors.New("changed by another program")

// ErrPartly is wrapped when some files were replaced and then a rename failed. The message names the replaced ones.
var ErrPartly = errors.New("only some files were replaced")

// pending is a file written beside its target.
type pending struct {
	Replacement
	temp  string // path
	print Fingerprint
}

// Replace puts new content into files of a task folder, each by one rename under Roo's lock. A crash at any moment
// leaves each file either old or new, and whole. All content is on disk before the first rename, and the renames are
// on disk when Replace returns nil.
//
// Errors wrap ErrChanged, ErrLocked, ErrPartly, the context's error, Write's error or the system's. Except with ErrPartly
// nothing was replaced. Calls may run at the same time, also from several processes.
func Replace(ctx context.Context, dir string, list []Replacement, opt Options) (err error) {
	ordered, err := order(list)
	if err != nil {
		return fmt.Errorf("writing to task folder %s: %w", dir, err)
	}
	if len(ordered) == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing to task folder %s: %w", dir, err)
		}
	}()
	if opt.Create {
		if err := createDir(dir); err != nil {
			return err
		}
	}
	if err := Sweep(ctx, dir); err != nil {
		return err
	}
	files := make([]pending, 0, len(ordered))
	defer func() {
		for _, p := range files {
			if p.temp != "" {
				_ = os.Remove(p.temp) // a leftover is swept next time
			}
		}
	}()
	for _, r := range ordered {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := writeTemp(dir, r)
		if err == nil {
			err = p.age()
		}
		files = append(files, p)
		if err != nil {
			return fmt.Errorf("writing %s: %w", r.Name, err)
		}
	}
	failpoint.Hit("project.temp")
	wait := backOff[:]
	if opt.Once {
		wait = nil
	}
	return commit(ctx, dir, files, wait)
}

// order checks the names and sorts them into the order in which locks are taken.
func order(list []Replacement) ([]Replacement, error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Replacement) int { return strings.Compare(a.Name, b.Name) })
	for i, r := range list {
		if r.Name == "" || strings.HasPrefix(r.Name, ".") || strings.ContainsAny(r.Name, "/\\\x00") || strings.HasSuffix(r.Name, ".lock") {
			return nil, fmt.Errorf("%q cannot name a file of a task", r.Name)
		}
		if i > 0 && list[i-1].Name == r.Name {
			return nil, fmt.Errorf("%s is given twice", r.Name)
		}
	}
	return list, nil
}

func createDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// commit takes the locks, compares the files, and renames them.
func commit(ctx context.Context, dir string, files []pending, wait []time.Duration) (err error) {
	set, err := lockAll(ctx, dir, namesOf(files), wait)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := set.release(); rerr != nil && err == nil {
			err = fmt.Errorf("%w: all were replaced, but a lock was not released: %w", ErrPartly, rerr)
		}
	}()
	for _, p := range files {
		if err := p.compare(dir); err != nil {
			return err
		}
	}
	for i := range files {
		p := &files[i]
		if err := set.keep(); err != nil {
			return partly(files[:i], err)
		}
		if err := atomicfile.Rename(p.temp, filepath.Join(dir, p.Name)); err != nil {
			return partly(files[:i], err)
		}
		p.temp = ""
		if p.Done != nil {
			*p.Done = p.print
		}
		if i == 0 {
			failpoint.Hit("project.renamed")
		}
	}
	// Synced under the lock: whoever comes next builds on what is on disk.
	return api.Failed(atomicfile.SyncDir(dir), "%w: all were replaced, but the folder was not synced", ErrPartly)
}

func partly(done []pending, err error) error {
	if len(done) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s): %w", ErrPartly, strings.Join(namesOf(done), ", "), err)
}

func namesOf(files []pending) []string {
	return api.Each(files, func(p pending) string { return p.Name })
}

// compare checks that the target is as the caller expects, and that it is a file that a rename may replace.
func (p pending) compare(dir string) error {
	info, err := os.Lstat(filepath.Join(dir, p.Name))
	var now Fingerprint
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", p.Name)
	case err == nil:
		now = fingerprintOf(info)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if p.Expect != nil && now != *p.Expect {
		return fmt.Errorf("%s: %w: expected %v, found %v; read it again", p.Name, ErrChanged, *p.Expect, now)
	}
	return nil
}

// writeTemp writes and syncs the new content beside its target. Even when it fails, p.temp names the file to remove.
func writeTemp(dir string, r Replacement) (p pending, err error) {
	p.Replacement = r
	p.temp = filepath.Join(dir, tempName(r.Name))
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(filepath.Join(dir, r.Name)); err == nil {
		mode = info.Mode().Perm() // an editor under another account must still be able to read it
	}
	f, err := os.OpenFile(p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return p, err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	if mode != 0o600 {
		if err := f.Chmod(mode); err != nil {
			return p, err
		}
	}
	if r.Write != nil {
		out := bufio.NewWriterSize(f, 256<<10)
		if err = r.Write(out); err == nil {
			err = out.Flush()
		}
	} else {
		_, err = f.Write(r.Bytes)
	}
	if err == nil {
		err = f.Sync()
	}
	return p, err
}

// A later write by another program must not give the file the same time as Roost's write: written in place with as
// many bytes, it would look unchanged, and Roost would replace it. So Roost sets its time back by more than one step
// of the system's clock.
const (
	setBack       = 100 * time.Millisecond
	setBackCoarse = 2500 * time.Millisecond // on a system whose times have whole seconds only
)

// age sets the time of a written file back, and takes its fingerprint. Where times cannot be set the file stays
// unchanged.
func (p *pending) age() error {
	info, err := os.Lstat(p.temp)
	if err != nil {
		return err
	}
	back := setBack
	if info.ModTime().Nanosecond() == 0 {
		back = setBackCoarse
	}
	if os.Chtimes(p.temp, time.Time{}, info.ModTime().Add(-back)) == nil {
		if info, err = os.Lstat(p.temp); err != nil {
			return err
		}
	}
	p.print = fingerprintOf(info)
	return nil
}

// tempName returns a name that contains its owner, so that leftovers of dead processes differ from files of live
// ones.
func tempName(name string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%stmp_%s_%d_%s_%x_%s", ourPrefix, me().Domain, me().PID, me().Start, b, name)
}

// Sweep removes what dead processes of Roost left in a task folder: temporary files, and Roo's locks, because of
// which a live editor would lose its saves for half a minute. Replace calls it first; after a crash an earlier call
// helps. It touches nothing of other programs. A file that cannot be removed is no error; a folder that cannot be
// listed is.
func Sweep(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	var locks []fs.DirEntry
	for _, e := range entries {
		switch l, ok := leftOf(dir, e, time.Now()); {
		case !ok || !l.Ours:
		case ourTemp().MatchString(l.Name):
			_ = os.Remove(filepath.Join(dir, l.Name))
		default:
			locks = append(locks, e)
		}
	}
	if len(locks) == 0 {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	// Another writer of ours may hold these locks; with the folder locked none does.
	if err := waitDir(ctx, d); err != nil {
		return errors.Join(err, d.Close())
	}
	for _, e := range locks {
		if l, ok := leftOf(dir, e, time.Now()); !ok || !l.Ours {
			continue
		}
		_ = os.Remove(filepath.Join(dir, e.Name()))
		if file, is := strings.CutSuffix(e.Name(), ".lock"); is { // its record goes with it
			_ = os.Remove(ownerPath(filepath.Join(dir, file)))
		}
	}
	return errors.Join(unlockDir(d), d.Close())
}

// Left is a file that interrupted work left in a task folder.
type Left struct {
	Name string
	What string
	Ours bool // left by a dead process of Roost: Sweep removes it
}

// leftAge is the age from which another program's temporary file counts as left: a write takes well under a second.
const leftAge = time.Minute

// Leftovers lists what interrupted writes left in a folder: temporary files, and locks that no process holds. It does
// not list files that a live process may still use. It changes nothing. A missing folder has no leftovers.
func Leftovers(dir string, now time.Time) ([]Left, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for leftovers: %w", err)
	}
	return api.Some(entries, func(e os.DirEntry) (Left, bool) { return leftOf(dir, e, now) }), nil
}

func leftOf(dir string, e fs.DirEntry, now time.Time) (Left, bool) {
	name := e.Name()
	info, err := e.Info()
	if err != nil {
		return Left{}, false // it went just now
	}
	age := now.Sub(info.ModTime())
	if m := ourTemp().FindStringSubmatch(name); m != nil {
		return Left{name, "a temporary file of a Roost process that has ended", true}, isLeft(e, m)
	}
	if file, ok := strings.CutPrefix(name, ourPrefix+"lock_"); ok {
		return Left{name, "the record of a lock whose process has ended", true}, orphanRecord(filepath.Join(dir, file))
	}
	if l, ok := parseLeftover(name); ok {
		what := "what was to become "
		if l.Backup {
			what = "what had been "
		}
		return Left{name, what + l.Target + " when a write of it was interrupted", false}, age > leftAge
	}
	if !e.IsDir() || !isLock(name) {
		return Left{}, false
	}
	if leftByDead(filepath.Join(dir, name)) {
		return Left{name, "a lock of a Roost process that has ended", true}, true
	}
	return Left{name, "a lock that no process has renewed for " + age.Round(time.Second).String(), false}, age > staleAfter
}

// orphanRecord reports whether a file's lock record has no lock, and its process is dead.
func orphanRecord(file string) bool {
	if _, err := os.Lstat(file + ".lock"); !os.IsNotExist(err) {
		return false // it goes with its lock
	}
	o, ok := recordOf(ownerPath(file)) // the lock itself does not matter
	return ok && o.dead()
}

// isLeft reports whether the process that made a temporary file has ended.
func isLeft(e os.DirEntry, m []string) bool {
	pid, _ := strconv.Atoi(m[2])
	maker := self{m[1], pid, m[3]}
	if maker.Domain == me().Domain {
		return maker.dead()
	}
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > foreignTempAge
}

// foreignTempAge is the age from which a temporary file of another machine or container, whose processes are
// invisible here, counts as left.
const foreignTempAge = time.Hour
