package filetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

func TestByteOrderMarkStays(t *testing.T) {
	for _, tt := range []struct{ old, search, replace, want string }{
		{"\ufeffusing System;\r\nclass A {}\r\n", "using System;", "using System.IO;", "\ufeffusing System.IO;\r\nclass A {}\r\n"},
		{"\ufeffusing System;\n", "\ufeffusing System;", "\ufeffusing X;", "\ufeffusing X;\n"},
		{"\ufeffa\nb\n", "b", "c", "\ufeffa\nc\n"},
		{"\ufeffa\nb\n", "a", "", "\ufeffb\n"},
	} {
		env, root := sandbox(t, "f", tt.old)
		run(t, env, ApplyDiff(), call("path", "f", "diff", diffBlock(0, tt.search, tt.replace)))
		if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.old, got, tt.want)
		}
	}
}

func TestWhatCannotBeChangedByLines(t *testing.T) {
	env, root := sandbox(t, "mixed", "caf\xe9 é\nx\n", "dir/x", "", "secret", "x\n", ".rooignore", "secret\n", "AGENTS.md", "x\n", "huge", "")
	if err := os.Truncate(filepath.Join(root, "huge"), MaxEdit+1); err != nil {
		t.Fatal(err)
	}
	diff := diffBlock(0, "x", "y")
	for path, want := range map[string]string{
		"mixed":   "mixed is not text in UTF-8",
		"dir":     "dir is not a file",
		"missing": "missing does not exist. Use list_files",
		"huge":    fmt.Sprintf("huge is too large: %d bytes, the limit is %d", MaxEdit+1, MaxEdit),
		"a\x1bb":  `"a\x1bb" does not exist`,
	} {
		_, err := ApplyDiff().Plan(context.Background(), env, call("path", path, "diff", diff))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	p := plan(t, env, ApplyDiff(), call("path", "secret", "diff", diff))
	if a := p.Ask(); !a.Ignored || strings.Contains(a.Text, `"originalContent":"x`) || a.Diff != "" {
		t.Errorf("what is hidden is shown: %+v", a)
	}
	if a := plan(t, env, ApplyDiff(), call("path", "AGENTS.md", "diff", diff)).Ask(); !a.Protected || raw(a.Text, "isProtected") != "true" {
		t.Errorf("not protected: %+v", a)
	}
}

// A change of which a part fails is made in part, and both sides say which.
func TestPartOfAChange(t *testing.T) {
	env, root := sandbox(t, "f", "a\nb\nc\n")
	_, res := run(t, env, ApplyDiff(), call("path", "f", "diff", diffBlock(0, "a", "A")+diffBlock(0, "nowhere", "x")+diffBlock(0, "c", "C")))
	if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != "A\nb\nC\n" {
		t.Errorf("the file holds %q", got)
	}
	for _, want := range []string{"<notice>2 of 3 blocks were applied. These failed:\n\n", "Search part:\nnowhere</notice>"} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is missing in %q", want, res.Text)
		}
	}
	if res.IsError || len(res.Files) != 1 || res.Files[0].Hash != workspace.HashOf([]byte("A\nb\nC\n")) {
		t.Errorf("got %+v, want not res.IsError and len(res.Files) = 1 and res.Files[0].Hash = workspace.HashOf([]byte(\"A\\nb\\nC\\n\"))",
			res)
	}
}

func ExampleApplyDiff() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "greet.txt")
	_ = os.WriteFile(name, []byte("Hello\nworld\n"), 0o600)
	ws, err := workspace.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	diff := "<<<<<<< SEARCH\n:start_line:2\n-------\nworld\n=======\nmoon\n>>>>>>> REPLACE"
	p, err := ApplyDiff().Plan(ctx, tool.Env{Workspace: ws}, call("path", "greet.txt", "diff", diff))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := p.Run(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	data, _ := os.ReadFile(name)
	fmt.Print(string(data))
	// Output:
	// Hello
	// moon
}

// diffBlock writes one block of a diff; start 0 gives it no line hint.
func diffBlock(start int, search, replace string) string {
	hint := ""
	if start > 0 {
		hint = fmt.Sprintf(":start_line:%d\n-------\n", start)
	}
	if search != "" {
		search += "\n"
	}
	if replace != "" {
		replace += "\n"
	}
	return searchMark + "\n" + hint + search + middleMark + "\n" + replace + replaceMark + "\n"
}

// The markers of a diff.
const (
	searchMark  = "<<<<<<< SEARCH"
	middleMark  = "======="
	replaceMark = ">>>>>>> REPLACE"
)
