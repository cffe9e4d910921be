package patch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

// TestVectorsApplyPatch compares with Roo's own reading and applying. By choice: lines
// that stay keep their bytes and the file its line ends, lines that are only added come
// behind their context line, an "@@ " with nothing behind it asks for a blank line only if
// that helps, line ends of the patch do not count, nor do blank lines between sections.
// What is wanted is worked out from the file and the patch, and must be what Roo makes but
// for these.
func TestVectorsApplyPatch(t *testing.T) {
	conformance.Run(t, "apply_patch", func(t *testing.T, c conformance.Case) (choice bool) {
		patch, files := c.Input.Str("patch"), c.Input.Get("files")
		sections, bad := ParsePatch(patch)
		own := ownSections(patch)
		tolerated := toleratedLine(patch, int(c.Want.Int("line", 0)))
		if wrong := c.Want.Bool("parse_error", false); wrong && !tolerated || bad != nil {
			if !wrong || tolerated || bad == nil {
				t.Fatalf("parse error %v, wanted %v", bad, wrong)
			}
			if line := c.Want.Int("line", 0); line != int64(bad.line) {
				t.Errorf("line %d, wanted %d: %s", bad.line, line, bad.reason)
			}
			return false
		}
		if len(own) != len(sections) {
			t.Fatalf("%d sections, wanted %d", len(sections), len(own))
		}
		hunks, changes := c.Want.Get("hunks").List(), c.Want.Get("changes").List()
		if !tolerated && len(hunks) != len(sections) {
			t.Fatalf("%d sections, wanted %d", len(sections), len(hunks))
		}
		for i, h := range hunks {
			compareSection(t, sections[i], conformance.Value(h))
		}
		wantError := c.Want.Str("apply_error")
		if wantError == "missing_file" {
			refusesMissing(t, files, patch)
			return false
		}
		for i, s := range sections {
			if s.Kind != own[i].kind || s.Path != own[i].path || s.Kind == AddFile && s.Content != own[i].content {
				t.Errorf("section %d is %+v, wanted %+v", i, s, own[i])
			}
			if s.Kind != UpdateFile {
				if wantError == "" && !tolerated && conformance.Value(changes[i]).Str("new_content") != s.Content {
					t.Errorf("%s gets %q, wanted %s", s.Path, s.Content, changes[i])
				}
				continue
			}
			old := files.Str(s.Path)
			got, fail, _ := ApplyChunks(context.Background(), old, s.Chunks)
			text, fits := own[i].applied(old)
			if fits != (fail == nil) {
				t.Fatalf("%s: %+v, wanted that it fits: %v", s.Path, fail, fits)
			}
			if fail != nil {
				return compareFailure(t, fail, wantError)
			}
			if got != text {
				t.Error(cmp.Diff(text, got))
			}
			if tolerated {
				continue
			}
			if wantError != "" {
				choice = choice || slices.ContainsFunc(own[i].chunks, func(c ownChunk) bool { return c.named && c.context == "" })
				continue
			}
			want := conformance.Value(changes[i])
			if want.Str("type") != s.Kind || want.Str("path") != s.Path || want.Str("move_path") != s.MoveTo {
				t.Errorf("section %d is %s %s %s, wanted %s", i, s.Kind, s.Path, s.MoveTo, changes[i])
			}
			if roos := want.Str("new_content"); roos != text {
				if !chosen(old, text, roos, s.Chunks) {
					t.Errorf("the test wants something else than Roo: %s", cmp.Diff(roos, text))
				}
				choice = true
			}
		}
		if wantError != "" && !choice {
			t.Errorf("it could be applied, wanted %s", wantError)
		}
		return choice || tolerated
	})
}

// toleratedLine: Roo stumbles over a line that ends in CRLF, or is blank and stands between
// two sections.
func toleratedLine(patch string, line int) bool {
	lines := strings.Split(patch, "\n")
	if line < 2 || line >= len(lines) {
		return false
	}
	return strings.HasSuffix(lines[line-1], "\r") || strings.TrimSpace(lines[line-1]) == "" && strings.HasPrefix(lines[line], "*** ")
}

// PlanPatch has the tool apply_patch plan a patch over files, given as names and contents by
// turns, and returns their folder. A test of package patch_test sets it: this package cannot
// import the tool, which imports it.
var PlanPatch func(t *testing.T, files []string, patch string) (root string, err error)

