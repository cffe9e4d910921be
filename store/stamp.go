package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// derivedNames are files of ours that hold nothing of a task that its journal lacks, or
// that change when the task is only read.
var derivedNames = []string{"journal.idx", "journal.lock", "blobs"}

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
	var st stamping
	begun := s.clock() // what changes behind the look may leave no trace, if something did just before it
	st.mixText(fmt.Sprintf("%s %s %v", ref.Tool, ref.Dir, ref.Own))
	err := st.folder(ref.Dir)
	if err == nil && !st.item {
		st.mixText(string(row(ref.Dir)))
	}
	if err == nil && ref.Log != ref.Dir {
		err = st.folder(ref.Log)
	}
	if err != nil {
		return "", false
	}
	if st.log {
		_, held := filelog.Holder(ref.Log)
		st.mixText(fmt.Sprint("held ", held))
	}
	return fmt.Sprintf("%016x%016x", st.one, st.two), s.calm(st.newest, begun)
}

// stamping is a stamp while it is made: two digests, so that no two looks of a task
// have the same by chance.
type stamping struct {
	one, two uint64
	newest   int64
	item     bool // the task has an item of its own
	log      bool // and a journal
}

func (st *stamping) mix(n uint64) {
	st.one, st.two = catalog.Mix(st.one, n), catalog.Mix(st.two, n^0x9E3779B97F4A7C15)
}

func (st *stamping) mixText(text string) {
	st.one, st.two = catalog.MixText(st.one, text), catalog.MixText(st.two^0xC2B2AE3D27D4EB4F, text)
}

// folder adds the entries of a folder. One that is not there has none.
func (st *stamping) folder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		st.mixText("none")
		return nil
	}
	if err != nil {
		if info, lost := os.Lstat(dir); lost == nil && info.Mode().IsRegular() { // the transcript of a subagent
			if err := st.file(filepath.Dir(dir), manifestOf(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return st.file(filepath.Dir(dir), filepath.Base(dir))
		}
		return err
	}
	p, err := dirstat.Open(dir)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(derivedNames, name) || strings.HasPrefix(name, projection.TempPrefix) {
			continue
		}
		st.item = st.item || name == roofmt.ItemName
		st.log = st.log || name == "journal.jsonl"
		if err := st.add(p, name); err != nil {
			return err // it went just now
		}
	}
	return nil
}

func (st *stamping) file(dir, name string) error {
	p, err := dirstat.Open(dir)
	if err != nil {
		return err
	}
	defer p.Close()
	return st.add(p, name)
}

func (st *stamping) add(p *dirstat.Dir, name string) error {
	now, err := p.Stat(name, false)
	if err != nil {
		return err
	}
	st.mixText(name)
	if !now.Regular() {
		st.mix(now.Mode) // what is in it, or where it leads to, is not looked at
		return nil
	}
	st.one, st.two = mix(st.one, now), mix(st.two, now)
	st.newest = max(st.newest, now.Changed)
	return nil
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
