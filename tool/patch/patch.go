// Package patch applies what models write to change a text: the SEARCH/REPLACE blocks of apply_diff, the patches of
// apply_patch, and replacements of one text by another. It is pure: it takes texts and returns texts and reasons, and
// touches no file.
//
// Lines that no change names keep every byte, their line ends included. If a change fits in two places, it fails:
// nothing is guessed. Reasons are written for the model, which reads them and tries again.
//
// Limits: the similarity search for an error message, and the search for a text with other
// blanks, stop after a fixed amount of work and then find nothing.
package patch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool/linetext"
)

// fileLine is a line of a file with its line end: "\n", "\r\n", or nothing at the end of a file.
type fileLine struct{ text, end string }

func cutLines(text string) (out []fileLine) {
	for line := range strings.Lines(text) {
		out = append(out, cutEnd(line))
	}
	return out
}

func cutEnd(line string) fileLine {
	for _, end := range []string{"\r\n", "\n"} {
		if body, ok := strings.CutSuffix(line, end); ok {
			return fileLine{body, end}
		}
	}
	return fileLine{text: line}
}

// lineEnd returns the line end of most lines of a text, "\n" for one line.
func lineEnd(text string) string {
	if crlf := strings.Count(text, "\r\n"); crlf > 0 && crlf*2 >= strings.Count(text, "\n") {
		return "\r\n"
	}
	return "\n"
}

// ChunkFailure is a chunk that does not fit the file.
type ChunkFailure struct {
	context bool // the line after @@ was not found
	sought  []string
}

// Reason returns the text for the model, which names the lines that were not found in the file path.
func (f *ChunkFailure) Reason(path string) string {
	what := "these lines were not found in"
	if f.context {
		what = "this context line was not found in"
	}
	return fmt.Sprintf("%s %s from the place of the change before it on:\n%s\nRead the file and copy the lines as they "+
		"are.", what, path, strings.Join(f.sought, "\n"))
}

// ApplyChunks changes a text. Lines that stay keep their bytes, even where the patch shows them with other blanks;
// new lines get the line end of their neighbours; a missing end of the last line stays missing. The error is always
// the context's.
func ApplyChunks(ctx context.Context, text string, chunks []Chunk) (string, *ChunkFailure, error) {
	f := newPatchedText(text)
	for _, c := range chunks {
		if err := ctx.Err(); err != nil {
			return "", nil, err // each chunk may need a search through a large file
		}
		if bad := f.apply(c); bad != nil {
			return "", bad, nil
		}
	}
	return f.text(), nil, nil
}

// patchedText is a file while fit looks for the places of chunks in it.
type patchedText struct {
	lines  []fileLine
	forms  [4][]string // the lines in each of lineForms; nil until seek needs them
	end    string      // line end of new lines without a neighbour
	ended  bool        // the last line has a line end
	at     int         // where the search for the next chunk begins
	used   int         // number of lines, from the top, that chunks have matched
	places []chunkEdit
}

// chunkEdit is a place where new lines replace old ones.
type chunkEdit struct {
	at, n int
	lines []fileLine
}

func newPatchedText(text string) *patchedText {
	return &patchedText{lines: cutLines(text), end: lineEnd(text), ended: text == "" || strings.HasSuffix(text, "\n")}
}

func (f *patchedText) apply(c Chunk) *ChunkFailure {
	if c.named {
		before := f.at
		i := f.seek([]string{c.context}, f.at, false)
		if i < 0 && c.context != "" {
			return &ChunkFailure{context: true, sought: []string{c.context}}
		}
		if i >= 0 {
			f.at = i + 1
			if bad := f.fit(c); bad == nil || c.context != "" {
				return bad
			}
		}
		f.at = before // an "@@ " that was meant as "@@"
		c.named = false
	}
	return f.fit(c)
}