// refusesMissing: the tool refuses the patch and changes nothing.
func refusesMissing(t *testing.T, files conformance.Value, patch string) {
	t.Helper()
	var named []string
	for name := range esjson.Members(files) {
		named = append(named, name, files.Str(name))
	}
	root, err := PlanPatch(t, named, patch)
	if err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the patch of a missing file: %v", err)
	}
	for i := 0; i < len(named); i += 2 {
		if text, err := os.ReadFile(filepath.Join(root, named[i])); err != nil || string(text) != named[i+1] {
			t.Errorf("%s is %q (%v)", named[i], text, err)
		}
	}
}

// ownSection is a section of a patch as its lines say.
type ownSection struct {
	kind, path, content string
	chunks              []ownChunk
}

type ownChunk struct {
	context      string
	named, atEnd bool
	lines        []string // each with its sign
}

func ownSections(patch string) (all []ownSection) {
	for _, full := range strings.Split(patch, "\n") {
		l := strings.TrimSuffix(full, "\r")
		bare := strings.TrimSpace(l)
		header := false
		for _, m := range sectionMarks {
			if path, ok := strings.CutPrefix(bare, m.mark); ok {
				all = append(all, ownSection{kind: m.kind, path: path})
				header = true
			}
		}
		if len(all) == 0 || header {
			continue
		}
		s := &all[len(all)-1]
		begin := func() *ownChunk {
			if len(s.chunks) == 0 {
				s.chunks = append(s.chunks, ownChunk{})
			}
			return &s.chunks[len(s.chunks)-1]
		}
		context, named := strings.CutPrefix(l, "@@ ")
		switch {
		case s.kind == AddFile && strings.HasPrefix(l, "+"):
			s.content += full[1:] + "\n" // all of a new file is the patch's
		case s.kind != UpdateFile || strings.HasPrefix(l, "*** Move to") || bare == endPatch:
		case bare == endOfFile:
			begin().atEnd = true
		case named || l == "@@":
			s.chunks = append(s.chunks, ownChunk{context: strings.TrimPrefix(context, "@@"), named: named})
		case l == "":
			if n := len(s.chunks); n > 0 && !s.chunks[n-1].atEnd {
				s.chunks[n-1].lines = append(s.chunks[n-1].lines, " ")
			}
		default:
			c := begin()
			c.lines = append(c.lines, l)
		}
	}
	return all
}

func compareSection(t *testing.T, s Section, want conformance.Value) {
	t.Helper()
	kinds := map[string]string{"AddFile": AddFile, "DeleteFile": DeleteFile, "UpdateFile": UpdateFile}
	if s.Kind != kinds[want.Str("type")] || s.Path != want.Str("path") || s.MoveTo != want.Str("movePath") || s.Content != want.Str("contents") {
		t.Errorf("got %+v, wanted %s", s, want)
	}
	chunks := want.Get("chunks").List()
	if len(chunks) != len(s.Chunks) {
		t.Fatalf("%d chunks, wanted %d", len(s.Chunks), len(chunks))
	}
	for i, raw := range chunks {
		w, c := conformance.Value(raw), s.Chunks[i]
		if c.context != w.Str("changeContext") || c.atEnd != w.Bool("isEndOfFile", false) ||
			!slices.Equal(c.olds(), w.Get("oldLines").Strings()) || !slices.Equal(c.news(), w.Get("newLines").Strings()) {
			t.Errorf("got %+v, wanted %s", c, raw)
		}
	}
}

// compareFailure: the stored kinds were told from the message by the word context,
// which the lines that are quoted in it may hold too.
func compareFailure(t *testing.T, fail *ChunkFailure, want string) (choice bool) {
	t.Helper()
	kind := "lines_not_found"
	if fail.context {
		kind = "context_not_found"
	}
	if kind == want {
		return false
	}
	if want != "context_not_found" || !strings.Contains(strings.Join(fail.sought, "\n"), "context") {
		t.Errorf("%s, wanted %q: %q", kind, want, fail.sought)
	}
	return false
}

