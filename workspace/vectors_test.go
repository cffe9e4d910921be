package workspace

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// TestVectorsRooignore compares with Roo's own verdicts. Ours by choice, each with its
// verdict from git or from the line: rules with a negated class and folders that exist,
// where git judges; .git, which is protected; commands whose words Roo cannot take apart.
func TestVectorsRooignore(t *testing.T) {
	repo := filepath.Join(t.TempDir(), ".git")
	conformance.Run(t, "rooignore", func(t *testing.T, c conformance.Case) (ours bool) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		place := func(raw []byte) conformance.Value { return bytes.ReplaceAll(raw, []byte("${CWD}"), []byte(root)) }
		in, want := place(c.Input), place(c.Want)
		w := rooignoreWorkspace(t, root, in)
		git := &gitRules{repo: repo, root: root, text: in.Str("rooignore")}
		negates := strings.Contains(git.text, "[!") || strings.Contains(git.text, "[^")

		access, protected := want.Get("access").List(), want.Get("protected").List()
		var filtered, wantFiltered []string
		for i, p := range in.Get("paths").Strings() {
			got, err := w.Resolve(p)
			if err != nil {
				t.Errorf("resolve %q: %v", p, err)
				continue
			}
			roo := string(access[i]) == "true"
			may := roo
			named, _ := git.below(git.absolute(p))
			real, dir := git.below(git.real(p))
			if negates || dir && real != "." {
				may = !git.hides(t, p)
			}
			guarded := string(protected[i]) == "true" || inGit(named) || inGit(real)
			ours = ours || may != roo || guarded != (string(protected[i]) == "true")
			if may == got.Ignored {
				t.Errorf("access of %q is %v, want %v", p, !got.Ignored, may)
			}
			if guarded != got.Protected {
				t.Errorf("protected of %q is %v", p, got.Protected)
			}
			if may {
				wantFiltered = append(wantFiltered, p)
			}
			if !got.Ignored {
				filtered = append(filtered, p)
			}
		}
		if d := cmp.Diff(wantFiltered, filtered); d != "" {
			t.Errorf("filtered: %s", d)
		}
		blocked := want.Get("blocked_by_command").Strings() // null is ""
		for i, line := range in.Get("commands").Strings() {
			got, err := w.BlockedWord(line)
			if err != nil {
				t.Fatal(err)
			}
			wanted := blocked[i]
			if negates || wanted == "" && git.text != "" && beyondRoo(line) {
				wanted = git.blockedWord(t, line)
			}
			ours = ours || wanted != blocked[i]
			if got != wanted {
				t.Errorf("command %q is blocked by %q, want %q", line, got, wanted)
			}
		}
		if strings.Contains(git.text+"\n", "/\n") && in.Get("symlinks") == nil {
			compareFolders(t, repo, git.text, in.Get("paths").Strings())
		}
		return ours
	})
}

// inGit: a path inside the workspace leads into a repository's own folder.
func inGit(rel string) bool {
	return !outside(rel) && slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(name string) bool { return strings.EqualFold(name, ".git") })
}

// beyondRoo: Roo takes a line apart at blanks, knows a program by its bare name and a
// word as a relative path.
func beyondRoo(line string) bool {
	return strings.ContainsAny(line, "\"'|;&<>`()\\") || slices.ContainsFunc(strings.Fields(line), filepath.IsAbs)
}

// gitRules is git as the judge of a .rooignore file of a workspace. The repository is
// elsewhere.
type gitRules struct{ repo, root, text string }

// real is where a path leads, as far as it exists.
func (g *gitRules) real(p string) string {
	p = g.absolute(p)
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		p, rest = filepath.Dir(p), filepath.Join(filepath.Base(p), rest)
	}
}

func (g *gitRules) absolute(p string) string {
	if !filepath.IsAbs(p) {
		p = filepath.Join(g.root, p)
	}
	return filepath.Clean(p)
}

// below is a path as it lies in the workspace, and whether it is a folder that exists.
func (g *gitRules) below(p string) (rel string, dir bool) {
	rel, err := filepath.Rel(g.root, p)
	if err != nil {
		return "..", false
	}
	info, err := os.Stat(p)
	return rel, err == nil && info.IsDir()
}

func outside(rel string) bool { return rel == ".." || strings.HasPrefix(filepath.ToSlash(rel), "../") }

func (g *gitRules) hides(t *testing.T, p string) bool {
	t.Helper()
	rel, _ := g.below(g.real(p))
	if rel == "." || outside(rel) || g.text == "" {
		return false
	}
	return rel == IgnoreFile || g.hidden(t, rel)[rel]
}

// hidden gives those of some paths that git ignores.
func (g *gitRules) hidden(t *testing.T, rels ...string) map[string]bool {
	t.Helper()
	if _, err := os.Stat(g.repo); err != nil {
		g.run(t, "", "init", "-q", filepath.Dir(g.repo))
	}
	fixture.WriteFile(t, filepath.Join(g.repo, "info/exclude"), g.text+"\n"+IgnoreFile)
	all := map[string]bool{}
	for _, rel := range strings.Split(g.run(t, strings.Join(rels, "\x00"), "--git-dir", g.repo, "--work-tree", g.root, "-c", "core.ignorecase=true", "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
		all[rel] = true
	}
	return all
}

func (g *gitRules) run(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.root
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "HOME="+g.root)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// compareFolders makes a case's paths folders in a workspace with the same rules, some of
// which hold for folders alone. Roo never asks that: it judges a path by its name.
func compareFolders(t *testing.T, repo, text string, paths []string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(root, IgnoreFile), text)
	w, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	git := &gitRules{repo: repo, root: root, text: text}
	var rels []string
	for _, p := range paths {
		rel := filepath.Clean(p)
		if filepath.IsAbs(p) || outside(rel) || rel == "." || rel == IgnoreFile || inGit(rel) {
			continue
		}
		rels = append(rels, rel)
		if err := os.MkdirAll(filepath.Join(root, rel), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if len(rels) == 0 {
		return
	}
	want := git.hidden(t, rels...)
	for _, rel := range rels {
		if got, err := w.Resolve(rel); err != nil || got.Ignored != want[rel] {
			t.Errorf("the folder %q is hidden: %v, want %v (%v)", rel, got.Ignored, want[rel], err)
		}
	}
}

// blockedWord takes a line apart at blanks, quotes and separators.
func (g *gitRules) blockedWord(t *testing.T, line string) string {
	t.Helper()
	line = strings.NewReplacer(`"`, "", "'", "", "<", " < ").Replace(line)
	for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("|;&>()`\n", r) }) {
		words := strings.Fields(part)
		for i, word := range words {
			shows := i > 0 && slices.Contains(readers, strings.ToLower(filepath.Base(words[0]))) && word[0] != '-' || i > 0 && words[i-1] == "<"
			if shows && word != "<" && g.hides(t, word) {
				return word
			}
		}
	}
	return ""
}

// rooignoreWorkspace lays out the case's files and links.
func rooignoreWorkspace(t *testing.T, root string, in conformance.Value) *Workspace {
	t.Helper()
	if text, ok := esjson.GetString(in, "rooignore"); ok {
		fixture.WriteFile(t, filepath.Join(root, IgnoreFile), text)
	}
	for _, f := range in.Get("files").Strings() {
		fixture.WriteFile(t, filepath.Join(root, f), "x")
	}
	for link, raw := range esjson.Members(in.Get("symlinks")) {
		target, err := esjson.Unquote(raw)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(root, target)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
