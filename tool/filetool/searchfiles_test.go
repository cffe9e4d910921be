package filetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// searchText runs a search and gives its text.
func searchText(t *testing.T, env tool.Env, args ...any) string {
	t.Helper()
	_, res := run(t, env, SearchFiles(), call(args...))
	if !utf8.ValidString(res.Text) {
		t.Errorf("not UTF-8: %q", res.Text)
	}
	return res.Text
}

var shownLine = regexp.MustCompile(`^ *(\d+) \| ?(.*)$`)

// What a search shows is what a plain loop over the lines finds, with one line
// before and after each.
func TestSearchAgainstAPlainLoop(t *testing.T) {
	env, root := sandbox(t)
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"needle", "a needle here", "hay", "", "Needle", "  needle", "x"}), 1, 40).Draw(r, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "end")
		last := rapid.SampledFrom([]string{"", end}).Draw(r, "last")
		pattern := rapid.SampledFrom([]string{"needle", "^needle$", "(?i)^needle$", "^$", "x|hay"}).Draw(r, "pattern")
		mark := "" // a byte order mark is no part of the first line
		if lines[0] != "" {
			mark = rapid.SampledFrom([]string{"", byteOrderMark}).Draw(r, "mark")
		}
		fixture.WriteFile(t, filepath.Join(root, "f"), mark+strings.Join(lines, end)+last)
		if last != "" {
			lines = append(lines, "") // nothing stands behind the last line end
			lines = lines[:len(lines)-1]
		} else if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		re := regexp.MustCompile(pattern)
		show := map[int]bool{}
		for i, l := range lines {
			if re.MatchString(l) {
				for _, k := range []int{i - 1, i, i + 1} {
					if k >= 0 && k < len(lines) {
						show[k] = true
					}
				}
			}
		}
		got := searchText(t, env, "path", "f", "regex", pattern)
		seen := 0
		for _, l := range strings.Split(got, "\n") {
			m := shownLine.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			n, _ := strconv.Atoi(m[1])
			if n < 1 || n > len(lines) || !show[n-1] || m[2] != strings.TrimRight(lines[n-1], " ") {
				r.Fatalf("%q is shown of %q", l, lines)
			}
			seen++
		}
		if seen != len(show) {
			r.Fatalf("%d of %d lines are shown:\n%s", seen, len(show), got)
		}
	})
}

