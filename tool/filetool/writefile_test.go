package filetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// content gives texts as models write them, with what is easily spoiled.
func content() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"word", " ", "\t", "\n", "\r\n", "\n\n", "é", "😀", "\ufeff", "\u2028", "=======", "<<<<<<< SEARCH", "\\", "\"", "{", "1 | x", "\x00", "```"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 30), func(p []string) string { return strings.Join(p, "") })
}

func TestWriteGivesTheFileThatWasAskedFor(t *testing.T) {
	env, root := sandbox(t)
	name := filepath.Join(root, "f")
	rapid.Check(t, func(r *rapid.T) {
		old, fresh := content().Draw(r, "old"), content().Draw(r, "new")
		there := rapid.Bool().Draw(r, "there")
		os.Remove(name)
		if there {
			fixture.WriteFile(t, name, old)
		}
		ask, res := run(t, env, WriteToFile(), call("path", "f", "content", fresh))
		want := stripFence(fresh)
		if there {
			want = likeBefore(want, old)
		}
		if got := fixture.ReadFile(t, name); got != want {
			r.Fatalf("the file holds %q, want %q", got, want)
		}
		operation := map[bool]string{true: "modified", false: "created"}[there]
		if str([]byte(res.Text), "operation") != operation || res.IsError {
			r.Fatalf("%s: got %s, want str([]byte(res.Text), \"operation\") = operation and not res.IsError",
				operation, res.Text)
		}
		before := ""
		if there {
			before = workspace.HashOf([]byte(old))
		}
		if d := cmp.Diff(map[string]string{"f": planned(before, workspace.HashOf([]byte(want)))}, ask.Before); d != "" {
			r.Fatal(d)
		}
		if d := cmp.Diff(workspace.HashOf([]byte(want)), res.Files[0].Hash); d != "" {
			r.Fatal(d)
		}
		if !utf8.ValidString(ask.Diff) || !utf8.ValidString(ask.Text) {
			r.Fatalf("the question is not text: %q", ask.Diff)
		}
	})
}

// Whoever changes the file between plan and run keeps the change, and the answer
// says so. The one who planned on what is there wins.
func TestAPlanForOtherContentDoesNotWrite(t *testing.T) {
	env, root := sandbox(t)
	name := filepath.Join(root, "f")
	one := func(search, replace string) string {
		return searchMark + "\n" + search + "\n" + middleMark + "\n" + replace + "\n" + replaceMark
	}
	rapid.Check(t, func(r *rapid.T) {
		old := "first\nsecond\n" + content().Draw(r, "old")
		theirs := content().Draw(r, "theirs")
		fixture.WriteFile(t, name, old)
		p, err := WriteToFile().Plan(context.Background(), env, call("path", "f", "content", "ours"))
		if rapid.Bool().Draw(r, "by lines") && isText(old) {
			p, err = ApplyDiff().Plan(context.Background(), env, call("path", "f", "diff", one("first\nsecond", "ours")))
		}
		if err != nil {
			r.Fatal(err)
		}
		fixture.WriteFile(t, name, theirs)
		res, err := p.Run(context.Background(), nil)
		if err != nil {
			r.Fatal(err)
		}
		if same := theirs == old; res.IsError == same {
			r.Fatalf("changed from %q to %q: %+v", old, theirs, res)
		}
		if res.IsError && (fixture.ReadFile(t, name) != theirs || len(res.Files) > 0 || !strings.Contains(res.Text, "after this change was prepared")) {
			r.Fatalf("their change became %q: %+v", fixture.ReadFile(t, name), res)
		}
	})
}

