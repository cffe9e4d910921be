// Package search walks the folders of a workspace: it finds the lines that match a regular
// expression, as search_files shows them, and lists files and folders, as list_files does.
//
// A walk never follows a link to a folder, so it ends and stays below its base. It obeys .rooignore and the
// .gitignore files on its way. The number of goroutines does not change an answer.
//
// Limits: files are searched as UTF-8; a file with a zero byte gives nothing; of a line
// the first megabyte is searched.
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
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/terminal"
)

const (
	// searchBatch is the number of files that are searched at once before their results are put in order. It bounds
	// the files that are searched for nothing when a search reaches its limit.
	searchBatch = 256
	// maxWhole is the size in bytes up to which a file is read whole, to see whether its lines must be matched at
	// all.
	maxWhole = 4 << 20
	// maxSearchers is the number of files that are open at a time.
	maxSearchers = 8
)

// fileSearch is a running search: the results so far, in the order of the files.
type fileSearch struct {
	ws     *workspace.Workspace
	finder matcher
	found  []foundFile
	groups int
	lines  int
}

func (q *fileSearch) full() bool { return q.groups >= maxResults || q.lines >= maxFoundLines }

// text returns the tool's result. It ends with a note when the limit of lines, not that of groups, ended the search.
func (q *fileSearch) text() string {
	text := formatFound(q.found, q.groups)
	if q.groups >= maxResults || q.lines < maxFoundLines {
		return text
	}
	return fmt.Sprintf("%s\n\n(Cut after %d lines. Use a more specific search.)", text, maxFoundLines)
}

// files searches files on all cores. The result is the same as when they are searched one after the other.
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
				found[i], errs[i] = s.file(ctx, q, names[i], maxFoundLines-q.lines)
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

// add adds the lines found in a file, up to the limit that the files before it have left.
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

// fileSearcher searches one file after the other. It reuses its memory, and keeps the folder open while the next file
// is in the same one: 20,000 small files take half as long.
type fileSearcher struct {
	path  string   // of dir
	dir   *os.Root // nil until the first file
	whole []byte
}

func (s *fileSearcher) close() {
	if s.dir != nil {
		_ = s.dir.Close() // it was only read from
	}
	s.dir = nil
}

// open opens a regular file. It refuses a name that became a link or a pipe since the walk listed it.
func (s *fileSearcher) open(ws *workspace.Workspace, abs string) (*os.File, fs.FileInfo, error) {
	folder, name := filepath.Split(abs)
	if folder = filepath.Clean(folder); s.dir == nil || s.path != folder {
		s.close()
		dir, err := ws.OpenDir(folder)
		if err != nil {
			return nil, nil, err
		}
		s.path, s.dir = folder, dir
	}
	return workspace.OpenIn(s.dir, name)
}

// file returns the matching lines of one file; a file that cannot be read has none.
func (s *fileSearcher) file(ctx context.Context, q *fileSearch, abs string, most int) ([]foundLine, error) {
	f, info, err := s.open(q.ws, abs)
	if err != nil {
		return nil, tool.ContextError(err)
	}
	defer f.Close()
	var from io.Reader = f
	if q.finder.texts != nil && info.Size() <= maxWhole {
		s.whole = slices.Grow(s.whole[:0], int(info.Size()))
		n, err := io.ReadFull(workspace.NewContextReader(ctx, f), s.whole[:info.Size()])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, tool.ContextError(err)
		}
		s.whole = s.whole[:n]
		if !q.finder.possible(s.whole) {
			return nil, nil
		}
		from = io.MultiReader(bytes.NewReader(s.whole), f) // it may have grown
	}
	lines, err := searchFile(ctx, from, q.finder, most)
	return lines, tool.ContextError(err) // of a file that cannot be read there are no lines
}

// Files searches a folder, or one file.
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
	w := walker{ws: ws, base: base, enter: func(name string) bool { return name[0] != '.' && name != "node_modules" }}
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

// maxSearchLine is the number of bytes of a line that are searched.
const maxSearchLine = 1 << 20

// searchFile returns matching lines and one line around each, at most most lines. It returns nothing for a binary file,
// that is one with a zero byte.
func searchFile(ctx context.Context, f io.Reader, re matcher, most int) ([]foundLine, error) {
	var out []foundLine
	var before foundLine
	var beforeText []byte // kept as bytes: few lines are shown
	n, after := 0, false  // after: the line before matched
	for line, err := range linetext.Lines(workspace.NewContextReader(ctx, f), maxSearchLine) {
		if err != nil {
			return nil, err
		}
		if len(out) >= most {
			return out[:most], nil
		}
		if n++; n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // a byte order mark
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return nil, nil
		}
		text := line[:min(len(line), 4*maxFoundLine+8)] // as much as can be shown
		body := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		hit, matchErr := false, error(nil)
		if re.possible(body) {
			hit, matchErr = match(ctx, re.re, body)
		}
		switch {
		case matchErr != nil:
			return nil, matchErr
		case hit:
			if before.number > 0 {
				before.text = string(beforeText)
				out = append(out, before)
			}
			out = append(out, foundLine{n, string(text)})
			after, before = true, foundLine{}
		case after:
			out = append(out, foundLine{n, string(text)})
			after, before = false, foundLine{}
		default:
			before.number, beforeText = n, append(beforeText[:0], text...)
		}
	}
	return out[:min(len(out), most)], nil
}

// longLine is the length in bytes above which a line is matched in a way that can be cancelled.
const longLine = 4 << 10