// fit finds the place of a chunk's lines, from f.at on.
func (f *patchedText) fit(c Chunk) *ChunkFailure {
	olds := c.olds()
	if len(olds) == 0 {
		f.insert(c)
		return nil
	}
	i := f.seek(olds, f.at, c.atEnd)
	if last := olds[len(olds)-1]; i < 0 && (last == "" || last == "\r") {
		// The blank line that models leave at the end of a chunk.
		c = c.withoutLastBlank()
		olds = c.olds()
		i = f.seek(olds, f.at, c.atEnd)
	}
	// The last lines may begin before f.at, with the line after @@, but not in what
	// another chunk has replaced.
	if i < 0 || i < f.used {
		return &ChunkFailure{sought: c.olds()}
	}
	f.replace(i, c, len(olds))
	f.at = i + len(olds)
	return nil
}

// insert adds a chunk that has only new lines: after the line named by @@, otherwise at the end, before a blank last
// line.
func (f *patchedText) insert(c Chunk) {
	at := len(f.lines)
	if c.named && !c.atEnd {
		at = f.at
	} else if at > 0 && f.lines[at-1].text == "" {
		at--
	}
	f.replace(at, c, 0)
}

func (f *patchedText) replace(at int, c Chunk, n int) {
	p := chunkEdit{at: at, n: n}
	k := at
	for _, l := range c.ops {
		switch l.op {
		case ' ':
			p.lines = append(p.lines, f.lines[k])
			k++
		case '-':
			k++
		case '+':
			p.lines = append(p.lines, fileLine{strings.TrimSuffix(l.text, "\r"), f.endAt(k)})
		}
	}
	f.places = append(f.places, p)
	if n > 0 {
		f.used = at + n
	}
}

// endAt returns the line end for a new line before line k.
func (f *patchedText) endAt(k int) string {
	for _, i := range []int{k - 1, k} {
		if i >= 0 && i < len(f.lines) && f.lines[i].end != "" {
			return f.lines[i].end
		}
	}
	return f.end
}

func (f *patchedText) text() string {
	slices.SortStableFunc(f.places, func(a, b chunkEdit) int { return a.at - b.at })
	var out []fileLine
	at := 0
	for _, p := range f.places {
		// New lines for the end of the file may belong among lines that another chunk
		// replaces: then they follow those.
		p.at = max(p.at, at)
		out = append(append(out, f.lines[at:p.at]...), p.lines...)
		at = p.at + p.n
	}
	out = append(out, f.lines[at:]...)
	var b strings.Builder
	for i, l := range out {
		b.WriteString(l.text)
		switch last := i == len(out)-1; {
		case last && !f.ended:
		case l.end == "":
			b.WriteString(f.end)
		default:
			b.WriteString(l.end)
		}
	}
	return b.String()
}

// withoutLastBlank removes the blank last line of a chunk, on both sides.
func (c Chunk) withoutLastBlank() Chunk {
	ops := slices.Clone(c.ops)
	last := len(ops) - 1
	i := last
	for ops[i].op == '+' {
		i--
	}
	if i < last && linetext.Trim(ops[last].text) == "" {
		ops = ops[:last] // blank before and after: the last one of each goes
	}
	if i < last && ops[i].op == ' ' {
		ops[i].op = '+'
	} else {
		ops = slices.Delete(ops, i, i+1)
	}
	c.ops = ops
	return c
}

// lineForms are four forms of a line; seek compares lines in each form, from strict to loose.
var lineForms = [4]func(string) string{
	func(s string) string { return s },
	linetext.TrimRight,
	linetext.Trim,
	func(s string) string { return linetext.Trim(asciiForms.Replace(s)) },
}

// asciiForms replaces typography by the characters of a keyboard.
var asciiForms = func() *strings.Replacer {
	var pairs []string
	for to, from := range map[string]string{
		"-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
		"'": "\u2018\u2019\u201a\u201b",
		`"`: "\u201c\u201d\u201e\u201f",
		" ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
	} {
		for _, r := range from {
			pairs = append(pairs, string(r), to)
		}
	}
	return strings.NewReplacer(pairs...)
}()

