package roofmt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
)

// ErrNotFolder is returned for a path that is no directory.
var ErrNotFolder = errors.New("not a directory")

// Loss describes what is wrong with a file, and what was recovered from it.
type Loss struct {
	File      string // name inside the folder
	Problem   string
	Recovered string
}

// Other is an entry of the folder that this package does not interpret.
type Other struct {
	Name string
	Dir  bool
}

// Folder is a task folder as it was found. It holds open files: call Close.
type Folder struct {
	Dir string
	ID  string // name of the directory

	UI, API *Document // never nil

	Item     []byte // history_item.json, when it is a JSON object
	Metadata []byte // task_metadata.json, when it is a JSON object
	// Row is the task's row in an index beside the folder. Read leaves it nil: ReadRows reads indexes once for all
	// folders. For a session of Cline it is made from the manifest and the messages.
	Row []byte
	// Fingerprints of the two small files under their own names.
	ItemPrint, MetadataPrint Fingerprint

	Others []Other // by name
	Losses []Loss
	Locks  []string // files that another program is writing
	Tool   Tool     // the tool that wrote the folder
	Cold   bool     // the system reports that the histories were not in memory: see Ahead
	// Abridged: existing messages were left out, see Losses. Files written from the rest would lack them.
	Abridged bool
	// Unread is the first file of the task that exists and cannot be read; nil when there is none. Its content is
	// unknown, so no caller may treat it as absent, or replace it.
	Unread *UnreadError

	spoilt bool // a file that may be either history has bytes but no message
}

// Empty reports whether the folder holds no bytes of any message: no message file, or only files without bytes and
// empty lists. Roo leaves such a folder behind after each request for an unknown id. A damaged file is not empty.
func (f *Folder) Empty() bool { return f.UI.blank() && f.API.blank() && !f.spoilt }

// Close closes the files. Afterwards elements cannot be read.
func (f *Folder) Close() error { return errors.Join(f.UI.close(), f.API.close()) }

// reader is one pass over a folder.
type reader struct {
	ctx       context.Context
	root      *os.Root
	folder    *Folder
	noter     func(Kind) Noter
	present   map[string]bool
	leftovers []leftover
}

// list sorts the entries of the folder into known files, leftovers and others.
func (r *reader) list() error {
	// The folder is read by its path: reading one below a Root makes one more system call for each entry. Files are opened
	// by their names in the open folder, and do not depend on this list.
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
			r.folder.Others = append(r.folder.Others, Other{Name: name, Dir: e.IsDir()})
		}
	}
	slices.SortFunc(r.folder.Others, func(a, b Other) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(r.folder.Locks)
	// Newest first; of one write the backup (.bak) before the new file (.new), because it was read back once.
	slices.SortFunc(r.leftovers, func(a, b leftover) int {
		return cmp.Or(cmp.Compare(b.MS, a.MS), strings.Compare(a.Name, b.Name))
	})
	return nil
}

func (r *reader) lose(file, problem, recovered string) {
	r.folder.Losses = append(r.folder.Losses, Loss{file, problem, recovered})
}

// unread records that a file exists and cannot be read. A folder or a pipe of that name is no file of the task.
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
	f, info, err := inputfile.OpenIn(r.root, name)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	return f, fingerprintOf(info), nil
}

// OpenFile opens a regular file of a task folder for reading; for anything else the error wraps ErrNotRegular. It
// does not wait for the other end of a pipe, and follows no link out of the folder.
func OpenFile(dir, name string) (*os.File, error) {
	root, err := inputfile.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := inputfile.OpenIn(root, name)
	return f, err
}

// small reads a file that holds one object, or else the newest leftover of that file.
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
	if _, err = all.ReadFrom(inputfile.ContextReader(r.ctx, f)); err != nil {
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

// maxSmall bounds the files that are read whole (item, metadata): larger ones are reported and not read.
const maxSmall = 256 << 20

// readRegular reads a small file with its fingerprint. It does not wait for a pipe, and refuses a file that is too
// large for an index. Content and fingerprint come from the open file: a fingerprint taken by name afterwards could
// belong to another file, and a replacement would then lose that file's content.
func readRegular(path string) ([]byte, Fingerprint, error) {
	f, err := inputfile.Open(path)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	defer f.Close()
	info, err := f.Stat() // before reading: after a change in place during the reading, this fingerprint does not match
	if err != nil {
		return nil, Fingerprint{}, err
	}
	print := fingerprintOf(info)
	if info.Size() > maxSmall {
		return nil, print, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has %d bytes, and an index has at most %d", info.Size(), maxSmall)}
	}
	raw, err := io.ReadAll(f)
	return raw, print, err
}

// ErrNotRegular: the name belongs to a folder, a pipe or a device.
var ErrNotRegular = inputfile.ErrIrregular

// errNothingThere: the name belongs to a link whose target is missing and may come back. It is no fs.ErrNotExist,
// which would mean that writing the file loses nothing.
var errNothingThere = errors.New("it is a link to nothing")

// UnreadError means that a file of a task exists and cannot be read.
type UnreadError struct {
	Path string
	Err  error
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("%s exists and cannot be read: %s", e.Path, Reason(e.Err))
}

func (e *UnreadError) Unwrap() error { return e.Err }

// reasons explain the system's errors in plain words.
var reasons = []struct {
	err   error
	means string
}{
	{ErrNotRegular, "it is not a regular file"},
	{fs.ErrPermission, "this user may not read it (permission denied)"},
	{syscall.ELOOP, "it is a link that leads in a circle (too many levels of symbolic links)"},
	{syscall.EIO, "the disk cannot read it (input/output error)"},
	{syscall.ENOTDIR, "a file is where a folder should be"},
	{fs.ErrNotExist, "it is a link to nothing, or it was removed (no such file or directory)"},
}

// Reason explains in plain words why a file could not be read: the system's words name its calls, and say that a path
// "escapes" for a link that leads elsewhere. For an error that it does not know, it returns the innermost error, in
// the system's words.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.means
		}
	}
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	if strings.Contains(at.Err.Error(), "escapes from parent") { // os has no name for it
		return "it is a link that leads out of the task's folder, and such links are not followed"
	}
	return at.Err.Error()
}
