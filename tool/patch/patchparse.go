package patch

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool/linetext"
)

// What a section of a patch does to its file.
const (
	AddFile    = "add"
	DeleteFile = "delete"
	UpdateFile = "update"
)

// Section is what a patch does to one file.
type Section struct {
	Kind    string
	Path    string
	MoveTo  string // "" = stays where it is
	Content string // of an added file
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

// olds are the lines as they are now, news as they will be.
func (c Chunk) olds() []string { return c.without('+') }
func (c Chunk) news() []string { return c.without('-') }

func (c Chunk) without(op byte) []string {
	out := []string{}
	for _, l := range c.ops {
		if l.op != op {
			out = append(out, l.text)
		}
	}
	return out
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

// The lines that give a patch its shape.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	moveMark   = "*** Move to: "
)

var sectionMarks = []struct{ mark, kind string }{
	{"*** Add File: ", AddFile}, {"*** Delete File: ", DeleteFile}, {"*** Update File: ", UpdateFile},
}

// ParsePatch reads the format that models know from apply_patch. A here-document
// around it is taken off.
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

// patchBody returns what is between the first and the last line.
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

// patchReader goes through the lines between the first and the last one.
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

// chunk reads one place. Only the first one of a file may go without its @@ line.
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
