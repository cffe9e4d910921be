// Package roofmt reads and writes task folders of Roo Code and its relatives (Cline, Kilo Code, Zoo Code).
//
// Read salvages: it returns every whole message of a damaged file, with a list of what was lost. It writes nothing,
// creates nothing, and takes no lock: Roo replaces files by rename, so an open file is a stable copy. A file is never
// held in memory as a whole; a Document knows the places of its elements and reads them on request.
//
// Writing is byte-exact and atomic for each file: all temporary files are written and synced first, then the locks
// that Roo itself takes (a directory <file>.lock) are held only to compare fingerprints and for one rename each. The
// target is never renamed away, so it exists at every moment. Several files do not change at one instant; a caller
// that needs that keeps a journal.
//
// Limits: Linux and macOS serialize several Roosts by a kernel lock on the folder; on Windows only Roo's locks do.
// Fingerprints (size, mtime, inode) do not show a change in place that restores all three.
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
// fs.ErrPermission, ErrNotFolder or the context's error. Symbolic links out of the folder are not followed.
func Read(ctx context.Context, dir string) (*Folder, error) { return ReadNoting(ctx, dir, nil) }

// ReadNoting is Read with an observer: noter makes a Noter for each message file that is read, for both histories at
// the same time, and Document.Notes is the Noter of the file that was used. It is nil for a file whose name does not
// show which history it is, for one that changed during the read, and for Cline's transcripts.
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

// sideBySide is the size, in bytes, from which both histories are read in parallel. A shorter one is read before
// another goroutine has started, and a reader of many folders uses all cores already.
const sideBySide = 1 << 20

// histories reads both message files, which are nearly all of a folder's bytes.
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

// cold reports whether a read of the file must wait for the disk.
func cold(s scan) bool {
	return s.file != nil && s.print.Size >= readAhead && onDisk(s.file, s.print.Size)
}

// readAhead is the size in bytes from which Ahead requests a file before it is read, and mostAhead the number of
// bytes that it requests: data that is requested too early may push out data that is needed now.
const (
	readAhead = 16 << 10
	mostAhead = 8 << 20
)

// Ahead asks the system to load a task folder's histories into memory soon. A disk delivers several files in hardly
// more time than one, but only if they are requested together. Ahead reads nothing and waits for nothing; a file that
// it cannot request fails when it is read. It reports whether there was anything to request: a caller that finds
// everything in memory can stop calling it until a folder is not in memory again (Folder.Cold).
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
