package filetool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
)

// What belongs to a file and not to the model stays, whichever tool changes it: how
// its characters are kept, its mark, its line ends, its mode.
func TestWhatAFileKeeps(t *testing.T) {
	codings := []struct {
		name string
		c    coding
		mark string
	}{
		{"utf8", codedUTF8, ""}, {"utf8 with a mark", codedUTF8, byteOrderMark},
		{"utf16le", codedUTF16LE, byteOrderMark}, {"utf16be", codedUTF16BE, byteOrderMark}, {"windows1252", codedSingle, ""},
	}
	const old, fresh = "one é\ntwo €\nthree ö\n", "one é\nTWO “ü”\nthree ö\n"
	tools := []struct {
		tl tool.Tool
		in map[string]any
	}{
		{WriteToFile(), map[string]any{"path": "f", "content": fresh}},
		{ApplyDiff(), map[string]any{"path": "f", "diff": diffBlock(0, "two €", "TWO “ü”")}},
		{ApplyPatch(), map[string]any{"patch": patchOf(update("f", " one é", "-two €", "+TWO “ü”"))}},
		{Edit(), map[string]any{"file_path": "f", "old_string": "two €\nthree", "new_string": "TWO “ü”\nthree"}},
		{EditFile(), map[string]any{"file_path": "f", "old_string": "two €", "new_string": "TWO “ü”"}},
		{SearchReplace(), map[string]any{"file_path": "f", "old_string": "é\ntwo €", "new_string": "é\nTWO “ü”"}},
	}
	bytesOf := func(c coding, text string) string {
		data, _, ok := c.encode(text)
		if !ok {
			t.Fatal(text)
		}
		return string(data)
	}
	for _, tl := range tools {
		for _, c := range codings {
			for _, end := range []string{"\n", "\r\n"} {
				for _, mode := range []os.FileMode{0o600, 0o755} {
					env, root := sandbox(t)
					name := filepath.Join(root, "f")
					fixture.WriteFile(t, name, bytesOf(c.c, c.mark+strings.ReplaceAll(old, "\n", end)))
					if err := os.Chmod(name, mode); err != nil {
						t.Fatal(err)
					}
					var args []any
					for k, v := range tl.in {
						args = append(args, k, v)
					}
					in := call(args...)
					before := plan(t, env, tl.tl, in).Ask().Before
					ask, res := run(t, env, tl.tl, in)
					where := strings.Join([]string{tl.tl.Spec().Name, c.name, end, mode.String()}, " ")
					want := bytesOf(c.c, c.mark+strings.ReplaceAll(fresh, "\n", end))
					if got := fixture.ReadFile(t, name); got != want || res.IsError {
						t.Errorf("%s: %q, want %q (%s)", where, got, want, res.Text)
					}
					if !strings.Contains(ask.Diff, "\n-two €") || !strings.Contains(ask.Diff, "\n+TWO “ü”") {
						t.Errorf("%s: the diff is %q", where, ask.Diff)
					}
					if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != mode {
						t.Errorf("%s: got %v %v, want no error and (runtime.GOOS = \"windows\" or info.Mode() = mode)",
							where, info.Mode(), err)
					}
					if found, err := tl.tl.(tool.Inspector).Inspect(context.Background(), env, in, before); found != tool.Done || err != nil {
						t.Errorf("%s: after a crash it is %v, %v", where, found, err)
					}
				}
			}
		}
	}
}

// A character that the file cannot hold: a whole file becomes UTF-8 and everybody is
// told, a change of some lines is refused.
func TestWhatAFileCannotHold(t *testing.T) {
	const old = "caf\xe9\nx\n"
	env, root := sandbox(t, "f", old)
	for _, tt := range []struct {
		tl tool.Tool
		in []any
	}{
		{ApplyDiff(), []any{"path", "f", "diff", diffBlock(0, "x", "→")}},
		{ApplyPatch(), []any{"patch", patchOf(update("f", "-x", "+→"))}},
		{Edit(), []any{"file_path", "f", "old_string", "x", "new_string", "→"}},
	} {
		_, err := tt.tl.Plan(context.Background(), env, call(tt.in...))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, `f is not UTF-8; it is kept as Windows-1252, which has no '→' (U+2192)`) {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and strings.Contains(wrong.Reason, `f is not UTF-8; it is kept as Windows-1252, which has no '→' (U+2192)`)",
				tt.tl.Spec().Name, err)
		}
	}
	if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != old {
		t.Fatalf("got %q, want got = old", got)
	}
	ask, res := run(t, env, WriteToFile(), call("path", "f", "content", "café →\n"))
	if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != "café →\n" || !strings.Contains(res.Text, "It is UTF-8 now.") || !strings.Contains(ask.Title, "becomes UTF-8") {
		t.Errorf(`got %q, %s, %s, want got = "café →\n" and strings.Contains(res.Text, "It is UTF-8 now.") and strings.Contains(ask.Title, "becomes UTF-8")`,
			got, res.Text, ask.Title)
	}
}

