package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// Stamp is a digest of how a task's files look: while it stays the same, so do its
// row and its messages. It is "" when that is unknown. The overlay's labels, which are
// put over a row when it is used, are no part of it.
func (s *Store) Stamp(ref Ref) (text string, calm bool) { return s.stampWith(ref, s.rows.row) }

// Stamps is Stamp for many tasks at one time: it takes the indexes beside them not to change.
func (s *Store) Stamps() func(Ref) (text string, calm bool) {
	row := s.rows.once()
	return func(ref Ref) (string, bool) { return s.stampWith(ref, row) }
}

// stampWith is Stamp with another way to get a task's entry in an index.
func (s *Store) stampWith(ref Ref, row func(folder string) []byte) (text string, calm bool) {
	var looks fingerprint
	begun := s.clock() // what changes behind the look may leave no trace, if something did just before it
	digest := catalog.MixText(1, fmt.Sprintf("%s %s %v", ref.Tool, ref.Dir, ref.Own))
	var all []string
	for _, dir := range slices.Compact([]string{ref.Dir, ref.Log}) {
		names, ok := filesIn(dir, "")
		folder := roofmt.FolderOf(dir)
		if folder != dir { // the transcript of a subagent
			names = []string{manifestOf(dir), filepath.Base(dir)}
		}
		d, err := dirstat.Open(folder)
		if errors.Is(err, fs.ErrNotExist) && ok {
			continue // it has no file
		}
		if err != nil || !ok {
			return "", false
		}
		for _, name := range names {
			looks.add(d, name, false)
		}
		d.Close()
		all = append(all, names...)
	}
	if looks.failed {
		return "", false
	}
	digest = catalog.Mix(catalog.MixText(digest, strings.Join(all, "\x00")), looks.digest)
	if !slices.Contains(all, roofmt.ItemName) {
		digest = catalog.MixText(digest, string(row(ref.Dir)))
	}
	if slices.Contains(all, journalName) {
		_, held := filelog.Holder(ref.Log)
		digest = catalog.MixText(digest, fmt.Sprint("held ", held))
	}
	return fmt.Sprintf("%016x", digest), s.calm(looks.newest, begun)
}

// once is row for Stamps, which takes the indexes not to change.
func (c *rowCache) once() func(folder string) []byte {
	var mu sync.Mutex
	known := map[string]*roofmt.Rows{}
	return func(folder string) []byte {
		tasks, id := roofmt.PlaceOf(folder)
		mu.Lock()
		defer mu.Unlock()
		rows, ok := known[tasks]
		if !ok {
			rows = c.of(tasks).Rows
			known[tasks] = rows
		}
		return rows.Row(id)
	}
}
