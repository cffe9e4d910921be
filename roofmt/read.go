// Package roofmt reads and writes task folders of Roo Code and its relatives (Cline, Kilo Code, Zoo Code).
//
// Reading salvages: of a damaged file every whole message comes back, with a list of what was lost. Reading writes
// nothing, creates nothing, and takes no lock: Roo replaces files by rename, so an open file is a stable copy. A file
// is never held in memory as a whole; a Document knows where its elements lie and reads them when asked.
//
// Writing is byte-exact and atomic for each file: all temporary files are written and synced first, then the locks that
// Roo itself takes (a directory <file>.lock) are held just for comparing fingerprints and one rename each. The target is
// never renamed away, so there is no moment without it. Several files do not change in one instant; whoever needs that
// keeps a journal above this package.
//
// Limits: Linux and macOS serialise several of our writers by a kernel lock on the folder; on Windows only Roo's locks
// do. Fingerprints (size, mtime, inode) do not see a change in place that puts all three back.
package roofmt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/inputfile"
)

// Read reads a task folder. It changes nothing on disk. Damage is not an error but part of the answer (Losses,
// Document.State). An error means that the folder could not be read at all: it wraps fs.ErrNotExist,
// fs.ErrPermission, ErrNotFolder or the context's error. Files that lead out of the folder by symbolic links are not
// followed.
func Read(ctx context.Context, dir string) (*Folder, error) { return ReadNoting(ctx, dir, nil) }

// ReadNoting is Read with an observer: noter makes a Noter for each message file that is read, for both histories at
// the same time, and Document.Notes has the one of the file that was used. It is nil for a file that gave none: a
// file whose name does not show which history it is, one that changed during the reading, and Cline's transcripts.
func ReadNoting(ctx context.Context, dir string, noter func(Kind) Noter) (*Folder, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("reading task folder: %w", err)
	}
	if info.Mode().IsRegular() && strings.HasSuffix(dir, transcriptEnd) {
		return readSubagent(ctx, dir)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("reading task folder %s: %w", dir, ErrNotFolder)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("reading task folder %s: %w", dir, err)
	}
	root, err := inputfile.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading task folder: %w", err)
	}
	defer root.Close()
	f := &Folder{Dir: abs, ID: filepath.Base(abs)}
	r := reader{ctx: ctx, root: root, folder: f, noter: noter}
	if err := r.list(); err != nil {
		return nil, fmt.Errorf("reading task folder %s: %w", dir, err)
	}
	ui, api := r.histories()
	f.UI, f.API = r.document(ui, UI), r.document(api, API)
	r.legacy()
	r.session()
	f.Item, f.ItemPrint = r.small(ItemName)
	f.Metadata, f.MetadataPrint = r.small(MetadataName)
	if err := ctx.Err(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("reading task folder %s: %w", dir, err)
	}
	f.Tool = inferTool(f)
	return f, nil
}

// sideBySide is the size, in bytes, from which on both histories are read in parallel. Reading a shorter one ends before
// another goroutine has started, and a reader of many folders uses all cores already.
const sideBySide = 1 << 20

// histories reads both files of messages, which are nearly all of a folder's bytes.
func (r *reader) histories() (ui, api scan) {
	ui, api = r.begin(UIName), r.begin(APIName)
	if min(ui.print.Size, api.print.Size) < sideBySide {
		if r.folder.Cold = cold(api) || cold(ui); r.folder.Cold && api.file != nil {
			ahead(api.file, api.print.Size) // while the other one is read
		}
		return r.scanned(ui, UI), r.scanned(api, API)
	}
	var both sync.WaitGroup
	both.Go(func() { ui = r.scanned(ui, UI) })
	both.Go(func() { api = r.scanned(api, API) })
	both.Wait()
	return ui, api
}

// cold reports whether reading the file will wait for the disk.
func cold(s scan) bool {
	return s.file != nil && s.print.Size >= readAhead && onDisk(s.file, s.print.Size)
}

// readAhead is the size in bytes from which on Ahead requests a file before it is read, and mostAhead is how much of
// it: data that is requested too early may push out data that is needed now.
const (
	readAhead = 16 << 10
	mostAhead = 8 << 20
)

// Ahead asks the system to load a task folder's histories into memory soon. A disk delivers several files at once in
// hardly more time than one, but only if they are requested at once. Ahead reads nothing and waits for no byte of a
// message; a file that it cannot request gives its error when it is read. It reports whether there was anything to
// request: a caller that finds everything in memory can stop asking until a folder was on the disk again
// (Folder.Cold).
func Ahead(dir string) (asked bool) {
	for _, name := range []string{UIName, APIName} {
		f, err := inputfile.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Size() >= readAhead && onDisk(f, info.Size()) {
			ahead(f, info.Size())
			asked = true
		}
		_ = f.Close() // nothing was written
	}
	return asked
}
