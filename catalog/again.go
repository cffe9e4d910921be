package catalog

import (
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A process that lists often keeps the rows decoded. What it keeps is what the files
// said, byte for byte: the file of rows bears a number and a checksum, which are read
// each time, and additions are only ever put behind others, which is checked as well. No
// file is held open in between: on some systems nobody could put another one in its
// place. Whole rows and titles stay in the file, so 10,000 tasks take about 5 MB.

// Share gives rows for ReopenRows, and makes r one of those that share them: from now on
// nobody changes a row or a shelf of theirs in place.
func (r *Rows) Share() *Rows {
	if r == nil || r.info == nil {
		return nil
	}
	r.shared = true
	return &Rows{
		Shelves: r.Shelves, body: r.body, size: r.size, info: r.info, start: r.start, base: r.base,
		more: r.more, moreSum: r.moreSum, broken: r.broken, shared: true,
	}
}

// ReopenRows is OpenRows for somebody who has rows from before. As far as the files are
// as they were those are given again, see Share.
func ReopenRows(dir string, build uint64, last *Rows) (*Rows, error) {
	if last == nil || last.info == nil || last.broken {
		return OpenRows(dir, build)
	}
	f, err := os.Open(filepath.Join(dir, RowsName))
	if err != nil {
		return OpenRows(dir, build)
	}
	var start [headAt]byte
	info, err := f.Stat()
	if err == nil {
		_, err = io.ReadFull(f, start[:])
	}
	b, known := readAdditions(dir, last.moreMost())
	if err != nil || !known || start != last.start || info.Size() != last.size || int64(len(b)) < last.more ||
		crc32.Checksum(b[:last.more], castagnoli) != last.moreSum {
		_ = f.Close() // it was only read
		return OpenRows(dir, build)
	}
	r := &Rows{
		Shelves: last.Shelves, file: f, body: last.body, size: last.size, info: info, start: start, base: last.base,
		more: last.more, moreSum: last.moreSum, shared: true,
	}
	if int64(len(b)) > r.more {
		r.own()
		r.putIn(b)
	}
	return r, nil
}

// own gives r shelves and rows that nobody else has.
func (r *Rows) own() {
	if !r.shared {
		return
	}
	r.shared = false
	list := make([]*Shelf, len(r.Shelves))
	for i, s := range r.Shelves {
		own := *s
		own.Rows = slices.Clone(s.Rows)
		list[i] = &own
	}
	r.Shelves = list
}

// Hold reads the own bytes of all rows at once: those that are loaded after it cost no
// look into the file.
func (r *Rows) Hold() {
	if r == nil || r.file == nil || r.held != nil {
		return
	}
	all := make([]byte, r.size-r.body)
	n, _ := r.file.ReadAt(all, r.body) // what is lacking is seen when it is loaded
	r.held = all[:n]
}
