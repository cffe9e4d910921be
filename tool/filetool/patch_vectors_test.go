package filetool

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/conformance"
)

// TestVectorsApplyPatch compares with Roo's own reading and applying. By choice:
// lines that stay keep their bytes and the file its last line end, lines that are
// only added come behind their context line, and an "@@ " with nothing behind it asks
// for a blank line only if that helps.
func TestVectorsApplyPatch(t *testing.T) {
	conformance.Run(t, "apply_patch", func(t *testing.T, c conformance.Case) (choice bool) {
		sections, bad := parsePatch(c.Input.Str("patch"))
		if wrong := c.Want.Bool("parse_error", false); wrong || bad != nil {
			if !wrong || bad == nil {
				t.Fatalf("parse error %v, wanted %v", bad, wrong)
			}
			if line := c.Want.Int("line", 0); line != int64(bad.line) {
				t.Errorf("line %d, wanted %d: %s", bad.line, line, bad.reason)
			}
			return false
		}
		hunks := c.Want.Get("hunks").List()
		if len(hunks) != len(sections) {
			t.Fatalf("%d sections, wanted %d", len(sections), len(hunks))
		}
		for i, h := range hunks {
			compareSection(t, sections[i], conformance.Value(h))
		}
		wantError := c.Want.Str("apply_error")
		changes := c.Want.Get("changes").List()
		for i, s := range sections {
			old, known := "", false
			files := c.Input.Get("files")
			if known = len(files.Get(s.path)) > 0; known {
				old = files.Str(s.path)
			}
			if s.kind == sectionUpdate && !known {
				if wantError != "missing_file" {
					t.Errorf("%s is missing", s.path)
				}
				return false
			}
			got := s.content
			if s.kind == sectionUpdate {
				var fail *chunkFailure
				if got, fail, _ = applyChunks(context.Background(), old, s.chunks); fail != nil {
					return compareFailure(t, fail, wantError)
				}
			}
			if wantError != "" {
				choice = choice || slices.ContainsFunc(s.chunks, func(c chunk) bool { return c.named && c.context == "" })
				continue
			}
			want := conformance.Value(changes[i])
			if want.Str("type") != s.kind || want.Str("path") != s.path || want.Str("move_path") != s.moveTo {
				t.Errorf("section %d is %s %s %s, wanted %s", i, s.kind, s.path, s.moveTo, changes[i])
			}
			if text := want.Str("new_content"); text != got {
				if !chosen(old, got, text, s.chunks) {
					t.Error(cmp.Diff(text, got))
				}
				choice = true
			}
		}
		if wantError != "" && !choice {
			t.Errorf("it could be applied, wanted %s", wantError)
		}
		return choice
	})
}

func compareSection(t *testing.T, s section, want conformance.Value) {
	t.Helper()
	kinds := map[string]string{"AddFile": sectionAdd, "DeleteFile": sectionDelete, "UpdateFile": sectionUpdate}
	if s.kind != kinds[want.Str("type")] || s.path != want.Str("path") || s.moveTo != want.Str("movePath") || s.content != want.Str("contents") {
		t.Errorf("got %+v, wanted %s", s, want)
	}
	chunks := want.Get("chunks").List()
	if len(chunks) != len(s.chunks) {
		t.Fatalf("%d chunks, wanted %d", len(s.chunks), len(chunks))
	}
	for i, raw := range chunks {
		w, c := conformance.Value(raw), s.chunks[i]
		if c.context != w.Str("changeContext") || c.atEnd != w.Bool("isEndOfFile", false) ||
			!slices.Equal(c.olds(), w.Get("oldLines").Strings()) || !slices.Equal(c.news(), w.Get("newLines").Strings()) {
			t.Errorf("got %+v, wanted %s", c, raw)
		}
	}
}

// compareFailure: the stored kinds were told from the message by the word context,
// which the lines that are quoted in it may hold too.
func compareFailure(t *testing.T, fail *chunkFailure, want string) (choice bool) {
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

// chosen reports whether two results differ only in what we do otherwise: blanks,
// typography and line ends of lines, the end of the last one, a blank last line, and
// where lines that are only added behind a context line stand.
func chosen(old, got, want string, chunks []chunk) bool {
	forms := func(text string) []string {
		var out []string
		for _, l := range cutLines(text) {
			out = append(out, lineForms[3](l.text))
		}
		return out
	}
	a, b := forms(got), forms(want)
	if slices.ContainsFunc(chunks, func(c chunk) bool { return c.context != "" && len(c.olds()) == 0 }) {
		slices.Sort(a)
		slices.Sort(b)
	}
	if n := len(a) - 1; n == len(b) && a[n] == "" && strings.HasSuffix(old, "\n") {
		a = a[:n] // the original loses a blank last line, whatever is changed
	}
	return slices.Equal(a, b)
}
