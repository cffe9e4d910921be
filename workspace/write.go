package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
)

// checkReplaceable returns the file at name, nil when there is none. It opens the file for writing, since only the
// operating system knows all rules; it checks the mode too, since the system refuses nothing to root.
func checkReplaceable(dir *os.Root, name string) (fs.FileInfo, error) {
	old, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case old.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: it is a link now", ErrChanged) // p.Real had none in it
	case !old.Mode().IsRegular():
		return nil, ErrNotRegular
	case old.Mode().Perm()&0o222 == 0:
		return nil, fmt.Errorf("the file is read-only: %w", fs.ErrPermission)
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|OpenNonblock, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err == nil {
		f.Close()
	}
	return old, nil // other failures count for nothing: a program that runs cannot be written to, but it can be replaced
}

// hashAt returns the hash of a file's content, "" when the file does not exist.
func hashAt(ctx context.Context, dir *os.Root, name string) (string, error) {
	f, _, err := OpenIn(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, ErrNotRegular):
		return "", ErrChanged
	case err != nil:
		return "", err
	}
	defer f.Close()
	return hashOf(ctx, f)
}

// ErrPartly: a set of changes failed half-way, and some of the changes could not be undone. The error names the
// files.
var ErrPartly = errors.New("some files are changed and could not be changed back")

// Change is one file of a set that Apply changes.
type Change struct {
	Path   Path
	Data   []byte // the new content
	Remove bool   // remove the file; Data is ignored
	Expect string // the hash that the file must still have, FileState.Hash of the last look; "" for "there is no file"
	Like   *Path  // a new file gets the mode and the owner of this one, as after a move
}