func TestWhatIsSearched(t *testing.T) {
	env, root := sandbox(t,
		"a.go", "needle\n", "sub/b.go", "needle\n", "sub/deep/c.txt", "needle\n", "build/out.go", "needle\n", ".gitignore", "build/\n*.log\n!keep.log\n",
		"x.log", "needle\n", "keep.log", "needle\n", ".hidden", "needle\n", ".dir/f", "needle\n", ".git/config", "needle\n", "node_modules/m.js", "needle\n",
		"binary", "needle\x00", "latin1", "caf\xe9 needle\n", "vendor/v.go", "needle\n", "sub/.gitignore", "c.txt\n", "secret/s", "needle\n", ".rooignore", "secret/\n",
	)
	if err := os.Symlink("../sub", filepath.Join(root, "sub", "again")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, glob, want string }{
		{".", "", "a.go keep.log latin1 sub/b.go vendor/v.go"},
		{"sub", "", "sub/b.go"},
		{"build", "", "build/out.go"}, // named, so it is meant
		{".dir", "", ".dir/f"},
		{"node_modules", "", "node_modules/m.js"},
		{"a.go", "", "a.go"},
		{".hidden", "", ".hidden"},
		{".", "*.go", "a.go sub/b.go vendor/v.go"},
		{".", "**/*.go", "a.go sub/b.go vendor/v.go"},
		{".", "sub/*.go", "sub/b.go"},
		{".", "/*.go", "a.go"},
		{".", "./a.go", "a.go"},
		{".", "*.{go,log}", "a.go keep.log sub/b.go vendor/v.go"},
		{".", "!*.go", "keep.log latin1"},
		{".", "[a-b].go", "a.go sub/b.go"},
		{".", "sub/**", "sub/b.go"},
		{".", "*.py", ""},
		{"sub", "*.go", "sub/b.go"},
	} {
		var got []string
		for _, l := range strings.Split(searchText(t, env, "path", tt.path, "regex", "needle", "file_pattern", tt.glob), "\n") {
			if name, ok := strings.CutPrefix(l, "# "); ok {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(strings.Fields(tt.want), got); d != "" && (tt.want != "" || len(got) > 0) {
			t.Errorf(`got %s %s: %s, want d = "" or (tt.want = "" and len(got) <= 0)`, tt.path, tt.glob, d)
		}
	}
	if text := searchText(t, env, "path", "latin1", "regex", "needle"); !strings.Contains(text, "1 | caf\ufffd needle") {
		t.Errorf("other encodings are shown as %q", text)
	}
}

func TestSearchMistakes(t *testing.T) {
	env, _ := sandbox(t, "f", "x\n")
	for _, tt := range []struct{ regex, glob, want string }{
		{"(", "", "missing closing )"},
		{"(?=x)", "", "Look-around and back-references do not exist here"},
		{`(a)\1`, "", "invalid escape sequence"},
		{"[z-a]", "", "invalid character class range"},
		{"a{2000}", "", "invalid repeat count"},
		{strings.Repeat("(", 2000) + strings.Repeat(")", 2000), "", "nests too deeply"},
		{"x", strings.Repeat("{a,b}", 20), "too many alternatives"},
		{"", "", `"regex" is empty`},
	} {
		_, err := SearchFiles().Plan(context.Background(), env, call("path", ".", "regex", tt.regex, "file_pattern", tt.glob))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("%.20s %.20s: %.200v, want %q", tt.regex, tt.glob, err, tt.want)
		}
	}
	for path, want := range map[string]string{
		"missing": "Error: the folder missing does not exist.",
		"/":       "Error: the folder / cannot be listed: it is a home or root folder; name the folder below it that is meant",
	} {
		if _, res := run(t, env, SearchFiles(), call("path", path, "regex", "x")); res.Text != want || !res.IsError {
			t.Errorf("%s: got %+v, want res.Text = %v and res.IsError", path, res, want)
		}
	}
}

// Patterns that take other engines for ever: here they take time in proportion to
// the text, and a caller who gives up is heard in the middle of a line.
func TestPathologicalPatterns(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	env, _ := sandbox(t, "line", long, "lines", strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n", 2000))
	for _, pattern := range []string{`(a+)+$`, `(a|aa)+$`, `^(a+)*b$`, `(x+x+)+y`, `(.*)*z`} {
		start := time.Now()
		searchText(t, env, "path", "lines", "regex", pattern)
		if d := time.Since(start); d > 60*time.Second {
			t.Errorf("%s took %v", pattern, d)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := SearchFiles().Plan(ctx, env, call("path", ".", "regex", `(a?){900}(a|b){900}c$`))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Plan: %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it was heard after %v", d)
	}
}

func TestSearchIsBounded(t *testing.T) {
	env, root := sandbox(t, "wide", strings.Repeat("needle "+strings.Repeat("x", 100_000)+"\n", 50), "emoji", "needle "+strings.Repeat("😀", 600)+"\n")
	text := searchText(t, env, "path", "wide", "regex", "needle")
	if len(text) > 60*(500+50) || strings.Count(text, "[truncated...]") != 50 {
		t.Errorf("%d bytes, %d lines cut", len(text), strings.Count(text, "[truncated...]"))
	}
	text = searchText(t, env, "path", "emoji", "regex", "needle")
	if !strings.Contains(text, "needle "+strings.Repeat("😀", 246)+" [truncated...]") {
		t.Errorf("cut at %q", text)
	}
	for i := range 400 {
		fixture.WriteFile(t, filepath.Join(root, "many", fmt.Sprintf("f%03d", i)), "needle\n")
	}
	text = searchText(t, env, "path", "many", "regex", "needle")
	if !strings.HasPrefix(text, "Showing first 300 of 300+ results.") || strings.Count(text, "\n# ") != 300 || strings.Contains(text, "f300") {
		t.Errorf("%d files are shown: %.80q", strings.Count(text, "\n# "), text)
	}
	if text = searchText(t, env, "path", "many", "regex", "needle", "file_pattern", "f00*"); !strings.HasPrefix(text, "Found 10 results.") {
		t.Errorf("%.80q", text)
	}
}

// A line that never ends is looked at up to a point, in bounded memory, and the
// rest of the file is still searched.
func TestALineWithoutEnd(t *testing.T) {
	env, root := sandbox(t, "f", "")
	f, err := os.Create(filepath.Join(root, "f"))
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := f.WriteString(strings.Repeat("x", 1<<19)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("late\nneedle\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := searchText(t, env, "path", "f", "regex", "^needle$"); !strings.Contains(got, "  2 | needle\n") {
		t.Errorf("%.200q", got)
	}
	if got := searchText(t, env, "path", "f", "regex", "late"); got != "Found 0 results." {
		t.Errorf("%.200q", got)
	}
}

func ExampleSearchFiles() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n// main starts.\nfunc main() {\n}\n"), 0o600)
	ws, err := workspace.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	p, err := SearchFiles().Plan(ctx, tool.Env{Workspace: ws}, []byte(`{"path":".","regex":"^func ","file_pattern":"*.go"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Run(ctx, nil)
	fmt.Println(res.Text, err)
	// Output:
	// Found 1 result.
	//
	// # main.go
	//   2 | // main starts.
	//   3 | func main() {
	//   4 | }
	// ---- <nil>
}

// However the files are dealt out to searchers, the answer is that of one that goes
// through them in order, up to the same place.
func TestTheAnswerDoesNotDependOnWhoSearched(t *testing.T) {
	env, root := sandbox(t)
	var want strings.Builder
	places := 0
	for i := range 700 {
		name := fmt.Sprintf("d%02d/f%03d", i/50, i)
		text := "nothing\n"
		if i%2 == 0 {
			text = strings.Repeat("x\nneedle\nx\nx\n", 1+i%3)
			for n := range 1 + i%3 {
				if places < 300 {
					if n == 0 {
						fmt.Fprintf(&want, "# %s\n", name)
					}
					fmt.Fprintf(&want, "%3d | x\n%3d | needle\n%3d | x\n----\n", 4*n+1, 4*n+2, 4*n+3)
				}
				places++
			}
		}
		fixture.WriteFile(t, filepath.Join(root, name), text)
	}
	// The pattern of the second search says nothing that could be looked for first.
	for _, pattern := range []string{"needle", "n[e]+[d]le"} {
		_, res := run(t, env, SearchFiles(), call("path", ".", "regex", pattern))
		_, got, _ := strings.Cut(res.Text, "\n\n")
		if d := cmp.Diff(want.String(), strings.ReplaceAll(got, "\n\n", "\n")+"\n"); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", pattern, d)
		}
	}
}
