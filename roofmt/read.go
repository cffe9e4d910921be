package roofmt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading task folder: %w", err)
	}
	defer root.Close()
	f := &Folder{Dir: abs, ID: filepath.Base(abs)}
	defer reading()()
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
	f.Origin = inferOrigin(f, noter == nil)
	return f, nil
}

// sideBySide is from which size on, in bytes, both histories are read at the same time. Shorter ones are read before another
// thread has woken up, and whoever reads many folders reads them on all cores anyway.
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
