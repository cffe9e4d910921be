package patch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// write gives a section as a model writes it.
func (s Section) write() string {
	var b strings.Builder
	switch s.Kind {
	case AddFile:
		b.WriteString("*** Add File: " + s.Path + "\n")
		for l := range strings.Lines(s.Content) {
			b.WriteString("+" + l)
		}
	case DeleteFile:
		b.WriteString("*** Delete File: " + s.Path + "\n")
	default:
		b.WriteString("*** Update File: " + s.Path + "\n")
		if s.MoveTo != "" {
			b.WriteString(moveMark + s.MoveTo + "\n")
		}
		for _, c := range s.Chunks {
			b.WriteString("@@")
			if c.named {
				b.WriteString(" " + c.context)
			}
			b.WriteByte('\n')
			for _, l := range c.ops {
				b.WriteString(string(l.op) + l.text + "\n")
			}
			if c.atEnd {
				b.WriteString(endOfFile + "\n")
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// What is written as a patch is read as it was meant, also within a here-document.
func TestAPatchIsReadAsItWasWritten(t *testing.T) {
	text := rapid.SampledFrom([]string{"a", "", " b", "-c", "+d", "@@ e", "*** f", "EOF", "\tg\r", "é"})
	line := rapid.Custom(func(r *rapid.T) patchLine {
		return patchLine{rapid.SampledFrom([]byte(" -+")).Draw(r, "op"), text.Draw(r, "text")}
	})
	one := rapid.Custom(func(r *rapid.T) Section {
		s := Section{Kind: rapid.SampledFrom([]string{AddFile, DeleteFile, UpdateFile}).Draw(r, "kind"), Path: rapid.StringMatching(`[a-z]( ?[a-z/.])*`).Draw(r, "path")}
		switch s.Kind {
		case AddFile:
			for _, l := range rapid.SliceOfN(text, 0, 4).Draw(r, "lines") {
				s.Content += l + "\n"
			}
		case UpdateFile:
			if rapid.Bool().Draw(r, "moves") {
				s.MoveTo = "to/" + s.Path
			}
			for range rapid.IntRange(1, 3).Draw(r, "chunks") {
				c := Chunk{ops: rapid.SliceOfN(line, 1, 4).Draw(r, "ops"), atEnd: rapid.Bool().Draw(r, "at the end")}
				if c.named = rapid.Bool().Draw(r, "named"); c.named {
					c.context = "func " + c.ops[0].text
					c.context = strings.TrimSuffix(c.context, "\r")
				}
				s.Chunks = append(s.Chunks, c)
			}
		}
		return s
	})
	rapid.Check(t, func(r *rapid.T) {
		want := rapid.SliceOfN(one, 1, 4).Draw(r, "sections")
		var parts []string
		for _, s := range want {
			parts = append(parts, s.write())
		}
		patch := patchOf(parts...)
		if rapid.Bool().Draw(r, "as a here-document") {
			patch = "<<'EOF'\n" + patch + "\nEOF"
		}
		got, bad := ParsePatch(patch)
		if bad != nil {
			r.Fatalf("%v: got %s, want bad = nil", bad, patch)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Section{}, Chunk{}, patchLine{})); d != "" {
			r.Fatalf("got %s\n%s, want d = \"\"", d, patch)
		}
	})
}
