package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

const (
	// searchBatch is how many files are searched at once before their answers are put
	// in order. What a search goes over its limit by is bounded by it.
	searchBatch = 256
	// maxWhole is the size in bytes up to which a file is read as a whole, to see
	// whether it is worth going through its lines.
	maxWhole = 4 << 20
	// maxSearchers is how many files are open at a time.
	maxSearchers = 8
)

// fileSearch is a search on its way: what was found so far, in the order of the files.
type fileSearch struct {
	ws     *workspace.Workspace
	finder matcher
	found  []foundFile
	groups int
	lines  int
}

func (q *fileSearch) full() bool { return q.groups >= maxResults || q.lines >= maxFoundLines }

// text is the answer. It notes when it ends early although it has few groups.
func (q *fileSearch) text() string {
	text := formatFound(q.found)
	if q.groups >= maxResults || q.lines < maxFoundLines {
		return text
	}
	return fmt.Sprintf("%s\n\n(Cut after %d lines. Use a more specific search.)", text, maxFoundLines)
}

// files searches some files on all cores. The answer is the one that going through
// them one after the other would give.
func (q *fileSearch) files(ctx context.Context, names []string) error {
	found := make([][]foundLine, len(names))
	errs := make([]error, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	var broken atomic.Pointer[any]
	for range min(len(names), runtime.GOMAXPROCS(0), maxSearchers) {
		wg.Go(func() {
			var s fileSearcher
			defer s.close()
			defer func() {
				if what := recover(); what != nil {
					broken.Store(&what)
				}
			}()
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				found[i], errs[i] = s.file(ctx, q, names[i], maxResults-q.groups, maxFoundLines-q.lines)
			}
		})
	}
	wg.Wait()
	if what := broken.Load(); what != nil {
		panic(*what) // in the goroutine of the caller, which recovers
	}
	for i, lines := range found {
		if q.full() {
			return nil
		}
		if errs[i] != nil {
			return errs[i]
		}
		q.add(names[i], lines)
	}
	return nil
}

// add takes what was found in a file, as much as the files before it have left room for.
func (q *fileSearch) add(abs string, lines []foundLine) {
	for i, l := range lines {
		begins := i == 0 || l.number > lines[i-1].number+1
		if q.lines == maxFoundLines || begins && q.groups == maxResults {
			lines = lines[:i]
			break
		}
		if q.lines++; begins {
			q.groups++
		}
	}
	if len(lines) > 0 {
		q.found = append(q.found, foundFile{slashRel(q.ws.Root(), abs), lines})
	}
}

// fileSearcher goes through one file after the other, with the same memory and, as long as
// they lie in one, the same folder.
type fileSearcher struct {
	dir          *workspace.Dir
	whole, lower []byte
}

func (s *fileSearcher) close() {
	if s.dir != nil {
		_ = s.dir.Close() // it was only read from
	}
	s.dir = nil
}

// open passes over what became a link or a pipe since it was listed.
func (s *fileSearcher) open(ws *workspace.Workspace, abs string) (*os.File, int64, error) {
	folder, name := filepath.Split(abs)
	if folder = filepath.Clean(folder); s.dir == nil || s.dir.Path() != folder {
		s.close()
		dir, err := ws.OpenDir(folder)
		if err != nil {
			return nil, 0, err
		}
		s.dir = dir
	}
	return s.dir.Open(name)
}

// file gives the lines of one file; one that cannot be read has none.
func (s *fileSearcher) file(ctx context.Context, q *fileSearch, abs string, want, most int) ([]foundLine, error) {
	f, size, err := s.open(q.ws, abs)
	if err != nil {
		return nil, tool.ContextError(err)
	}
	defer f.Close()
	var from io.Reader = f
	if q.finder.texts != nil && size <= maxWhole {
		if s.whole, err = readAll(s.whole[:0], workspace.NewContextReader(ctx, f), int(size)); err != nil {
			return nil, tool.ContextError(err)
		}
		if !q.finder.possible(s.whole, &s.lower) {
			return nil, nil
		}
		from = io.MultiReader(bytes.NewReader(s.whole), f) // it may have grown
	}
	lines, err := searchFile(ctx, from, q.finder, want, most)
	if err != nil {
		return nil, tool.ContextError(err)
	}
	return lines, nil
}

// readAll appends what a reader gives, up to its end or to the expected size.
func readAll(to []byte, r io.Reader, size int) ([]byte, error) {
	if cap(to) < size {
		to = make([]byte, 0, max(size, 64<<10))
	}
	for len(to) < size {
		n, err := r.Read(to[len(to):size])
		to = to[:len(to)+n]
		if errors.Is(err, io.EOF) {
			return to, nil
		}
		if err != nil {
			return to, err
		}
	}
	return to, nil
}

// Files goes through a folder, or one file.
func Files(ctx context.Context, ws *workspace.Workspace, base string, re *regexp.Regexp, names func(rel string) bool) (string, error) {
	rules, err := ws.Ignore()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(base)
	if err != nil {
		return "", err
	}
	q := &fileSearch{ws: ws, finder: newMatcher(re)}
	if info.Mode().IsRegular() {
		if err := q.files(ctx, []string{base}); err != nil {
			return "", err
		}
		return q.text(), nil
	}
	if !info.IsDir() {
		return "", workspace.ErrNotRegular
	}
	if tooWide(base) && base != ws.Root() {
		return "", errors.New("it is a home or root folder; name the folder below it that is meant")
	}
	var failure error
	var batch []string
	w := walker{base: base, root: ws.Root(), enter: func(name string) bool { return name[0] != '.' && name != "node_modules" }}
	err = w.walk(ctx, func(abs string, d fs.DirEntry) bool {
		if !d.Type().IsRegular() || d.Name()[0] == '.' || !names(slashRel(base, abs)) {
			return true
		}
		if rel, ok := insideRel(ws.Root(), abs); ok && rules.Hides(rel, false) {
			return true
		}
		if batch = append(batch, abs); len(batch) < searchBatch {
			return true
		}
		failure = q.files(ctx, batch)
		batch = batch[:0]
		return failure == nil && !q.full()
	})
	if err == nil && failure == nil && !q.full() {
		failure = q.files(ctx, batch)
	}
	if err = errors.Join(err, failure); err != nil {
		return "", err
	}
	return q.text(), nil
}
