package filetool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/workspace"
)

// What a person shows is what read_file would show, and is known by the same hash.
func TestShow(t *testing.T) {
	dir := t.TempDir()
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		content, want string
		image, binary bool
	}{
		"a.txt":    {content: "one\ntwo", want: "1 | one\n2 | two"},
		"long":     {content: strings.Repeat("x\n", 3000), want: "   1 | x\n"},
		"bad.txt":  {content: "caf\xe9", want: singleNote + "1 | café"},
		"n.ipynb":  {content: `{"cells":[{"cell_type":"code","source":["print(1)\n"],"outputs":[]}]}`, want: notebookNote},
		"no.ipynb": {content: "{", want: "1 | {"},
		"x.bin":    {content: "a\x00b", binary: true},
		"x.png":    {content: "\x89PNG....", image: true},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := w.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		s, problem, err := Show(t.Context(), w, p)
		if err != nil || problem != "" || !strings.HasPrefix(s.Text, tt.want) || (s.Image != nil) != tt.image || s.Binary != tt.binary {
			t.Errorf("%s: got %+v, %q, %v, want no error and problem = \"\" and strings.HasPrefix(s.Text, tt.want) and (s.Image != nil) = tt.image and s.Binary = tt.binary",
				name, s, problem, err)
		}
		if s.Truncated != (name == "long") || s.Touch.Path != name || s.Touch.Source != ShowSource || !tt.binary && s.Touch.Hash != workspace.HashOf([]byte(tt.content)) {
			t.Errorf("%s: got %+v, want s.Truncated = (name == \"long\") and s.Touch.Path = name and s.Touch.Source = ShowSource and (tt.binary or s.Touch.Hash = workspace.HashOf([]byte(tt.content)))",
				name, s)
		}
	}
	for _, name := range []string{"none", "."} {
		p, err := w.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, problem, err := Show(t.Context(), w, p); problem == "" || err != nil || s.Text != "" {
			t.Errorf(`%s: got %+v, %v, want problem != "" and no error and s.Text = ""`, name, s, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := w.Resolve("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Show(ctx, w, p); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled look goes on: %v", err)
	}
}