func TestOfManyPlansForOneStateOneWrites(t *testing.T) {
	env, root := sandbox(t, "f", "base\n")
	var plans []tool.Plan
	for i := range 8 {
		plans = append(plans, plan(t, env, WriteToFile(), call("path", "f", "content", fmt.Sprintf("writer %d\n", i))))
	}
	results := make([]tool.Result, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans[:4] { // at once
		wg.Add(1)
		go func() {
			defer wg.Done()
			var err error
			if results[i], err = p.Run(context.Background(), nil); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	for i, p := range plans[4:] { // and afterwards
		res, err := p.Run(context.Background(), nil)
		if err != nil || !res.IsError {
			t.Errorf("plan %d wrote on another's result: %+v, %v", i+4, res, err)
		}
	}
	got := fixture.ReadFile(t, filepath.Join(root, "f"))
	wrote := 0
	for i, res := range results[:4] {
		if !res.IsError {
			wrote++
		}
		if res.IsError && got == fmt.Sprintf("writer %d\n", i) {
			t.Errorf("writer %d was told that it wrote nothing", i)
		}
	}
	if wrote != 1 {
		t.Errorf("%d of them wrote", wrote)
	}
}

func TestWriteErrorsInWords(t *testing.T) {
	env, root := sandbox(t, "dir/x", "", "file", "x\n", "ro", "x\n")
	if err := os.Chmod(filepath.Join(root, "ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, mistake, result string }{
		{"dir", "dir is not a file. If it is a folder, use list_files.", ""},
		{".", "ws is not a file. If it is a folder, use list_files.", ""},
		{"/dev/null", "/dev/null is not a file. If it is a folder, use list_files.", ""},
		{"file/below", "file/below cannot be read: ", ""},
		{strings.Repeat("n", 300), "not a usable path: a name longer than 255 bytes", ""},
		{"ro", "", "Error: nothing was written: write ro: the file is read-only: permission denied"},
	} {
		p, err := WriteToFile().Plan(context.Background(), env, call("path", tt.path, "content", "y"))
		var wrong *tool.InputError
		switch {
		case tt.mistake != "" && (!errors.As(err, &wrong) || !strings.Contains(wrong.Reason, tt.mistake)):
			t.Errorf("%.20s: %v, want %q", tt.path, err, tt.mistake)
		case tt.mistake == "":
			res, err := p.Run(context.Background(), nil)
			if err != nil || !res.IsError || res.Text != tt.result {
				t.Errorf("%s: got %+v, %v, want no error and res.IsError and res.Text = tt.result", tt.path, res, err)
			}
		}
	}
	if got := fixture.ReadFile(t, filepath.Join(root, "ro")); got != "x\n" {
		t.Errorf("the read-only file holds %q", got)
	}
}

// A file that became the model's business meanwhile: hidden, or behind a link.
func TestWriteIsJudgedAgain(t *testing.T) {
	for name, meddle := range map[string]func(root string) error{
		"hidden since": func(root string) error {
			return os.WriteFile(filepath.Join(root, ".rooignore"), []byte("d/\n"), 0o600)
		},
		"folder is a link out": func(root string) error {
			return errors.Join(os.RemoveAll(filepath.Join(root, "d")), os.Symlink("../outside", filepath.Join(root, "d")))
		},
		"folder is a link to .roo": func(root string) error {
			return errors.Join(os.RemoveAll(filepath.Join(root, "d")), os.Symlink(".roo", filepath.Join(root, "d")))
		},
		"rules cannot be read": func(root string) error { return os.Mkdir(filepath.Join(root, ".rooignore"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "d/f", "x\n", ".roo/f", "x\n")
			outside := filepath.Join(root, "..", "outside", "f")
			fixture.WriteFile(t, outside, "x\n")
			w := plan(t, env, WriteToFile(), call("path", "d/f", "content", "y"))
			if err := meddle(root); err != nil {
				t.Fatal(err)
			}
			res, err := w.Run(context.Background(), nil)
			if err == nil && !res.IsError || len(res.Files) > 0 {
				t.Errorf("got %+v, %v, want (an error or res.IsError) and len(res.Files) <= 0", res, err)
			}
			for _, f := range []string{outside, filepath.Join(root, "d/f"), filepath.Join(root, ".roo/f")} {
				if got := fixture.ReadFile(t, f); got != "x\n" {
					t.Errorf("%s holds %q", f, got)
				}
			}
		})
	}
}

func TestDiffThatIsShown(t *testing.T) {
	env, root := sandbox(t)
	for _, tt := range []struct {
		name, old, fresh string // old "-" = no file
		want             string
		stats            string
	}{
		{"f", "-", "a\nb\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", `{"added":2,"removed":0}`},
		{"f", "a\nb\n", "a\nc\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", `{"added":1,"removed":1}`},
		{"f", "a\n", "a", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", `{"added":1,"removed":1}`},
		{"f", "a\n", "a\n", "", ""},
		{"f", "-", "", "", ""},
		{"f", "\x89PNG\x00\xff", "text\n", "--- a/f\n+++ b/f\n@@ not text: 6 bytes before, 5 after @@\n", ""},
		{"f", "caf\xe9\n", "cafè\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-café\n+cafè\n", `{"added":1,"removed":1}`},
		{"two\n+++ b/other", "a\n", "b\n", "--- a/\"two\\n+++ b/other\"\n+++ b/\"two\\n+++ b/other\"\n@@ -1 +1 @@\n-a\n+b\n", `{"added":1,"removed":1}`},
	} {
		name := filepath.Join(root, tt.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		os.Remove(name)
		if tt.old != "-" {
			fixture.WriteFile(t, name, tt.old)
		}
		ask := plan(t, env, WriteToFile(), call("path", tt.name, "content", tt.fresh)).Ask()
		if ask.Diff != tt.want {
			t.Errorf("%q to %q: %s", tt.old, tt.fresh, cmp.Diff(tt.want, ask.Diff))
		}
		if got := raw(ask.Text, "diffStats"); got != tt.stats {
			t.Errorf("%q to %q: stats %s, want %s", tt.old, tt.fresh, got, tt.stats)
		}
	}
}

// A file that is too large to be looked at can still be replaced, by who says so.
func TestReplacingAHugeFile(t *testing.T) {
	env, root := sandbox(t, "f", "")
	name := filepath.Join(root, "f")
	if err := os.Truncate(name, MaxEdit+1); err != nil {
		t.Skip(err)
	}
	p := plan(t, env, WriteToFile(), call("path", "f", "content", "small\n"))
	if want := fmt.Sprintf("too large for a diff: %d bytes before, 6 after", MaxEdit+1); !strings.Contains(p.Ask().Diff, want) || str([]byte(p.Ask().Text), "tool") != "editedExistingFile" {
		t.Errorf("the question is %q %q", p.Ask().Diff, p.Ask().Text)
	}
	fixture.WriteFile(t, name, "changed meanwhile")
	if res, err := p.Run(context.Background(), nil); err != nil || !res.IsError {
		t.Errorf("it was not looked at again: %+v, %v", res, err)
	}
	if err := os.Truncate(name, MaxEdit+1); err != nil {
		t.Fatal(err)
	}
	if _, res := run(t, env, WriteToFile(), call("path", "f", "content", "small\n")); res.IsError || fixture.ReadFile(t, name) != "small\n" {
		t.Errorf("got %+v, want not res.IsError and fixture.ReadFile(t, name) = \"small\\n\"", res)
	}
}

func ExampleWriteToFile() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	ws, err := workspace.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	p, err := WriteToFile().Plan(ctx, tool.Env{Workspace: ws}, []byte(`{"path":"src/hello.txt","content":"Hello\n"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p.Ask().Diff) // what a person is asked
	res, err := p.Run(ctx, nil)
	fmt.Println(res.Files[0].Path, res.IsError, err)
	// Output:
	// --- /dev/null
	// +++ b/src/hello.txt
	// @@ -0,0 +1 @@
	// +Hello
	// src/hello.txt false <nil>
}

func TestStripFence(t *testing.T) {
	for in, want := range map[string]string{
		"x\n": "x\n", "```go\nx\n```": "x\n", "```\nx\n```\n": "x\n", "a\n```\nb\n```\nc\n": "a\n```\nb\n```\nc\n", "": "", "```": "", "no ```": "no ```",
		"# T\n```sh\nls\n```\n": "# T\n```sh\nls\n```\n", "```sh\nls\n```\ntext\n": "```sh\nls\n```\ntext\n", "```\na\n```\nb\n```\nc\n```\n": "```\na\n```\nb\n```\nc\n```\n",
		"```md\n# T\n```sh\nls\n```\n```\n": "# T\n```sh\nls\n```\n", "```go\nx\n": "x\n", "x\n```": "x\n", "# T\n```sh\nls\n```\n```\n": "# T\n```sh\nls\n```\n", "```md\n# T\n```sh\nls\n```\n": "# T\n```sh\nls\n```\n",
	} {
		if got := stripFence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
