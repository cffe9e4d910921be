package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
)

// A list uses a kept row as long as everything that the row was derived from looks as it did: the task's folder, whose
// times change with every name in it, and each file, because a file that is written in place changes nothing but itself.
// So a list costs one stat for each file of each task, and opens no file. Linux has no cheaper way to notice changes, other
// than a process that watches all the time. Where there are very many tasks, a list stats files that a tool is unlikely to
// write in place less often: see the comment of pace.

// calm reports whether a change of a file now would show in its times, given the time of its last change.
func (s *Store) calm(newest int64, now time.Time) bool { return intake.Settled(newest, now, s.calmIn) }

// fingerprint is a digest of how files look.
type fingerprint struct {
	digest  uint64
	folders uint64 // of the folders and journals alone
	newest  int64  // when the newest of them changed
	written int64  // when the newest file was written
	failed  bool   // a stat failed
}

func (f *fingerprint) add(d *dirstat.Dir, name string, follow bool) {
	s, err := d.Stat(name, follow)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.digest = catalog.Mix(f.digest, 1)
	case err != nil:
		f.failed = true
	default:
		for _, n := range [...]uint64{s.Mode, uint64(s.Size), s.Inode, uint64(s.Written), uint64(s.Changed)} {
			f.digest = catalog.Mix(f.digest, n)
		}
		f.newest = max(f.newest, s.Changed)
		if !follow {
			f.written = max(f.written, s.Written)
		}
	}
}

// folder adds a task's folder and its journal, which is the first file where there is one.
func (f *fingerprint) folder(d *dirstat.Dir, dir, names string) {
	f.add(d, dir, true)
	if first, _, _ := strings.Cut(names, "\x00"); first == JournalName {
		f.add(d, dir+"/"+first, false)
	}
}

// files adds the files that are named, without the journal.
func (f *fingerprint) files(d *dirstat.Dir, dir, names string) {
	for names != "" {
		var name string
		switch name, names, _ = strings.Cut(names, "\x00"); {
		case name == JournalName:
		case strings.HasPrefix(name, besideMark):
			f.add(d, filepath.Dir(dir)+name[len(besideMark)-1:], false)
		default:
			f.add(d, dir+"/"+name, false)
		}
	}
}

// logMark separates, in a list of files' names, the files of the task's folder from those of the journal's folder, when
// that is another folder. No file's name begins with it.
const logMark = "\x00/"

// besideMark begins the name of a file beside a task that is a single file: the manifest of a subagent's session,
// which names the folder where both work.
const besideMark = "../"

// taskDirs are the folders that the tasks of a source are in.
type taskDirs struct {
	tasks *dirstat.Dir
	logs  *dirstat.Dir      // nil: no task of it was continued, or they are the same folders
	has   map[string]bool   // the tasks that have a folder among the logs
	at    map[string]string // the places of the tasks that have no folder of their own

	journals map[string]postgres.Entry // of a database, in place of folders
}

func (s *Store) taskDirs(src Source) (t taskDirs, err error) {
	if src.journals != nil {
		return taskDirs{journals: src.journals}, nil
	}
	if t.tasks, err = dirstat.Open(src.Tasks); err != nil || src.Own {
		return t, err
	}
	t.at = map[string]string{}
	for id, dir := range src.at {
		rel, err := filepath.Rel(src.Tasks, dir)
		if err != nil {
			return t, err
		}
		t.at[id] = rel
	}
	dir := s.AdoptedDir(src.Name)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		t.logs, err = dirstat.Open(dir)
	}
	t.has = map[string]bool{}
	for _, e := range entries {
		t.has[e.Name()] = true
	}
	return t, err
}

func (t taskDirs) close() {
	if t.journals != nil {
		return
	}
	t.tasks.Close()
	t.logs.Close()
}

// fingerprint returns the fingerprint of one task: of its folders and journal and, with closely, of the named files.
func (t taskDirs) fingerprint(id, files string, closely bool) (out fingerprint) {
	if t.journals != nil {
		e := t.journals[id]
		out.digest = catalog.Mix(catalog.Mix(1, e.Head), e.Epoch) | 1
		out.folders = out.digest
		return out
	}
	names, logNames, logged := strings.Cut(files, logMark)
	if logged != t.has[id] {
		return fingerprint{failed: true}
	}
	dir := t.dir(id)
	if out.folder(t.tasks, dir, names); logged && !out.failed {
		out.folder(t.logs, id, logNames)
	}
	if out.folders = out.digest; out.failed || !closely {
		return out
	}
	if out.files(t.tasks, dir, names); logged && !out.failed {
		out.files(t.logs, id, logNames)
	}
	return out
}

// dir returns a task's place below the folder of tasks.
func (t taskDirs) dir(id string) string {
	if dir, ok := t.at[id]; ok {
		return dir
	}
	return id
}

// files returns the names of the files that a task's row is derived from; false when the row is not derived from
// files alone.
func (t taskDirs) files(ref Ref) (string, bool) {
	if t.journals != nil {
		return "", true
	}
	names, ok := filesIn(ref.Dir, "")
	if t.has[ref.ID] && ok {
		var log []string
		log, ok = filesIn(ref.Log, "")
		return strings.Join(names, "\x00") + logMark + strings.Join(log, "\x00"), ok
	}
	return strings.Join(names, "\x00"), ok
}

// filesMost bounds how many files of one task a list stats. A list reads a task with more files each time.
const filesMost = 4096

