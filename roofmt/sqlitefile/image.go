package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Why a database cannot be read.
var (
	ErrNoDatabase = errors.New("not a SQLite database")
	ErrRestless   = errors.New("it changes while it is read")
	errTooLong    = errors.New("its log is too long")
)

const (
	magic     = "SQLite format 3\x00"
	headerLen = 100
	maxLog    = 256 << 20
)

// image is a database as its last finished transaction left it. It implements fs.File and io.Seeker, which is what SQLite
// is given.
type image struct {
	file     *os.File
	pageSize int64
	pages    int64            // the length of the database
	over     map[int64][]byte // pages that differ from those in the file, by number from 1
	off      int64
	before   [3]print
	head     []byte // of the log, when there is one: it changes when the log starts over
	path     string
}

// print identifies a file as it was read.
type print struct {
	there   bool
	size    int64
	changed time.Time
}

func printOf(path string) print {
	info, err := os.Stat(path)
	if err != nil {
		return print{}
	}
	return print{true, info.Size(), info.ModTime()}
}

func (img *image) prints() [3]print {
	return [3]print{printOf(img.path), printOf(img.path + "-wal"), printOf(img.path + "-journal")}
}

// open finds out which pages make the database. The caller closes the file.
func open(path string) (*image, error) {
	img := &image{path: path, over: map[int64][]byte{}}
	img.before = img.prints()
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	img.file = f
	if err := img.layOut(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}

func (img *image) layOut() error {
	info, err := img.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("not a regular file: %w", ErrNoDatabase)
	}
	head := make([]byte, headerLen)
	n, err := img.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n == 0 {
		// A database that was only just made: all of it may be in the log.
		return img.log(0)
	}
	if n < headerLen || !bytes.HasPrefix(head, []byte(magic)) {
		return fmt.Errorf("it begins otherwise: %w", ErrNoDatabase)
	}
	if img.pageSize = pageSize(uint32(binary.BigEndian.Uint16(head[16:]))); img.pageSize == 0 {
		return fmt.Errorf("pages of %d bytes: %w", binary.BigEndian.Uint16(head[16:]), ErrNoDatabase)
	}
	img.pages = info.Size() / img.pageSize
	if head[18] == 2 {
		return img.log(img.pageSize)
	}
	return img.journal()
}

// pageSize is 0 when there are no pages of that size. 1 stands for 65536.
func pageSize(n uint32) int64 {
	if n == 1 {
		n = 65536
	}
	if n < 512 || n > 65536 || n&(n-1) != 0 {
		return 0
	}
	return int64(n)
}

// read reads a whole file next to the database; nil when there is none.
func (img *image) read(suffix string) ([]byte, error) {
	f, err := os.OpenFile(img.path+suffix, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, nil // SQLite would not take it for a log either
	case info.Size() > maxLog:
		return nil, fmt.Errorf("%s has %d bytes: %w", img.path+suffix, info.Size(), errTooLong)
	}
	return io.ReadAll(f)
}

// rested reports whether nothing has happened since the image was laid out that could mix pages of two transactions.
// A log only grows while the database does not change, and the pages we know of it were read already.
func (img *image) rested() bool {
	now := img.prints()
	if now[0] != img.before[0] || now[2] != img.before[2] {
		return false
	}
	if img.head == nil {
		return true
	}
	f, err := os.OpenFile(img.path+"-wal", openFlags, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(img.head))
	_, err = f.ReadAt(head, 0)
	return err == nil && bytes.Equal(head, img.head)
}

// Stat implements fs.File.
func (img *image) Stat() (fs.FileInfo, error) { return info{img.pages * img.pageSize}, nil }

// Seek implements io.Seeker, from the start only.
func (img *image) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekStart || off < 0 {
		return 0, fs.ErrInvalid
	}
	img.off = off
	return off, nil
}

// Read implements fs.File.
func (img *image) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if img.pageSize == 0 || img.off >= img.pages*img.pageSize {
		return 0, io.EOF
	}
	number, within := img.off/img.pageSize+1, img.off%img.pageSize
	p = p[:min(int64(len(p)), img.pageSize-within)]
	n := 0
	if page, ok := img.over[number]; ok {
		n = copy(p, page[within:])
	} else {
		var err error
		if n, err = img.file.ReadAt(p, img.off); n == 0 {
			return 0, err
		}
	}
	if number == 1 {
		// The bytes that announce a log are cleared: its pages are in their places.
		for at := int64(18); at <= 19; at++ {
			if i := at - within; i >= 0 && i < int64(n) && p[i] == 2 {
				p[i] = 1
			}
		}
	}
	img.off += int64(n)
	return n, nil
}

// Close implements fs.File. The file is closed by whoever opened it: SQLite may open an image more than once.
func (img *image) Close() error { return nil }

// info is what SQLite asks of a file: its size.
type info struct{ size int64 }

func (info) Name() string       { return inside }
func (i info) Size() int64      { return i.size }
func (info) Mode() fs.FileMode  { return 0o400 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
