package complete

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(list []api.Completion) string {
	var out []string
	for _, w := range list {
		out = append(out, w.Text)
	}
	return strings.Join(out, " ")
}

// A file that no mention can name is not offered behind an @.
func TestFilesThatNoMentionCanName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a good one": "", "a\ttab": "", "a\u00a0blank": "", "a blank at the end ": "", "a dot.": "", "a\\backslash": "", "a.b": "",
	})
	var f Files
	if got, want := texts(f.Mentions(t.Context(), dir, "/a", time.Now())), `@/a.b @/a\ good\ one`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The files behind an @ are those of the workspace, without what its rules hide, and none behind a link.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "", "cli/chat/editor.go": "", "cli/chat/keys.txt": "", "out/a.bin": "", "secret/key.pem": "", ".env": "", ".github/ci.yml": "",
		"node/x.js": "", "a\x1b[2Jb": "", ".gitignore": "out/\nnode/\n", ".rooignore": "secret/\n", ".git/config": "",
		"cli/.gitignore": "*.o\n", "cli/chat/editor.o": "", "my file": "",
	})
	if err := os.Symlink("/", filepath.Join(dir, "slash")); err != nil {
		t.Fatal(err)
	}
	for begun, want := range map[string]string{
		"":          "cli/ main.go my file slash",
		"ed":        "cli/chat/editor.go",
		"ceg":       "cli/chat/editor.go",
		"cli/":      "cli/chat/",
		"cli/chat/": "cli/chat/keys.txt cli/chat/editor.go",
		".e":        ".env .gitignore cli/.gitignore",
		"out/":      "", "secret/": "", "../": "", "slash/": "", "key.pem": "", "/etc/pass": "",
	} {
		var f Files
		if got := texts(f.Find(t.Context(), dir, begun, time.Now())); got != want {
			t.Errorf("%q: got %s, want %s", begun, got, want)
		}
	}
	var f Files
	for begun, want := range map[string]string{
		"":     "@problems @git-changes @/cli/ @/main.go @/my\\ file @/slash",
		"prob": "@problems",
		"my":   "@/my\\ file", `/my\ f`: "@/my\\ file",
		"/ma": "@/main.go",
	} {
		if got := texts(f.Mentions(t.Context(), dir, begun, time.Now())); got != want {
			t.Errorf("@%s: got %s, want %s", begun, got, want)
		}
	}
	for _, none := range []string{"", filepath.Join(dir, "none"), filepath.Join(dir, "main.go")} {
		if got := f.Find(t.Context(), none, "", time.Now()); len(got) > 0 {
			t.Errorf("%q: got %v, want nothing", none, got)
		}
	}
}

// A look counts for a moment, and only a few are kept.
func TestLooks(t *testing.T) {
	t.Parallel()
	var f Files
	now := time.Now()
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": ""})
	f.Find(t.Context(), dir, "", now)
	write(t, dir, map[string]string{"b": ""})
	if got := texts(f.Find(t.Context(), dir, "", now.Add(time.Second))); got != "a" {
		t.Errorf("a moment later: got %s, want a", got)
	}
	if got := texts(f.Find(t.Context(), dir, "", now.Add(time.Minute))); got != "a b" {
		t.Errorf("a minute later: got %s, want a b", got)
	}
	for i := range 2 * listsKept {
		other := t.TempDir()
		f.Find(t.Context(), other, "", now.Add(time.Duration(i)*time.Second))
	}
	if len(f.lists) == 0 || len(f.lists) > listsKept {
		t.Errorf("got %d looks, want at least one and at most %d", len(f.lists), listsKept)
	}
}

// Commands and skills say who defined them: those of a workspace are nobody's word.
func TestCommands(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		".roo/commands/deploy.md":        "---\ndescription: \"deploy\\u202e it\"\n---\nrun it",
		".roo/skills/paint/SKILL.md":     "---\nname: paint\ndescription: paints\n---\nx",
		".roo/commands/mine.md":          "of the project",
		".roo/skills/deploy/SKILL.md":    "---\nname: deploy\ndescription: another\n---\nx",
		".roo/skills-ask/think/SKILL.md": "---\nname: think\ndescription: thinks\n---\nx",
	})
	write(t, home, map[string]string{".roo/commands/greet.md": "hello"})
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := Commands(t.Context(), slash.Set{Workspace: w, Home: home}, skill.Set{Workspace: w.Root(), Home: home}, "code", "")
	var got []string
	for _, c := range list {
		got = append(got, c.Text+":"+c.From)
		if strings.ContainsRune(c.About, '\u202e') {
			t.Errorf("%s: the description %q turns text around", c.Text, c.About)
		}
	}
	slices.Sort(got)
	if want := "deploy:project greet:global init:builtin mine:project paint:project"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
	if got := texts(Commands(t.Context(), slash.Set{Workspace: w}, skill.Set{}, "", "dpl")); got != "deploy" {
		t.Errorf("got %s, want deploy", got)
	}
}

// BenchmarkFiles completes in a workspace of 20,000 files: the first key reads the disk, the next ones do not.
func BenchmarkFiles(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{}
	for i := range 20_000 {
		files[fmt.Sprintf("pkg%02d/sub%02d/file%05d.go", i%40, i%50, i)] = ""
	}
	write(b, dir, files)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			var f Files
			f.Find(b.Context(), dir, "p7f199", time.Now())
		}
	})
	b.Run("next", func(b *testing.B) {
		var f Files
		now := time.Now()
		for b.Loop() {
			f.Find(b.Context(), dir, "p7f199", now)
		}
	})
}