// match is re.Match for lines of any length, and ends with the context. RE2 takes time in proportion to the line and
// to the pattern, and a model can choose both so that a match takes minutes.
func match(ctx context.Context, re *regexp.Regexp, line []byte) (bool, error) {
	if len(line) < longLine {
		return re.Match(line), nil
	}
	r := &runes{ctx: ctx, line: line}
	hit := re.MatchReader(r)
	return hit && r.err == nil, r.err
}

// runes feeds a line to a regular expression until the context ends.
type runes struct {
	ctx  context.Context //nolint:containedctx // lives as long as one match
	line []byte
	n    int
	err  error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%64 == 0 && r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil {
		return 0, 0, r.err
	}
	if len(r.line) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return c, size, nil
}

// Limits of an answer to search_files.
const (
	maxResults   = 300 // groups of adjacent lines
	maxFoundLine = 500 // UTF-16 code units, line end included
	// maxFoundLines bounds answers in which every line matches: one group.
	maxFoundLines = 5 * maxResults
)

// foundLine is a matching line or a line beside one.
type foundLine struct {
	number int    // 1-based
	text   string // with its line end
}

// foundFile holds the lines of one file in order.
type foundFile struct {
	path  string // as shown
	lines []foundLine
}

// formatFound writes the answer of search_files. total is the number of groups.
func formatFound(files []foundFile, total int) string {
	var b strings.Builder
	switch {
	case total >= maxResults:
		fmt.Fprintf(&b, "Showing first %d of %d+ results. Use a more specific search if necessary.\n\n", maxResults, maxResults)
	case total == 1:
		b.WriteString("Found 1 result.\n\n")
	default:
		fmt.Fprintf(&b, "Found %d results.\n\n", total)
	}
	for _, f := range files[:min(len(files), maxResults)] {
		fmt.Fprintf(&b, "# %s\n", tool.SafeName(f.path))
		for i, l := range f.lines {
			if i > 0 && l.number > f.lines[i-1].number+1 {
				b.WriteString("----\n")
			}
			fmt.Fprintf(&b, "%3d | %s\n", l.number, foundText(l.text))
		}
		if len(f.lines) > 0 {
			b.WriteString("----\n")
		}
		b.WriteByte('\n')
	}
	return linetext.Trim(b.String())
}

func foundText(s string) string {
	if len(s) > maxFoundLine && terminal.Units(s) > maxFoundLine {
		s = linetext.Cut(s, maxFoundLine) + " [truncated...]"
	}
	return strings.ToValidUTF8(linetext.TrimRight(s), "\uFFFD")
}

// matcher is a pattern with required texts: every match holds one of them. Most files hold none, and searching for
// the texts shows that many times faster than matching the pattern line by line.
type matcher struct {
	re    *regexp.Regexp
	texts [][]byte // nil = none is known
	fold  bool     // the texts are lower case and match upper case too
}

// maxTexts bounds the required texts: each costs a pass over the file.
const maxTexts = 8

func newMatcher(re *regexp.Regexp) matcher {
	f := matcher{re: re}
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return f
	}
	n := requiredBy(tree.Simplify())
	if len(n.texts) == 0 || len(n.texts) > maxTexts || n.shortest() < 2 {
		return f
	}
	f.fold = n.fold
	f.texts = append(f.texts, api.Each(n.texts, func(t string) []byte { return []byte(t) })...)
	return f
}

// possible reports whether some line of the text may match.
func (f matcher) possible(text []byte) bool {
	if f.texts == nil {
		return true
	}
	if f.fold {
		text = bytes.ToLower(text)
	}
	return slices.ContainsFunc(f.texts, func(t []byte) bool { return bytes.Contains(text, t) })
}

// requiredTexts is a set of texts of which every match holds one; an empty set means that none is known.
type requiredTexts struct {
	texts []string
	fold  bool
}

// shortest returns the length of the shortest of the texts; there must be at least one.
func (n requiredTexts) shortest() int {
	return len(slices.MinFunc(n.texts, func(a, b string) int { return len(a) - len(b) }))
}

func requiredBy(re *syntax.Regexp) requiredTexts {
	switch re.Op {
	case syntax.OpLiteral:
		return requiredByLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredBy(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredBy(re.Sub[0])
		}
	case syntax.OpConcat:
		var best requiredTexts
		for _, sub := range re.Sub {
			if n := requiredBy(sub); len(n.texts) > 0 && (len(best.texts) == 0 || n.shortest() > best.shortest()) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all requiredTexts
		for i, sub := range re.Sub {
			n := requiredBy(sub)
			if len(n.texts) == 0 || i > 0 && n.fold != all.fold {
				return requiredTexts{}
			}
			all.texts, all.fold = append(all.texts, n.texts...), n.fold
		}
		return all
	}
	return requiredTexts{}
}

// requiredByLiteral leaves out characters that the file may hold as other bytes: U+FFFD stands for invalid UTF-8, and
// where letter case does not count, k may be the Kelvin sign and s the long s.
func requiredByLiteral(re *syntax.Regexp) requiredTexts {
	text := string(re.Rune)
	if re.Flags&syntax.FoldCase == 0 {
		if strings.ContainsRune(text, utf8.RuneError) {
			return requiredTexts{}
		}
		return requiredTexts{texts: []string{text}}
	}
	longest := ""
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" {
		return requiredTexts{}
	}
	return requiredTexts{texts: []string{strings.ToLower(longest)}, fold: true}
}
