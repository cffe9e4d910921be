package roofmt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// reader is one pass over a folder.
type reader struct {
	ctx       context.Context
	root      *os.Root
	folder    *Folder
	noter     func(Kind) Noter
	present   map[string]bool
	leftovers []leftover
}

// list sorts the entries of the folder into files we know, leftovers and others.
func (r *reader) list() error {
	// By its path: a folder opened below a Root makes one more system call for each entry. A file is opened by its
	// name in the open folder, and does not depend on this list.
	entries, err := os.ReadDir(r.folder.Dir)
	if err != nil {
		return err
	}
	r.present, r.leftovers, r.folder.Others, r.folder.Locks = map[string]bool{}, nil, nil, nil // list is called again while a file settles
	for _, e := range entries {
		name := e.Name()
		r.present[name] = true
		if l, ok := parseLeftover(name); ok {
			r.leftovers = append(r.leftovers, l)
			continue
		}
		switch {
		case strings.HasPrefix(name, ourPrefix):
		case name == UIName || name == APIName || name == ItemName || name == MetadataName || name == LegacyName:
		case e.IsDir() && isLock(name) && leftByDead(filepath.Join(r.folder.Dir, name)):
			// A killed process of ours left it: no process writes, and the next writer removes it.
		case e.IsDir() && isLock(name):
			r.folder.Locks = append(r.folder.Locks, strings.TrimSuffix(name, ".lock"))
		default:
			o := Other{Name: name, Dir: e.IsDir()}
			if info, err := e.Info(); err == nil && !e.IsDir() {
				o.Size = info.Size()
			}
			r.folder.Others = append(r.folder.Others, o)
		}
	}
	slices.SortFunc(r.folder.Others, func(a, b Other) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(r.folder.Locks)
	// Newest first; of one write the backup before the new file, because it was read back once.
	slices.SortFunc(r.leftovers, func(a, b leftover) int {
		switch {
		case a.MS != b.MS:
			return int(min(max(b.MS-a.MS, -1), 1))
		case a.Backup != b.Backup && a.Backup:
			return -1
		case a.Backup != b.Backup:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nil
}

func (r *reader) lose(file, problem, recovered string) {
	r.folder.Losses = append(r.folder.Losses, Loss{file, problem, recovered})
}

// unread notes that a file is there and cannot be read. A folder or a pipe in its place is no file of the task.
func (r *reader) unread(name string, err error) {
	if r.folder.Unread != nil || r.ctx.Err() != nil || errors.Is(err, ErrNotRegular) {
		return
	}
	r.folder.Unread = &UnreadError{Path: filepath.Join(FolderOf(r.folder.Dir), name), Err: err}
}

// links reports whether a name is a link.
func (r *reader) links(name string) bool {
	if !r.present[name] {
		return false
	}
	info, err := r.root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// open opens a regular file inside the folder.
func (r *reader) open(name string) (*os.File, Fingerprint, error) {
	f, err := r.root.OpenFile(name, openFlags, 0)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, Fingerprint{}, err
	}
	return f, fingerprintOf(info), nil
}

// OpenFile opens a regular file of a task folder for reading; of anything else the error wraps ErrNotRegular. It does not wait
// for the other end of a pipe, and follows no link out of the folder.
func OpenFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := (&reader{root: root}).open(name)
	return f, err
}

// small reads a file that holds one object, or the newest leftover of it.
func (r *reader) small(name string) ([]byte, Fingerprint) {
	raw, print, problem := r.object(name)
	if problem == "" {
		return raw, print
	}
	for _, l := range r.leftovers {
		if l.Target != name {
			continue
		}
		if raw, _, p := r.object(l.Name); p == "" && raw != nil {
			r.lose(name, problem, "whole, from "+l.Name)
			return raw, print
		}
	}
	if print.Exists || problem != "missing" {
		r.lose(name, problem, "nothing")
	}
	return nil, print
}

func (r *reader) object(name string) (raw []byte, print Fingerprint, problem string) {
	f, print, err := r.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !r.links(name) {
			return nil, print, "missing"
		}
		err = errNothingThere
	}
	if err != nil {
		r.unread(name, err)
		return nil, Fingerprint{Exists: true}, "can not be read: " + Reason(err)
	}
	defer f.Close()
	if print.Size > maxSmall {
		return nil, print, fmt.Sprintf("larger than %d bytes", maxSmall)
	}
	all := bytes.NewBuffer(make([]byte, 0, print.Size+bytes.MinRead)) // of one piece, unless it grows
	if _, err = all.ReadFrom(ContextReader(r.ctx, f)); err != nil {
		r.unread(name, err)
		return nil, print, "can not be read: " + Reason(err)
	}
	raw = all.Bytes()
	sound := esjson.Valid(raw)
	if !sound { // a sound file is given byte for byte, with the newline some writers end it with
		raw = bytes.Trim(bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF")), " \t\r\n\x00")
		sound = esjson.Valid(raw)
	}
	switch {
	case len(raw) == 0:
		return nil, print, "empty"
	case !sound || esjson.TypeOf(raw) != esjson.TypeObject:
		return nil, print, "not a JSON object"
	}
	return raw, print, ""
}

// maxSmall bounds the files that are read whole (item, metadata): beyond it they are reported, not read.
const maxSmall = 256 << 20