func filesIn(dir, below string) ([]string, bool) {
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() {
		return []string{besideMark + filepath.Base(filepath.Dir(dir)) + ".json"}, true // a task that is one file
	}
	entries, err := os.ReadDir(filepath.Join(dir, below))
	if errors.Is(err, fs.ErrNotExist) && below == "" {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	var out []string
	for _, e := range entries {
		name := path.Join(below, e.Name())
		switch {
		case strings.Contains(name, "\x00"), e.Type()&fs.ModeSymlink != 0:
			return nil, false // its target may be anywhere
		case name == "journal.lock", name == "journal.idx", strings.HasPrefix(name, projection.TempPrefix):
			// They hold nothing that the journal lacks, and the lock changes when the task is only read.
		case name == JournalName && below == "":
			out = append([]string{name}, out...)
		case !e.IsDir():
			out = append(out, name)
		case below == "" && strings.HasSuffix(name, ".lock"):
			return nil, false // no file shows whether a process writes
		case name == "blobs", strings.HasPrefix(below, "blobs"):
			list, ok := filesIn(dir, name)
			if !ok {
				return nil, false
			}
			out = append(append(out, name), list...)
		}
		if len(out) > filesMost {
			return nil, false
		}
	}
	return out, true
}

// historyNames returns the files by which two folders of one id are compared: with the same content they are one
// task.
func historyNames(id string) [4]string {
	return [4]string{roofmt.UIName, roofmt.APIName, roofmt.LegacyName, roofmt.TranscriptName(id)}
}

// sizes returns a digest of the lengths of the histories; 0 when one is no plain file.
func (t taskDirs) sizes(id string) uint64 {
	digest := uint64(1)
	if t.journals != nil || t.dir(id) != id {
		return 0
	}
	for _, name := range historyNames(id) {
		s, err := t.tasks.Stat(id+"/"+name, false)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			digest = catalog.Mix(digest, 1)
		case err != nil || !s.Regular():
			return 0
		default:
			digest = catalog.Mix(catalog.Mix(digest, 2), uint64(s.Size))
		}
	}
	return digest | 1
}

// A task that is in two places with the same content is one task with a copy:
// a storage that was copied to another editor, or an import. Content is judged by
// the bytes of both histories. One that was continued in one of the places is two tasks.

// Groups sorts the places of one id into groups of the same content, with the best place of each group first.
func (s *Store) Groups(ctx context.Context, places []Ref) [][]Ref {
	rank := func(r Ref) int { return s.rank(ctx, r) }
	return grouped(slices.Clone(places), rank, func(a, b Ref) bool { return s.sameTask(ctx, a, b) })
}

// grouped sorts a list by rank, and puts items that are the same into one group.
func grouped[T any](list []T, rank func(T) int, same func(a, b T) bool) (out [][]T) {
	slices.SortStableFunc(list, func(a, b T) int { return rank(a) - rank(b) })
	for _, x := range list {
		if i := slices.IndexFunc(out, func(group []T) bool { return same(group[0], x) }); i >= 0 {
			out[i] = append(out[i], x)
		} else {
			out = append(out, []T{x})
		}
	}
	return out
}

// rank orders the places of a task: first our own root, then the tasks that we continued, then the others.
func (s *Store) rank(ctx context.Context, r Ref) int {
	switch {
	case r.Own:
		return 0
	case s.HasJournal(ctx, r):
		return 1
	}
	return 2
}

// sameTask reports whether two folders hold the same histories. Two tasks that were both continued here have journals of
// their own and are never the same. A folder that cannot be read is not the same as any other.
func (s *Store) sameTask(ctx context.Context, a, b Ref) bool {
	if s.rank(ctx, a) < 2 && s.rank(ctx, b) < 2 && s.HasJournal(ctx, a) && s.HasJournal(ctx, b) {
		return false
	}
	for _, name := range historyNames(a.ID) {
		if sizeOf(historyFile(a, name)) != sizeOf(historyFile(b, name)) {
			return false
		}
	}
	one, err := contentOf(ctx, a)
	if err != nil || one == noContent { // two empty folders have nothing in common
		return false
	}
	other, err := contentOf(ctx, b)
	return err == nil && one == other
}

// sizeOf returns the size of a plain file in bytes; -1 when there is none.
func sizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// historyFile returns where a file of a task is, or would be. A subagent has but one.
func historyFile(r Ref, name string) string {
	if roofmt.FolderOf(r.Dir) == r.Dir {
		return filepath.Join(r.Dir, name)
	}
	if name == roofmt.TranscriptName(r.ID) {
		return r.Dir
	}
	return r.Dir + ".absent"
}

// noContent stands for histories without a byte: two folders with it are not the same task.
var noContent = [16]byte{1}

// contentOf returns a digest of what sameTask compares.
func contentOf(ctx context.Context, ref Ref) (out [16]byte, err error) {
	h, bytes := sha256.New(), int64(0)
	for _, name := range historyNames(ref.ID) {
		path := historyFile(ref, name)
		info, err := os.Lstat(path)
		if os.IsNotExist(err) {
			h.Write([]byte{0})
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = &os.PathError{Op: "read", Path: path, Err: os.ErrInvalid}
		}
		if err != nil {
			return out, err
		}
		n, err := hashFile(ctx, h, path, info.Size())
		if err != nil {
			return out, err
		}
		bytes += n
	}
	if bytes == 0 {
		return noContent, nil
	}
	copy(out[:], h.Sum(nil))
	return out, nil
}

// hashFile adds a file to a hash, its size first. It fails when the file no longer has this size.
func hashFile(ctx context.Context, h hash.Hash, path string, size int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h.Write(binary.AppendVarint([]byte{1}, size))
	n, err := io.Copy(h, inputfile.ContextReader(ctx, f))
	if err != nil {
		return n, err
	}
	if n != size {
		return n, fmt.Errorf("read %s: it changed", path)
	}
	return n, nil
}