// seek returns the first place from start on that holds the lines, -1 if there is none. It tries the lineForms one
// after the other. With atEnd it looks only at the last lines.
func (f *patchedText) seek(want []string, start int, atEnd bool) int {
	if len(want) == 0 {
		return start
	}
	if atEnd {
		start = len(f.lines) - len(want)
	}
	if start < 0 {
		return -1
	}
	for n, form := range lineForms {
		if f.forms[n] == nil {
			f.forms[n] = api.Each(f.lines, func(l fileLine) string { return form(l.text) })
		}
		sought := api.Each(want, func(l string) string { return form(strings.TrimSuffix(l, "\r")) })
		if i := indexOf(f.forms[n][start:], sought); i >= 0 {
			return start + i
		}
	}
	return -1
}

// indexOf returns the first place of wanted lines in lines, -1 if there is none. It compares at most two lines for
// each of them (Knuth, Morris and Pratt): a file may repeat its lines.
func indexOf(lines, want []string) int {
	retry := make([]int, len(want)+1) // how many lines before a difference begin the next attempt
	retry[0] = -1
	match := func(line string, n int) int {
		for n >= 0 && line != want[n] {
			n = retry[n]
		}
		return n + 1
	}
	for i := 1; i < len(want); i++ {
		retry[i+1] = match(want[i], retry[i])
	}
	n := 0
	for i, line := range lines {
		if n = match(line, n); n == len(want) {
			return i + 1 - n
		}
	}
	return -1
}

// ChunksState reports whether a text holds all lines of the chunks as they are before the
// patch is applied (olds), and as they are after it (news).
func ChunksState(text string, chunks []Chunk) (olds, news bool) {
	f := newPatchedText(text)
	olds, news = true, true
	for _, c := range chunks {
		olds = olds && f.seek(c.olds(), 0, c.atEnd) >= 0
		news = news && f.seek(c.news(), 0, false) >= 0
	}
	return olds, news
}

// What a section of a patch does to its file.
const (
	AddFile    = "add"
	DeleteFile = "delete"
	UpdateFile = "update"
)

// Section is the part of a patch for one file.
type Section struct {
	Kind    string
	Path    string
	MoveTo  string // "" = not moved
	Content string // of a new file
	Chunks  []Chunk
}

// Chunk is one place that is changed.
type Chunk struct {
	context string // a line before the place
	named   bool   // there is such a line
	ops     []patchLine
	atEnd   bool // the place is the end of the file
}

// patchLine is a line of a chunk: ' ' stays, '-' goes, '+' comes.
type patchLine struct {
	op   byte
	text string
}

// olds returns the lines before the change, news the lines after it.
func (c Chunk) olds() []string { return c.without('+') }
func (c Chunk) news() []string { return c.without('-') }

func (c Chunk) without(op byte) []string {
	return api.Some(c.ops, func(l patchLine) (string, bool) { return l.text, l.op != op })
}

// FormatError is a patch that cannot be read.
type FormatError struct {
	line   int // from 1, that of "*** Begin Patch"; 0 = the patch as a whole
	reason string
}

func (e *FormatError) Error() string {
	if e.line == 0 {
		return "the patch cannot be read: " + e.reason
	}
	return fmt.Sprintf("the patch cannot be read: line %d: %s", e.line, e.reason)
}

// The lines that structure a patch.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	moveMark   = "*** Move to: "
)

var sectionMarks = []struct{ mark, kind string }{
	{"*** Add File: ", AddFile}, {"*** Delete File: ", DeleteFile}, {"*** Update File: ", UpdateFile},
}

// ParsePatch reads the format that models know from apply_patch. It removes a here-document around it.
func ParsePatch(text string) ([]Section, *FormatError) {
	lines, bad := patchBody(strings.Split(linetext.Trim(text), "\n"))
	if bad != nil {
		return nil, bad
	}
	p := patchReader{lines: lines}
	sections := []Section{}
	for p.at < len(p.lines) {
		if linetext.Trim(p.lines[p.at]) == "" {
			p.at++ // between two sections
			continue
		}
		s, bad := p.section()
		if bad != nil {
			return nil, bad
		}
		sections = append(sections, s)
	}
	return sections, nil
}

