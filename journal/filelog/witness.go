package filelog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files next to a log show how far it went: the record in journal.lock, journal.idx, and payloads, which no
// journal has before its first commit. They count whichever inode they name: a copied or restored folder has another
// one, and may lack the end of its log.

// Exists reports whether dir holds a journal, or the traces of one that was deleted.
// Such a journal is damaged: OpenReader and Own find its commits lost.
func Exists(dir string) bool {
	_, err := OS.Lstat(filepath.Join(dir, logName))
	return err == nil || errors.Is(err, fs.ErrNotExist) && deleted(OS, dir).Head > 0
}

// deleted is what is known of a log that is not there. Its head is 0 when there never was one.
func deleted(fsys FS, dir string) record {
	rec := recall(fsys, dir)
	if rec.Head == 0 && holds(fsys, filepath.Join(dir, blobsDir)) {
		rec.Head = 1 // how many commits there were is not known
	}
	return rec
}

// recall reads the newest record of a log: that of the lock file, else the one in the index.
func recall(fsys FS, dir string) record {
	if f, err := openRegular(fsys, filepath.Join(dir, lockName)); err == nil {
		rec, _ := readRecord(f)
		_ = f.Close() // read only: nothing to lose
		if rec.Head > 0 {
			return rec
		}
	}
	return indexed(fsys, dir)
}

// indexed returns the record in journal.idx: it is only written for synced commits.
func indexed(fsys FS, dir string) (rec record) {
	f, err := openRegular(fsys, filepath.Join(dir, idxName))
	if err != nil {
		return rec
	}
	defer f.Close()
	x, err := readIdx(f, nil)
	if err != nil {
		return rec
	}
	rec.Head = x.snapSeq
	if n := len(x.spots); n > 0 {
		rec.Head, rec.Epoch = max(rec.Head, x.spots[n-1].seq), x.spots[n-1].epoch
	}
	return rec
}

// openRegular opens a file for reading. A FIFO in its place would hang the open.
func openRegular(fsys FS, path string) (File, error) {
	fi, err := fsys.Lstat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return fsys.OpenFile(path, os.O_RDONLY, 0)
}

// holds reports whether a folder has an entry that is not half written.
func holds(fsys FS, dir string) bool {
	list, err := fsys.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), blobTemp) {
			return true
		}
	}
	return false
}

// absent stands for a log that was deleted: it has no bytes.
type absent struct{ File }

func (absent) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (absent) Stat() (fs.FileInfo, error)        { return nothing{}, nil }
func (absent) Datasync() error                   { return nil }
func (absent) Close() error                      { return nil }

type nothing struct{ fs.FileInfo }

func (nothing) Size() int64 { return 0 }