func TestReadingOtherCodings(t *testing.T) {
	env, _ := sandbox(t, "le", "\xff\xfea\x00\r\x00\n\x00\xac\x20", "be", "\xfe\xff\x00a\xd8\x3d\xde\x00", "half", "\xff\xfe\x00\xd8", "long", "\xff\xfe"+strings.Repeat("x\x00\n\x00", 3000),
		"single", "caf\xe9 \x80\n", "mixed", "caf\xe9 é", "marked", byteOrderMark+"a\n")
	for name, want := range map[string]string{
		"le": wideNote + "1 | a\r\n2 | €", "be": wideNote + "1 | a😀", "half": "Error: half begins like UTF-16", "single": singleNote + "1 | café €\n2 | ", "mixed": "1 | caf\uFFFD é", "marked": "1 | a\n2 | ",
	} {
		_, res := run(t, env, ReadFile(), call("path", name))
		if _, text, _ := strings.Cut(res.Text, "\n"); !strings.HasPrefix(text, want) || res.IsError != strings.HasPrefix(want, "Error") {
			t.Errorf("%s: got %q, want strings.HasPrefix(text, want) and res.IsError = strings.HasPrefix(want, \"Error\")",
				name, res.Text)
		}
	}
	if _, res := run(t, env, ReadFile(), call("path", "long", "offset", 2999, "limit", 2)); !strings.Contains(res.Text, "2999 | x\n3000 | x") {
		t.Errorf("got %q, want strings.Contains(res.Text, \"2999 | x\\n3000 | x\")", res.Text)
	}
	if p, err := env.Workspace.Resolve("le"); err != nil {
		t.Error(err)
	} else if s, problem, err := Show(t.Context(), env.Workspace, p); err != nil || problem != "" || s.Binary || s.Lines != 2 || s.Text != wideNote+"1 | a\r\n2 | €" {
		t.Errorf(`got %+v %q %v, want no error and problem = "" and not s.Binary and s.Lines = 2 and s.Text = wideNote+"1 | a\r\n2 | €"`,
			s, problem, err)
	}
}

// A model that writes the mark of a file, too, does not double it.
func TestAMarkStaysOne(t *testing.T) {
	for _, tt := range []struct {
		tl tool.Tool
		in []any
	}{
		{WriteToFile(), []any{"path", "f", "content", byteOrderMark + "A\n"}},
		{ApplyDiff(), []any{"path", "f", "diff", diffBlock(0, byteOrderMark+"a", byteOrderMark+"A")}},
		{ApplyDiff(), []any{"path", "f", "diff", diffBlock(0, "a", byteOrderMark+"A")}},
		{ApplyPatch(), []any{"patch", patchOf(update("f", "-"+byteOrderMark+"a", "+"+byteOrderMark+"A"))}},
		{Edit(), []any{"file_path", "f", "old_string", "a", "new_string", byteOrderMark + "A"}},
	} {
		env, root := sandbox(t, "f", byteOrderMark+"a\n")
		run(t, env, tt.tl, call(tt.in...))
		if got, want := fixture.ReadFile(t, filepath.Join(root, "f")), byteOrderMark+"A\n"; got != want {
			t.Errorf("%s: got %q, want %q", tt.tl.Spec().Name, got, want)
		}
	}
}

// Whatever is taken for text comes back as it was, byte for byte.
func TestCodingGoesThereAndBack(t *testing.T) {
	piece := rapid.SampledFrom([]string{"\xff\xfe", "\xfe\xff", "\x00", "a", "\n", "\r\n", "\x80", "\x81", "\xe9", "é", "\xd8\x3d", "\xde\x00", "\xef\xbb\xbf", "\x20\xac", "\x1b"})
	rapid.Check(t, func(r *rapid.T) {
		data := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(r, "pieces"), "")
		text, c, ok := decodeText([]byte(data))
		if !ok {
			return
		}
		if back, missing, ok := c.encode(text); !ok || string(back) != data {
			r.Fatalf("%q is %q and becomes %q, %q", data, text, back, missing)
		}
	})
}
