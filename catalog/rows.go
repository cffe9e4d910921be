package catalog

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"unsafe"
)

// RowsName is the name of the file of rows in the cache folder.
const RowsName = "list.rows"

// Rows are what a list needs of every task, in a file of its own beside the
// catalogue. A list reads what tasks are chosen and ordered by in one piece, and the
// whole rows of one page only. The file is never changed: a new one is renamed into
// its place, so nobody waits for anybody, and of two that write at once the later
// one stays; what it lacks is read again. What changes between two of them stands in
// a second file, see more.go. Rejected: a table in the catalogue. To get the same
// piece out of SQLite takes a third of the time that a list may take, and a reader can
// find it busy.
type Rows struct {
	Shelves []*Shelf

	file *os.File // nil: nothing was read from a file
	body int64    // where the rows' own bytes begin
	size int64    // of the file
	info os.FileInfo

	start   [headAt]byte // what the file begins with
	base    uint64       // this file's own number: what was added to it names it
	more    int64        // how much of the file of additions was read
	moreSum uint32       // and its checksum
	broken  bool         // which holds what cannot be used

	shared bool   // others have the same shelves: see again.go
	held   []byte // the body, while many rows are loaded

	patches map[*Shelf]*patch // while that is read
}

// Shelf is a storage and its tasks, in the order of their folders' names.
type Shelf struct {
	Name, Tool string
	ByPath     string // the tool that the path alone tells
	Path       string // as it was named
	Tasks      string // the folder of task folders
	Seen       int64  // Unix milliseconds: when it was last looked into
	Dirs       []Dir  // while they are as they were, so are the names of the tasks
	Indexes    uint64 // a digest of the indexes beside the folders
	Problem    string // what is wrong with those indexes
	Rows       []Row
}

// Dir is a folder whose list of names is known.
type Dir struct {
	Path   string
	Digest uint64
}

// Row is a task by what lists are narrowed and ordered by.
type Row struct {
	ID string
	*Traits
	Title        string // of a row out of a file only after Load
	TS           int64
	Cost         int64 // micro-dollars
	Tokens, Size int64

	Known                          bool // else only its name is known
	Empty, Damaged, Pinned, Priced bool

	// What it was derived from. Logged: it has a journal. Unfinished: whether it runs
	// now is not in its files. Content: a digest of both histories' bytes, zero while
	// nobody needed it; Sizes: of their lengths.
	Logged, Unfinished bool
	Digest             uint64
	Near               uint64 // a digest of what can be looked at in less time, 0 when that tells too little
	Wrote              int64  // when the newest of its files was written, in seconds since 1970
	Item               uint64 // a digest of what an index says of it, 0 when that does not count
	Sizes              uint64
	Content            [16]byte

	// Whole is the row as the caller wants it back, nil of a row out of a file.
	Whole []byte

	at            int64 // of title and whole row, behind one another
	title, n, sum uint32
}

// Traits are what rows have in common with many others. Nobody changes them: they are
// shared, and a list of ten thousand tasks touches half as much memory, which is what
// reading them costs.
type Traits struct {
	Tool, Status, Workspace, Model, Parent string
	Tags                                   []string
	Watch                                  string // names in its folder, joined by \x00
}

var noTraits = new(Traits)

// NewRow is the row of a task of which only the name is known.
func NewRow(id string) *Row { return &Row{ID: id, Traits: noTraits} }

// ErrRows: there is no file of rows that can be used. It is no loss.
var ErrRows = errors.New("no usable rows")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowsMagic names the format.
const rowsMagic = "roost rows 5\n\x00\x00\x00"

// headAt is where the columns begin: behind the magic, the build, their length, their
// checksum and the file's own number.
const headAt = 48

// OpenRows reads the file of rows in a cache folder. Rows that another build made
// are not used: it may have derived other things. What cannot be used gives
// ErrRows. The caller closes what it got.
func OpenRows(dir string, build uint64) (*Rows, error) {
	path := filepath.Join(dir, RowsName)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRows, err)
	}
	r, err := readRows(f, build)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRows, path, errors.Join(err, f.Close()))
	}
	r.readMore(dir)
	return r, nil
}