// patchBody returns the lines between the first and the last one.
func patchBody(lines []string) ([]string, *FormatError) {
	if n := len(lines); n >= 4 && strings.HasSuffix(lines[n-1], "EOF") {
		switch lines[0] {
		case "<<EOF", "<<'EOF'", `<<"EOF"`:
			lines = lines[1 : n-1]
		}
	}
	last := len(lines) - 1
	if linetext.Trim(lines[0]) != beginPatch {
		return nil, &FormatError{reason: "its first line must be '" + beginPatch + "'"}
	}
	if last == 0 || linetext.Trim(lines[last]) != endPatch {
		return nil, &FormatError{reason: "its last line must be '" + endPatch + "'"}
	}
	return lines[1:last], nil
}

// patchReader reads the lines between the first and the last one.
type patchReader struct {
	lines []string
	at    int
}

func (p *patchReader) wrong(at int, format string, args ...any) *FormatError {
	return &FormatError{line: at + 2, reason: fmt.Sprintf(format, args...)}
}

func (p *patchReader) section() (Section, *FormatError) {
	start := p.at
	head := linetext.Trim(p.lines[start])
	for _, m := range sectionMarks {
		path, ok := strings.CutPrefix(head, m.mark)
		if !ok {
			continue
		}
		p.at++
		s := Section{Kind: m.kind, Path: path}
		switch m.kind {
		case AddFile:
			s.Content = p.added()
		case UpdateFile:
			return p.update(s, start)
		}
		return s, nil
	}
	return Section{}, p.wrong(start, "%q does not begin a section; one of '*** Add File: PATH', '*** Delete File: PATH' and "+
		"'*** Update File: PATH' does", head)
}

func (p *patchReader) added() string {
	var b strings.Builder
	for ; p.at < len(p.lines); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			break
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func (p *patchReader) update(s Section, start int) (Section, *FormatError) {
	if p.at < len(p.lines) {
		if to, ok := strings.CutPrefix(p.lines[p.at], moveMark); ok {
			s.MoveTo = linetext.Trim(to)
			p.at++
		}
	}
	for p.at < len(p.lines) && !strings.HasPrefix(p.lines[p.at], "***") {
		if linetext.Trim(p.lines[p.at]) == "" {
			p.at++
			continue
		}
		c, bad := p.chunk(len(s.Chunks) == 0)
		if bad != nil {
			return s, bad
		}
		s.Chunks = append(s.Chunks, c)
	}
	if len(s.Chunks) == 0 {
		return s, p.wrong(start, "the section for %q changes nothing", s.Path)
	}
	return s, nil
}

// chunk reads one chunk. Only the first one of a file may lack its @@ line.
func (p *patchReader) chunk(first bool) (Chunk, *FormatError) {
	var c Chunk
	start := p.at
	line := strings.TrimSuffix(p.lines[start], "\r")
	switch context, named := strings.CutPrefix(line, "@@ "); {
	case named:
		c.context, c.named = context, true
		p.at++
	case line == "@@":
		p.at++
	case !first:
		return c, p.wrong(start, "a line that begins with @@ is expected here, not %q", line)
	}
	for begin := p.at; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if strings.TrimSuffix(line, "\r") == endOfFile {
			if p.at == begin {
				return c, p.wrong(p.at, "no lines are given for this place")
			}
			c.atEnd = true
			p.at++
			return c, nil
		}
		switch {
		case line == "" || line == "\r":
			c.ops = append(c.ops, patchLine{' ', line}) // its blank was lost
		case strings.IndexByte(" +-", line[0]) >= 0:
			c.ops = append(c.ops, patchLine{line[0], line[1:]})
		case p.at == begin:
			return c, p.wrong(p.at, "%q begins with none of ' ', '+' and '-'", line)
		default:
			return c, nil
		}
	}
	if len(c.ops) == 0 {
		return c, p.wrong(start+1, "no lines are given for this place")
	}
	return c, nil
}
