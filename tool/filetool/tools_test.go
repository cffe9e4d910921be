package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// sandbox makes a workspace with files given as name, content pairs.
func sandbox(t *testing.T, files ...string) (tool.Env, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		fixture.WriteFile(t, filepath.Join(root, files[i]), files[i+1])
	}
	ws, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Env{Workspace: ws}, root
}

func call(args ...any) json.RawMessage {
	m := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		m[args[i].(string)] = args[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

func plan(t *testing.T, env tool.Env, tl tool.Tool, in json.RawMessage) tool.Plan {
	t.Helper()
	p, err := tl.Plan(context.Background(), env, in)
	if err != nil {
		t.Fatalf("%s: got %v, want no error", tl.Spec().Name, err)
	}
	return p
}

func run(t *testing.T, env tool.Env, tl tool.Tool, in json.RawMessage) (tool.Ask, tool.Result) {
	t.Helper()
	p := plan(t, env, tl, in)
	res, err := p.Run(context.Background(), nil)
	if err != nil {
		t.Fatalf("%s: got %v, want no error", tl.Spec().Name, err)
	}
	return p.Ask(), res
}

func keys(text string) (out []string) {
	for k := range esjson.Members([]byte(text)) {
		out = append(out, k)
	}
	return out
}

func TestSpecs(t *testing.T) {
	for _, tl := range All() {
		s := tl.Spec()
		if !json.Valid(s.Schema) || s.Description == "" || s.Class == "" || s.Replay == "" {
			t.Errorf("%s: incomplete spec %s", s.Name, s.Schema)
		}
		if _, inspects := tl.(tool.Inspector); inspects != (s.Replay == tool.Inspect) {
			t.Errorf("%s: replay %s, inspector %v", s.Name, s.Replay, inspects)
		}
	}
}

func TestInputMistakes(t *testing.T) {
	env, _ := sandbox(t, "a", "x\n")
	for _, tl := range All() {
		for _, in := range []string{`null`, `[]`, `"x"`, `{`, `{}`, `{"path":null}`, `{"path":7,"content":"","diff":"d","regex":"r"}`, `{"path":"a\u0000b","content":"","diff":"d","regex":"r"}`} {
			_, err := tl.Plan(context.Background(), env, json.RawMessage(in))
			var wrong *tool.InputError
			if !errors.As(err, &wrong) {
				t.Errorf("got %s %s: %v, want errors.As(err, &wrong)", tl.Spec().Name, in, err)
			}
		}
	}
}

func TestReadFile(t *testing.T) {
	long := strings.Repeat("line\n", 5000)
	env, root := sandbox(t, "a.txt", "one\r\ntwo\nthree", "long", long, "bin", "a\x00b", "d/x", "x", "bad", "caf\xe9\n", "p.png", "\x89PNG....")
	fixture.WriteFile(t, filepath.Join(root, "..", "out.txt"), "outside\n")
	tests := []struct {
		name  string
		in    json.RawMessage
		want  string // whole text, or a part after "~"
		isErr bool
	}{
		{"whole", call("path", "a.txt"), "File: a.txt\n1 | one\r\n2 | two\n3 | three", false},
		{"nulls", call("path", "a.txt", "mode", nil, "offset", nil, "limit", nil, "indentation", nil), "File: a.txt\n1 | one\r\n2 | two\n3 | three", false},
		{"strings", call("path", "./a.txt", "offset", "2", "limit", "2"), "File: a.txt\n2 | two\n3 | three", false},
		{"older ranges", json.RawMessage(`{"files":[{"path":"a.txt","lineRanges":[{"start":1,"end":1},{"start":3,"end":3}]}]}`), "File: a.txt\n1 | one\r\n\n3 | three", false},
		{"pairs", json.RawMessage(`{"files":[{"path":"a.txt","line_ranges":[[2,2]]},{"path":"d/x"}]}`), "File: a.txt\n2 | two\n\n---\n\nFile: d/x\n1 | x", false},
		{"start and end", call("path", "a.txt", "start_line", "2", "end_line", "3"), "File: a.txt\n2 | two\n3 | three", false},
		{"xml", call("args", "<file><path>a.txt</path><line_range>2-2</line_range></file>"), "File: a.txt\n2 | two", false},
		{"truncated", call("path", "long"), "~offset=2001 and limit=2000.\n\n   1 | line", false},
		{"past end", call("path", "long", "offset", 9000), "~past the end of the file, which has 5001 lines", false},
		{"binary", call("path", "bin"), "~binary file of 3 bytes", true},
		{"folder", call("path", "d"), "~use list_files", true},
		{"missing", call("path", "nope"), "~nope does not exist", true},
		{"through a file", call("path", "a.txt/x"), "~Error: ", true},
		{"one of two", json.RawMessage(`{"files":["nope","d/x"]}`), "~File: d/x\n1 | x", false},
		{"latin1", call("path", "bad"), "File: bad\n" + singleNote + "1 | café\n2 | ", false},
		{"image", call("path", "p.png"), "~image (image/png", false},
		{"outside", call("path", "../out.txt"), "~1 | outside", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ask, res := run(t, env, ReadFile(), tt.in)
			if part, ok := strings.CutPrefix(tt.want, "~"); ok {
				if !strings.Contains(res.Text, part) {
					t.Errorf("text is %.300q", res.Text)
				}
			} else if res.Text != tt.want {
				t.Error(cmp.Diff(tt.want, res.Text))
			}
			if res.IsError != tt.isErr {
				t.Errorf("IsError = %v: %s", res.IsError, res.Text)
			}
			if ask.Outside != (tt.name == "outside") {
				t.Errorf("Outside = %v", ask.Outside)
			}
			for _, f := range res.Files {
				name := f.Path
				if !filepath.IsAbs(name) {
					name = filepath.Join(root, name)
				}
				if f.Source != "read_tool" || f.Hash != workspace.HashOf([]byte(fixture.ReadFile(t, name))) {
					t.Errorf("touch %+v", f)
				}
			}
		})
	}
	_, res := run(t, env, ReadFile(), call("path", "p.png"))
	if len(res.Images) != 1 || str(res.Images[0], "type") != "image" {
		t.Errorf("images: %s", res.Images)
	}
}

func TestReadAsk(t *testing.T) {
	env, root := sandbox(t, "a", "x")
	p := plan(t, env, ReadFile(), call("path", "a", "offset", 5, "limit", 2))
	want := fmt.Sprintf(`{"tool":"readFile","path":"a","isOutsideWorkspace":false,"content":%q,"reason":"lines 5-6","startLine":5}`, filepath.Join(root, "a"))
	if got := p.Ask().Text; got != want {
		t.Error(cmp.Diff(want, got))
	}
	p = plan(t, env, ReadFile(), json.RawMessage(`{"files":["a","b"]}`))
	if d := cmp.Diff([]string{"tool", "batchFiles"}, keys(p.Ask().Text)); d != "" {
		t.Error(d)
	}
	p = plan(t, env, ReadFile(), json.RawMessage(`{"files":[{"path":"a","line_ranges":[[1,2],[4,5]]},{"path":"../b"}]}`))
	want = fmt.Sprintf(`{"tool":"readFile","batchFiles":[`+
		`{"path":"a","lineSnippet":"lines 1-2, lines 4-5","isOutsideWorkspace":false,"key":"a (lines 1-2, lines 4-5)","content":%q},`+
		`{"path":%[2]q,"lineSnippet":"","isOutsideWorkspace":true,"key":%[2]q,"content":%[2]q}]}`,
		filepath.Join(root, "a"), filepath.Join(filepath.Dir(root), "b"))
	if got := p.Ask().Text; got != want {
		t.Error(cmp.Diff(want, got))
	}
	p = plan(t, env, ReadFile(), call("path", "a"))
	want = fmt.Sprintf(`{"tool":"readFile","path":"a","isOutsideWorkspace":false,"content":%q,"reason":""}`, filepath.Join(root, "a"))
	if got := p.Ask().Text; got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestWriteFile(t *testing.T) {
	env, root := sandbox(t, "a.txt", "one\ntwo\n")
	ask, res := run(t, env, WriteToFile(), call("path", "a.txt", "content", "one\n2\n"))
	if d := cmp.Diff([]string{"tool", "path", "content", "isOutsideWorkspace", "isProtected", "diffStats"}, keys(ask.Text)); d != "" {
		t.Error(d)
	}
	if got := str([]byte(ask.Text), "content"); got != "@@ -1,2 +1,2 @@\n one\n-two\n+2" {
		t.Errorf("content %q", got)
	}
	if !strings.HasPrefix(ask.Diff, "--- a/a.txt\n+++ b/a.txt\n@@") {
		t.Errorf("diff %q", ask.Diff)
	}
	if d := cmp.Diff([]string{"path", "operation", "notice"}, keys(res.Text)); d != "" || str([]byte(res.Text), "operation") != "modified" {
		t.Error(res.Text, d)
	}
	if fixture.ReadFile(t, filepath.Join(root, "a.txt")) != "one\n2\n" || res.Files[0].Hash != workspace.HashOf([]byte("one\n2\n")) || res.Files[0].Source != "roo_edited" {
		t.Errorf("files %+v", res.Files)
	}

	ask, res = run(t, env, tool.Tool(WriteToFile()), call("path", "new/deep/b.txt", "content", "```go\nx\n```\n"))
	if str([]byte(ask.Text), "tool") != "newFileCreated" || str([]byte(res.Text), "operation") != "created" {
		t.Error(ask.Text, res.Text)
	}
	if got := fixture.ReadFile(t, filepath.Join(root, "new/deep/b.txt")); got != "x\n" {
		t.Errorf("content %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "new/deep/.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteRefusesChangedFile(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first string // content at the plan, "" = no file
		meddl func(name string) error
	}{
		{"changed", "old", func(n string) error { return os.WriteFile(n, []byte("theirs"), 0o600) }},
		{"created", "", func(n string) error { return os.WriteFile(n, []byte("theirs"), 0o600) }},
		{"removed", "old", os.Remove},
		{"now a folder", "", func(n string) error { return os.Mkdir(n, 0o700) }},
		{"now a link", "old", func(n string) error { os.Remove(n); return os.Symlink("elsewhere", n) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env, root := sandbox(t)
			name := filepath.Join(root, "f")
			if tt.first != "" {
				fixture.WriteFile(t, name, tt.first)
			}
			p := plan(t, env, WriteToFile(), call("path", "f", "content", "ours"))
			if err := tt.meddl(name); err != nil {
				t.Fatal(err)
			}
			res, err := p.Run(context.Background(), nil)
			if err != nil || !res.IsError {
				t.Fatalf("got %v %+v, want no error and res.IsError", err, res)
			}
			if data, _ := os.ReadFile(name); string(data) == "ours" {
				t.Error("it was overwritten")
			}
		})
	}
}

func TestEscapesAndRules(t *testing.T) {
	env, root := sandbox(t, ".rooignore", "secret/\n*.key\n", "secret/s", "hidden\n", "k.key", "hidden\n", "ok", "fine\n", "AGENTS.md", "x\n")
	outside := filepath.Join(root, "..", "outside")
	fixture.WriteFile(t, filepath.Join(outside, "f"), "out\n")
	for link, target := range map[string]string{"esc": outside, "alias": "secret/s", "loop": "loop", "dangling": filepath.Join(outside, "new")} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	diff := searchMark + "\nx\n" + middleMark + "\ny\n" + replaceMark
	for _, path := range []string{"secret/s", "secret", "SECRET/s", "secret/new", "k.key", "alias", ".rooignore", "ok/../k.key"} {
		for _, tl := range All() {
			p := plan(t, env, tl, call("path", path, "content", "x", "diff", diff, "regex", "hidden",
				"old_string", "hidden", "new_string", "x", "patch", "*** Begin Patch\n*** Add File: other\n+x\n*** Delete File: "+path+"\n*** End Patch"))
			res, err := p.Run(context.Background(), nil)
			if path == "SECRET/s" && err == nil && !p.Ask().Ignored {
				t.Errorf("%s %s: case", tl.Spec().Name, path)
			}
			if err != nil || !res.IsError || !p.Ask().Ignored || str([]byte(res.Text), "type") != "access_denied" || strings.Contains(res.Text+p.Ask().Text+p.Ask().Diff, "hidden\n") {
				t.Errorf("%s %s: %v %+v", tl.Spec().Name, path, err, res)
			}
		}
	}
	for _, path := range []string{"esc/f", "esc/new/x", "dangling"} {
		if p := plan(t, env, WriteToFile(), call("path", path, "content", "x")); !p.Ask().Outside {
			t.Errorf("%s is not outside", path)
		}
	}
	if p := plan(t, env, WriteToFile(), call("path", "AGENTS.md", "content", "y")); !p.Ask().Protected {
		t.Error("AGENTS.md is not protected")
	}
	if _, err := ReadFile().Plan(context.Background(), env, call("path", "loop")); err == nil {
		t.Error("a link to itself was resolved")
	}
	_, res := run(t, env, SearchFiles(), call("path", ".", "regex", "hidden|out|fine", "file_pattern", nil))
	if res.Text != "Found 1 result.\n\n# ok\n  1 | fine\n----" {
		t.Errorf("search shows %q", res.Text)
	}
	_, res = run(t, env, ListFiles(), call("path", ".", "recursive", true))
	if strings.Contains(res.Text, "secret") || strings.Contains(res.Text, "key") || !strings.Contains(res.Text, "\U0001F6E1\ufe0f AGENTS.md") {
		t.Errorf("list shows %q", res.Text)
	}
}

func TestApplyDiffTool(t *testing.T) {
	block := func(search, replace string) string {
		return searchMark + "\n-------\n" + search + "\n" + middleMark + "\n" + replace + "\n" + replaceMark + "\n"
	}
	env, root := sandbox(t, "a", "one\r\n  two\r\nthree", "é", "été\n")
	name := filepath.Join(root, "a")
	if err := os.Chmod(name, 0o754); err != nil {
		t.Fatal(err)
	}
	ask, res := run(t, env, ApplyDiff(), call("path", "a", "diff", block("two", "2\n2b")+block("nowhere", "x")))
	if got := fixture.ReadFile(t, name); got != "one\r\n  2\r\n  2b\r\nthree" {
		t.Errorf("content %q", got)
	}
	if d := cmp.Diff([]string{"tool", "path", "diff", "content", "originalContent", "diffStats", "isProtected"}, keys(ask.Text)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(res.Text, "<notice>1 of 2 blocks") || res.IsError {
		t.Error(res.Text)
	}
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o754 {
		t.Errorf("mode %v", info.Mode())
	}
	run(t, env, ApplyDiff(), call("path", "é", "diff", block("été", "hiver 😀")))
	if got := fixture.ReadFile(t, filepath.Join(root, "é")); got != "hiver 😀\n" {
		t.Errorf("content %q", got)
	}
	fixture.WriteFile(t, filepath.Join(root, "twice"), "x\ny\nx\n")
	for _, in := range []json.RawMessage{
		call("path", "missing", "diff", block("a", "b")), call("path", "a", "diff", "rubbish"),
		call("path", "a", "diff", block("nowhere", "b")), call("path", "twice", "diff", block("x", "b")),
	} {
		_, err := ApplyDiff().Plan(context.Background(), env, in)
		var wrong *tool.InputError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: got %v, want errors.As(err, &wrong)", in, err)
		}
	}
}

func TestInspect(t *testing.T) {
	diff := searchMark + "\nold line\n" + middleMark + "\nold line\nnew line\n" + replaceMark
	tests := []struct {
		name   string
		tl     tool.Tool
		in     json.RawMessage
		now    string // content after the crash, "-" = no file
		before map[string]string
		want   tool.Finding
	}{
		{"written", WriteToFile(), call("path", "f", "content", "new"), "new", nil, tool.Done},
		{"never made", WriteToFile(), call("path", "f", "content", "new"), "-", nil, tool.NotDone},
		{"still old", WriteToFile(), call("path", "f", "content", "new"), "old", map[string]string{"f": workspace.HashOf([]byte("old"))}, tool.NotDone},
		{"something else", WriteToFile(), call("path", "f", "content", "new"), "old", nil, tool.Unclear},
		{"removed since", WriteToFile(), call("path", "f", "content", "new"), "-", map[string]string{"f": workspace.HashOf([]byte("old"))}, tool.Unclear},
		{"applied", ApplyDiff(), call("path", "f", "diff", diff), "a\nold line\nnew line\n", nil, tool.Done},
		{"not applied", ApplyDiff(), call("path", "f", "diff", diff), "a\nold line\nb\n", nil, tool.NotDone},
		{"gone", ApplyDiff(), call("path", "f", "diff", diff), "-", nil, tool.Unclear},
		{"other text", ApplyDiff(), call("path", "f", "diff", diff), "quite other\n", nil, tool.Unclear},
		{"deleted lines", ApplyDiff(), call("path", "f", "diff", searchMark+"\nold line\n"+middleMark+"\n"+replaceMark), "a\nb\n", nil, tool.Done},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env, root := sandbox(t)
			if tt.now != "-" {
				fixture.WriteFile(t, filepath.Join(root, "f"), tt.now)
			}
			got, err := tt.tl.(tool.Inspector).Inspect(context.Background(), env, tt.in, tt.before)
			if err != nil || got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestListFiles(t *testing.T) {
	env, root := sandbox(t, "b10", "", "b9", "", "A/x", "", "A/.hid/y", "", "node_modules/m/z", "", ".git/config", "", "A/build/o", "", "A/.gitignore", "build/\n", ".gitignore", "*.tmp\n!keep.tmp\n", "q.tmp", "", "keep.tmp", "")
	_, res := run(t, env, ListFiles(), call("path", ".", "recursive", "true"))
	want := ".gitignore\nb9\nb10\nkeep.tmp\nA/\nA/.gitignore\nA/x\nA/.hid/\nnode_modules/"
	if res.Text != want {
		t.Error(cmp.Diff(want, res.Text))
	}
	ask, res := run(t, env, ListFiles(), call("path", "A", "recursive", false))
	if res.Text != ".gitignore\nx\n.hid/" || str([]byte(ask.Text), "tool") != "listFilesTopLevel" || str([]byte(ask.Text), "content") != res.Text {
		t.Errorf(`got %q %s, want res.Text = ".gitignore\nx\n.hid/" and str([]byte(ask.Text), "tool") = "listFilesTopLevel" and str([]byte(ask.Text), "content") = res.Text`,
			res.Text, ask.Text)
	}
	for i := range 250 {
		fixture.WriteFile(t, filepath.Join(root, "many", fmt.Sprint("f", i)), "")
	}
	_, res = run(t, env, ListFiles(), call("path", "many"))
	if n := strings.Count(res.Text, "\nf"); n != 199 || !strings.Contains(res.Text, "truncated") {
		t.Errorf("%d lines", n)
	}
	if _, res = run(t, env, ListFiles(), call("path", "/")); res.Text != "/" {
		t.Errorf("the root lists %q", res.Text)
	}
	if _, res = run(t, env, ListFiles(), call("path", "b9")); !res.IsError {
		t.Error("a file was listed")
	}
}

func TestSearchFiles(t *testing.T) {
	env, _ := sandbox(t, "a.go", "one\nTwo\nthree\nfour\nfive\ntwo\n", "b.txt", "two\r\n", "d/c.go", "x\ntwo", "bin", "two\x00", ".h", "two\n", "node_modules/n.go", "two\n", "big", strings.Repeat("hit\n\n\n\n", 400), "dense", strings.Repeat("every line\n", 5000))
	tests := []struct{ regex, glob, want string }{
		{"two", "*.go", "Found 2 results.\n\n# a.go\n  5 | five\n  6 | two\n----\n\n# d/c.go\n  1 | x\n  2 | two\n----"},
		{"(?i)^two$", "*.{go,txt}", "Found 4 results.\n\n# a.go\n  1 | one\n  2 | Two\n  3 | three\n----\n  5 | five\n  6 | two\n----\n\n# b.txt\n  1 | two\n----\n\n# d/c.go\n  1 | x\n  2 | two\n----"},
		{"two", "d/**", "Found 1 result.\n\n# d/c.go\n  1 | x\n  2 | two\n----"},
		{"absent", "", "Found 0 results."},
	}
	for _, tt := range tests {
		ask, res := run(t, env, SearchFiles(), call("path", ".", "regex", tt.regex, "file_pattern", tt.glob))
		if res.Text != tt.want {
			t.Errorf("%s: %s", tt.regex, cmp.Diff(tt.want, res.Text))
		}
		want := []string{"tool", "path", "regex", "filePattern", "isOutsideWorkspace", "content"}
		if tt.glob == "" {
			want = append(want[:3:3], want[4:]...)
		}
		if d := cmp.Diff(want, keys(ask.Text)); d != "" {
			t.Error(d)
		}
	}
	_, res := run(t, env, SearchFiles(), call("path", "big", "regex", "hit"))
	if !strings.HasPrefix(res.Text, "Showing first 300 of 300+") || strings.Count(res.Text, "----") != 300 {
		t.Errorf("%.100q %d", res.Text, strings.Count(res.Text, "----"))
	}
	_, res = run(t, env, SearchFiles(), call("path", "dense", "regex", "every"))
	if n := strings.Count(res.Text, "every"); n != 1500 || !strings.Contains(res.Text, "Cut after 1500 lines") {
		t.Errorf("%d lines", n)
	}
	var wrong *tool.InputError
	if _, err := SearchFiles().Plan(context.Background(), env, call("path", ".", "regex", "(?=x)")); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	env, root := sandbox(t, "a", "x\n")
	ctx, cancel := context.WithCancel(context.Background())
	diff := searchMark + "\nx\n" + middleMark + "\ny\n" + replaceMark
	in := call("path", "a", "content", "y", "diff", diff)
	var plans []tool.Plan
	for _, tl := range []tool.Tool{ReadFile(), WriteToFile(), ApplyDiff()} {
		plans = append(plans, plan(t, env, tl, in))
	}
	cancel()
	for _, p := range plans {
		if _, err := p.Run(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want errors.Is(err, context.Canceled)", p.Ask().Title, err)
		}
	}
	for _, tl := range []tool.Tool{ListFiles(), SearchFiles()} {
		if _, err := tl.Plan(ctx, env, call("path", ".", "regex", "x")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want errors.Is(err, context.Canceled)", tl.Spec().Name, err)
		}
	}
	if fixture.ReadFile(t, filepath.Join(root, "a")) != "x\n" {
		t.Error("a cancelled write wrote")
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A folder with many files under very many rules is given up, too.
func TestCancelAmongManyRules(t *testing.T) {
	env, root := sandbox(t, ".gitignore", strings.Repeat("b*\n", 1<<18))
	for i := range 190 {
		fixture.WriteFile(t, filepath.Join(root, fmt.Sprint("f", i)), "")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := ListFiles().Plan(ctx, env, call("path", ".", "recursive", false)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

// raw gives a member's JSON, "" when there is none.
func raw(obj, key string) string {
	v, _ := esjson.Get([]byte(obj), key)
	return string(v)
}