func readRows(f *os.File, build uint64) (*Rows, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	var start [headAt]byte
	if _, err := io.ReadFull(f, start[:]); err != nil {
		return nil, err
	}
	u := unpacker{text: string(start[16:])}
	made, n, sum, base := u.fixed(), int64(u.fixed()), uint32(u.fixed()), u.fixed()
	switch {
	case string(start[:16]) != rowsMagic:
		return nil, errors.New("it is something else")
	case made != build:
		return nil, errors.New("another build made it")
	case n < 0 || n > info.Size()-headAt:
		return nil, errors.New("it is cut")
	}
	head := make([]byte, n)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, err
	}
	if crc32.Checksum(head, castagnoli) != sum {
		return nil, errors.New("it is damaged")
	}
	r := &Rows{file: f, body: headAt + n, size: info.Size(), info: info, start: start, base: base}
	u = unpacker{text: unsafe.String(unsafe.SliceData(head), len(head))} //nolint:gosec // a string without a copy: nobody writes to it from here on
	if r.Shelves = u.shelves(); u.bad || u.text != "" {
		return nil, errors.New("it cannot be understood")
	}
	return r, nil
}

// Close lets go of the file. Nil rows may be closed.
func (r *Rows) Close() {
	if r != nil && r.file != nil {
		r.file.Close()
	}
}

// Shelf finds a storage by its name, nil when it is not known.
func (r *Rows) Shelf(name string) *Shelf {
	if r == nil {
		return nil
	}
	if i := slices.IndexFunc(r.Shelves, func(s *Shelf) bool { return s.Name == name }); i >= 0 {
		return r.Shelves[i]
	}
	return nil
}

// Load reads a row's own bytes: title and Whole. The error says that the file is not
// what it was; the row is then to be derived again. A row of a shelf that may be shared is
// copied before.
func (r *Rows) Load(row *Row) error {
	if row.Whole != nil || !row.Known {
		return nil
	}
	end := row.end()
	if r.file == nil || row.at < 0 || end > r.size-r.body {
		return fmt.Errorf("%w: the row of %s is not there", ErrRows, row.ID)
	}
	if r.held != nil {
		if end > int64(len(r.held)) {
			return fmt.Errorf("%w: the row of %s is not there any more", ErrRows, row.ID)
		}
		return row.take(r.held[row.at:end:end])
	}
	b := make([]byte, end-row.at)
	if _, err := r.file.ReadAt(b, r.body+row.at); err != nil {
		return fmt.Errorf("%w: %w", ErrRows, err)
	}
	return row.take(b)
}

// LoadAll reads all rows' own bytes at once, into shelves that nobody shares. Those that
// cannot be read stay as they are.
func (r *Rows) LoadAll() {
	if r == nil || r.file == nil {
		return
	}
	r.Hold()
	r.own()
	for _, s := range r.Shelves {
		for i := range s.Rows {
			_ = r.Load(&s.Rows[i]) // it stays as it is
		}
	}
}

// end is where the row's own bytes end.
func (row *Row) end() int64 { return row.at + int64(row.title) + int64(row.n) }

func (row *Row) take(b []byte) error {
	if crc32.Checksum(b, castagnoli) != row.sum {
		return fmt.Errorf("%w: the row of %s is damaged", ErrRows, row.ID)
	}
	row.Title, row.Whole = string(b[:row.title]), b[row.title:]
	return nil
}

// Changed reports whether another process has put other rows in place since these
// were read, or added to them, or anything is there when nothing was.
func (r *Rows) Changed(dir string) bool {
	if r == nil || r.info == nil {
		_, err := os.Stat(filepath.Join(dir, RowsName))
		return err == nil
	}
	return r.replaced(dir) || moreSize(dir) != r.more
}

func (r *Rows) replaced(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, RowsName))
	return err == nil && !os.SameFile(info, r.info)
}

// Write puts rows in place of those that are there. All must be loaded or new; known
// ones that are neither are left out of what is known.
func (r *Rows) Write(dir string, build uint64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep the rows: %w", err)
	}
	var p packer
	p.shelves(r.Shelves)
	sum := crc32.Checksum(p.head, castagnoli)
	var start packer
	start.head = append(start.head, rowsMagic...)
	r.base = rand.Uint64()
	for _, n := range []uint64{build, uint64(len(p.head)), uint64(sum), r.base} {
		start.fixed(n)
	}
	f, err := os.CreateTemp(dir, "."+RowsName+"-*") // it is derived, and not synced
	if err != nil {
		return fmt.Errorf("keep the rows: %w", err)
	}
	w := bufio.NewWriterSize(f, 256<<10)
	for _, part := range slices.Concat([][]byte{start.head, p.head}, p.body) {
		_, _ = w.Write(part) // the first error is kept
	}
	err = errors.Join(w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, RowsName))
	}
	if err != nil {
		return fmt.Errorf("keep the rows: %w", errors.Join(err, os.Remove(f.Name())))
	}
	_ = os.Remove(filepath.Join(dir, MoreName)) // it names the old file, and is not used with another
	return nil
}