// Apply makes all of the changes or none, as far as a file system allows: every new
// content is written and synced to a temporary file, and every file is compared with
// Expect, before the first one is replaced; if a step fails after that, the files that were
// changed get their old content back, the same file on disk where it can be linked
// to. The states come in the order of the changes; that of a removed file has no hash. No
// file may occur twice. For a single change it keeps no copy of the old content: there is nothing
// to roll back.
//
// When the error is nil, contents and names are synced to disk. Apply makes missing folders, and removes them again if
// it fails. An existing file keeps its mode, and its owner where allowed; a link stays a link and its target is
// replaced. A file that may not be written to is not replaced either, although a rename could: the error wraps
// fs.ErrPermission.
//
// If a file does not have the expected hash, the error wraps ErrChanged and nothing was touched. The same holds if a
// path now leads elsewhere than when it was judged, up to the last moment: all is done in folders that are held open
// and were seen to be those at the judged paths. What remains, for a file that exists, is the instant between the look
// at its content and the rename, in which another program may change it.
//
// Files are taken away last. A kill between two renames leaves a part of the set done:
// each file is the old one or the new one, one that is moved is in one place at least,
// and what is left beside them is swept. The alternative, a log of what
// is to be done, would have to be replayed by whoever starts next, over files that a
// person may have edited since.
func (w *Workspace) Apply(ctx context.Context, changes []Change) (states []FileState, err error) {
	named := func(p Path, err error) error { return fmt.Errorf("write %s: %w", p.Readable, err) }
	var steps []*changeStep
	defer func() {
		for _, s := range slices.Backward(steps) {
			s.close(err == nil)
		}
	}()
	seen := map[string]bool{}
	for _, c := range changes {
		if seen[c.Path.Real] {
			return nil, named(c.Path, errors.New("it is named twice"))
		}
		seen[c.Path.Real] = true
		s := &changeStep{Change: c}
		steps = append(steps, s)
		if err := w.prepare(ctx, s); err != nil {
			return nil, named(c.Path, err)
		}
	}
	w.replaceMu.Lock()
	defer w.replaceMu.Unlock()
	for _, s := range steps {
		if err := s.check(ctx, len(steps) > 1); err != nil {
			return nil, named(s.Path, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	failpoint.Hit("tool.write.before")
	order, added := replaceOrder(steps)
	for i, s := range order {
		if i == added && i > 0 { // a new place is on the disk before an old one is emptied
			for _, s := range order[:added] {
				if err := syncFolder(s.dir.Root); err != nil {
					return nil, rollBack(order, named(s.Path, err))
				}
			}
		}
		if err := s.apply(); err != nil {
			return nil, rollBack(order, named(s.Path, err))
		}
		failpoint.Hit("tool.write.after")
	}
	for _, s := range steps {
		if err := syncFolder(s.dir.Root); err != nil {
			return nil, rollBack(order, named(s.Path, err))
		}
		if s.Remove {
			states = append(states, FileState{Path: s.Path.Readable})
			continue
		}
		states = append(states, stateOf(s.Path.Readable, s.placed, HashOf(s.Data)))
	}
	return states, nil
}

// replaceOrder returns the steps in the order of work: removals come after all replacements; added counts the
// replacements. A move is two steps, and a kill between them must not lose the file.
func replaceOrder(steps []*changeStep) (order []*changeStep, added int) {
	order = slices.DeleteFunc(slices.Clone(steps), func(s *changeStep) bool { return s.Remove })
	removals := slices.DeleteFunc(slices.Clone(steps), func(s *changeStep) bool { return !s.Remove })
	return slices.Concat(order, removals), len(order)
}

// changeStep is one change while Apply makes it.
type changeStep struct {
	Change
	dir    *folder
	name   string
	old    fs.FileInfo // nil when there was no file
	tmp    *temp       // the new content
	kept   *temp       // the old content, until all is done
	done   bool
	placed fs.FileInfo
}

// prepare does all the work that leaves the file itself untouched.
func (w *Workspace) prepare(ctx context.Context, s *changeStep) error {
	now, err := w.Resolve(s.Path.Given)
	if err != nil {
		return err
	}
	if now.Real != s.Path.Real {
		return fmt.Errorf("%w: the path now leads to %s", ErrChanged, now.Real)
	}
	if s.Path.Real == w.root {
		return ErrNotRegular
	}
	if s.dir, err = w.pinFolder(filepath.Dir(s.Path.Real), true); err != nil {
		return err
	}
	w.sweepOnce(filepath.Dir(s.Path.Real), s.dir.Root)
	s.name = filepath.Base(s.Path.Real)
	if s.old, err = checkReplaceable(s.dir.Root, s.name); err != nil {
		return err
	}
	if (s.old != nil) != (s.Expect != "") {
		return ErrChanged
	}
	if s.Remove {
		if s.old == nil {
			return fs.ErrNotExist
		}
		return nil
	}
	like := s.old
	if like == nil && s.Like != nil {
		if like, err = os.Lstat(s.Like.Real); err != nil {
			return err
		}
	}
	s.tmp, err = newTemp(ctx, s.dir.Root, s.name, s.Data, like)
	return err
}

// check keeps the old content, if keep is set, and compares it with the expected hash, as late as possible.
func (s *changeStep) check(ctx context.Context, keep bool) error {
	if keep && s.old != nil {
		if err := s.keep(ctx); err != nil {
			return err
		}
	}
	hash, err := hashAt(ctx, s.dir.Root, s.name)
	if err == nil && hash != s.Expect {
		err = ErrChanged
	}
	return err
}

// keep gives the old file a second name, or, where that is not possible, copies its content to a second file.
func (s *changeStep) keep(ctx context.Context) (err error) {
	dir := s.dir.Root
	link := &temp{dir: dir, name: randomTemp(s.name)}
	if dir.Link(s.name, link.name) == nil {
		s.kept = link
		if link.f, err = dir.OpenFile(link.name, os.O_RDONLY|OpenNonblock, 0); err != nil {
			return err
		}
		if info, err := link.f.Stat(); err != nil || !os.SameFile(info, s.old) {
			return errors.Join(ErrChanged, err)
		}
		_, _ = lockFile(link.f) // so that no sweep takes it for a leftover
		return nil
	}
	f, _, err := OpenIn(dir, s.name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(NewContextReader(ctx, f))
	if err != nil {
		return err
	}
	s.kept, err = newTemp(ctx, dir, s.name, data, s.old)
	return err
}

func (s *changeStep) apply() (err error) {
	if s.Remove {
		err = s.dir.Remove(s.name)
	} else {
		s.placed, err = s.tmp.rename(s.name, s.Expect == "")
	}
	s.done = err == nil
	return err
}

// rollBack undoes the completed steps, the last one first, and returns err together with what could not be undone.
func rollBack(steps []*changeStep, err error) error {
	for _, s := range slices.Backward(steps) {
		if !s.done {
			continue
		}
		if bad := s.undo(); bad != nil {
			err = fmt.Errorf("%w; %w: %s: %w", err, ErrPartly, s.Path.Readable, bad)
		}
		_ = syncFolder(s.dir.Root)
	}
	return err
}

// undo restores the old file, if the path still holds what this step wrote.
func (s *changeStep) undo() error {
	now, err := s.dir.Lstat(s.name)
	switch {
	case s.Remove && !errors.Is(err, fs.ErrNotExist), !s.Remove && (err != nil || !os.SameFile(now, s.placed)):
		return errors.Join(ErrChanged, err)
	case s.kept == nil && s.old != nil:
		return nil // of a single change: its new content stays
	case s.kept == nil:
		return s.dir.Remove(s.name)
	}
	if s.kept.f != nil && !heldWhileOpen {
		s.kept.f.Close()
	}
	if err := atomicfile.RenameIn(s.dir.Root, s.kept.name, s.name); err != nil {
		return err
	}
	s.kept.name = ""
	return nil
}

// close removes the temporary files and closes the folder; unless keep is set, it also removes new folders.
func (s *changeStep) close(keep bool) {
	for _, t := range []*temp{s.tmp, s.kept} {
		if t != nil {
			t.discard()
		}
	}
	if s.dir != nil {
		s.dir.release(keep)
	}
}