// applied is the file with the chunks of a section, if they fit: lines that stay are the
// file's, bytes and all; new ones are the patch's and end as their neighbours do.
func (s ownSection) applied(file string) (string, bool) {
	var lines []string
	for l := range strings.Lines(file) {
		lines = append(lines, l)
	}
	end := func(l string) string {
		if text, ended := strings.CutSuffix(l, "\n"); ended {
			return l[len(strings.TrimSuffix(text, "\r")):]
		}
		return ""
	}
	usual := "\n"
	if strings.Count(file, "\r\n")*2 >= strings.Count(file, "\n") && strings.Contains(file, "\r\n") {
		usual = "\r\n"
	}
	find := func(sought []string, from int, atEnd bool) int {
		if atEnd {
			from = max(0, len(lines)-len(sought))
		}
		for _, form := range lineForms {
			same := func(a, b string) bool { return form(strings.TrimSuffix(a, end(a))) == form(b) }
			for i := from; i+len(sought) <= len(lines); i++ {
				if slices.EqualFunc(lines[i:i+len(sought)], sought, same) {
					return i
				}
			}
		}
		return -1
	}
	type change struct {
		at, n int
		fresh []string
	}
	var changes []change
	from, used := 0, 0
	try := func(c ownChunk, from int) (int, bool) {
		var olds []string
		for _, l := range c.lines {
			if l[0] != '+' {
				olds = append(olds, l[1:])
			}
		}
		at := len(lines)
		switch {
		case len(olds) == 0 && c.named && !c.atEnd:
			at = from
		case len(olds) == 0 && at > 0 && lines[at-1] == end(lines[at-1]):
			at--
		case len(olds) > 0:
			at = find(olds, from, c.atEnd)
			if at < 0 && olds[len(olds)-1] == "" { // models leave a blank line at the end of a chunk
				last := len(c.lines) - 1
				for c.lines[last][0] == '+' {
					last--
				}
				rest, blankBehind := slices.Clone(c.lines), len(c.lines)-1 > last && strings.TrimSpace(c.lines[len(c.lines)-1][1:]) == ""
				switch {
				case last == len(c.lines)-1:
					rest = rest[:last]
				case blankBehind && rest[last][0] == '-':
					rest = slices.Delete(rest[:len(rest)-1], last, last+1)
				case blankBehind:
					rest = rest[:len(rest)-1]
					rest[last] = "+" + rest[last][1:]
				case rest[last][0] == '-':
					rest = slices.Delete(rest, last, last+1)
				default:
					rest[last] = "+" + rest[last][1:]
				}
				c.lines, olds = rest, olds[:len(olds)-1]
				at = find(olds, from, c.atEnd)
			}
			if at < used {
				return 0, false
			}
		}
		ch := change{at: at, n: len(olds)}
		k := at
		for _, l := range c.lines {
			switch l[0] {
			case '+':
				e := usual
				for _, i := range []int{k, k - 1} {
					if i >= 0 && i < len(lines) && end(lines[i]) != "" {
						e = end(lines[i])
					}
				}
				ch.fresh = append(ch.fresh, l[1:]+e)
				continue
			case ' ':
				ch.fresh = append(ch.fresh, lines[k])
			}
			k++
		}
		changes = append(changes, ch)
		if len(olds) > 0 {
			used = at + len(olds)
			return used, true
		}
		return from, true
	}
	for _, c := range s.chunks {
		ok := false
		if c.named {
			at := find([]string{c.context}, from, false)
			if at < 0 && c.context != "" {
				return "", false
			}
			if at >= 0 {
				var next int
				if next, ok = try(c, at+1); ok {
					from = next
				}
			}
			if !ok && c.context != "" {
				return "", false
			}
			c.named = false
		}
		if !ok {
			if from, ok = try(c, from); !ok {
				return "", false
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at - b.at })
	var out []string
	at := 0
	for _, c := range changes {
		c.at = max(c.at, at)
		out = append(append(out, lines[at:c.at]...), c.fresh...)
		at = c.at + c.n
	}
	out = append(out, lines[at:]...)
	for i, l := range out {
		last := i == len(out)-1
		switch {
		case end(l) == "" && (!last || file == "" || strings.HasSuffix(file, "\n")):
			out[i] = l + usual
		case last && file != "" && !strings.HasSuffix(file, "\n"):
			out[i] = strings.TrimSuffix(l, end(l))
		}
	}
	return strings.Join(out, ""), true
}

// chosen reports whether two results differ only in what we do otherwise: blanks,
// typography and line ends of lines, the end of the last one, a blank last line, and
// where lines that are only added behind a context line stand.
func chosen(old, got, want string, chunks []Chunk) bool {
	forms := func(text string) []string {
		var out []string
		for _, l := range cutLines(text) {
			out = append(out, lineForms[3](l.text))
		}
		return out
	}
	a, b := forms(got), forms(want)
	if slices.ContainsFunc(chunks, func(c Chunk) bool { return c.context != "" && len(c.olds()) == 0 }) {
		slices.Sort(a)
		slices.Sort(b)
	}
	if n := len(a) - 1; n == len(b) && a[n] == "" && strings.HasSuffix(old, "\n") {
		a = a[:n] // the original loses a blank last line, whatever is changed
	}
	return slices.Equal(a, b)
}
