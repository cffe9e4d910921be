package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
)

func TestVectorsRooignore(t *testing.T) {
	conformance.Run(t, "rooignore", func(t *testing.T, c conformance.Case) (ours bool) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		place := func(raw []byte) conformance.Value { return bytes.ReplaceAll(raw, []byte("${CWD}"), []byte(root)) }
		in, want := place(c.Input), place(c.Want)
		w := rooignoreWorkspace(t, root, in)

		access, protected := want.Get("access").List(), want.Get("protected").List()
		var filtered, wantFiltered []string
		for i, p := range in.Get("paths").Strings() {
			got, err := w.Resolve(p)
			if err != nil {
				t.Errorf("resolve %q: %v", p, err)
				continue
			}
			may := string(access[i]) == "true"
			if may == got.Ignored {
				if betterAccess(w, p, may, in.Str("rooignore")) == "" {
					t.Errorf("access of %q is %v, want %v", p, !got.Ignored, may)
				}
				ours, may = true, !may
			}
			if may {
				wantFiltered = append(wantFiltered, p)
			}
			if !got.Ignored {
				filtered = append(filtered, p)
			}
			switch {
			case got.Protected == (string(protected[i]) == "true"):
			case got.Protected && inGit(p, got.Real): // ours by choice: what git would run, or believe, asks too
				ours = true
			default:
				t.Errorf("protected of %q is %v", p, got.Protected)
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
			if got == blocked[i] {
				continue
			}
			// Ours by choice: stricter, in a line that Roo cannot take apart, or a
			// path whose verdict is ours by choice as well.
			strict := blocked[i] == "" && strings.ContainsAny(line, "\"'|;&<>`()\\/:") && hiddenWord(w, line, got)
			if !strict && betterAccess(w, orElse(blocked[i], got), blocked[i] == "", in.Str("rooignore")) == "" {
				t.Errorf("command %q is blocked by %q, want %q", line, got, blocked[i])
			}
			ours = true
		}
		return ours
	})
}

// inGit: one of the paths leads into a repository's own folder.
func inGit(paths ...string) bool {
	for _, p := range paths {
		for name := range strings.SplitSeq(filepath.ToSlash(p), "/") {
			if strings.EqualFold(name, ".git") {
				return true
			}
		}
	}
	return false
}

// rooignoreWorkspace lays out the case's files and links.
func rooignoreWorkspace(t *testing.T, root string, in conformance.Value) *Workspace {
	t.Helper()
	if text, ok := esjson.GetString(in, "rooignore"); ok {
		put(t, filepath.Join(root, IgnoreFile), text)
	}
	for _, f := range in.Get("files").Strings() {
		put(t, filepath.Join(root, f), "x")
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

// betterAccess says why we differ from Roo on a path, "" for no reason.
func betterAccess(w *Workspace, p string, roo bool, text string) string {
	full := p
	if !filepath.IsAbs(p) {
		full = filepath.Join(w.root, p)
	}
	rel, inside := within(w.root, full)
	if real, err := w.Resolve(p); err == nil && !real.Outside {
		rel, inside = within(w.root, real.Real)
	}
	if !inside {
		return ""
	}
	rel = filepath.ToSlash(rel)
	if info, err := os.Stat(full); err == nil && info.IsDir() && roo && !ParseIgnore(text+"\n"+IgnoreFile, true).Hides(rel, false) {
		return "a folder that exists is judged as a folder"
	}
	// Roo's verdict is that of the same rules when the sign of negation is a letter.
	letters := strings.NewReplacer("[!", `[\!`, "[^", `[\^`).Replace(text)
	if letters != text && ParseIgnore(letters+"\n"+IgnoreFile, true).Hides(rel, false) != roo {
		return "[!x] and [^x] are negated classes in gitignore"
	}
	return ""
}

// hiddenWord: the word is one of the line, and .rooignore hides the file that it names.
func hiddenWord(w *Workspace, line, word string) bool {
	bare := strings.NewReplacer(`"`, "", "'", "", `\`, "")
	p, err := w.Resolve(word)
	return err == nil && p.Ignored && strings.Contains(bare.Replace(strings.ReplaceAll(line, `\`, "/")), bare.Replace(word))
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
