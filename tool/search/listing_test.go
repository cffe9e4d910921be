package search

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/workspace"
)

func TestMarksInAListing(t *testing.T) {
	entries := func() []listEntry {
		return []listEntry{{"b", false, false}, {"secret", true, false}, {"AGENTS.md", false, true}, {"d/", false, false}, {"both", true, true}}
	}
	for _, tt := range []struct {
		limited, show, marks bool
		want                 string
	}{
		{false, false, false, "AGENTS.md\nb\nboth\nsecret\nd/"},
		{false, false, true, shieldMark + "AGENTS.md\nb\nd/"},
		{false, true, true, shieldMark + "AGENTS.md\nb\n" + lockMark + "both\n" + lockMark + "secret\nd/"},
	} {
		got := formatListing(entries(), tt.limited, tt.show, tt.marks)
		if got != tt.want {
			t.Errorf("%+v: %s", tt, cmp.Diff(tt.want, got))
		}
		limited := formatListing(entries(), true, tt.show, tt.marks)
		if !strings.HasPrefix(limited, tt.want+"\n\n(File list truncated.") {
			t.Errorf("cut: %q", limited)
		}
	}
	if got := formatListing(nil, false, false, true); got != "No files found." {
		t.Errorf("nothing: %q", got)
	}
}

// Files before folders at each level, names as people expect them.
func TestOrderOfAListing(t *testing.T) {
	want := []string{"README", "a.txt", "a1", "a2", "a10", "B", "c", "a/", "a/z", "a/b/", "a/b/c", "B/", "B/x", "é/"}
	rapid.Check(t, func(r *rapid.T) {
		var entries []listEntry
		for _, p := range rapid.Permutation(want).Draw(r, "order") {
			entries = append(entries, listEntry{path: p})
		}
		sortEntries(entries)
		at := map[string]int{}
		for i, e := range entries {
			at[e.path] = i
		}
		for _, pair := range [][2]string{{"a1", "a2"}, {"a2", "a10"}, {"a10", "a/"}, {"c", "a/"}, {"a/z", "a/b/"}, {"a/", "a/z"}, {"a/b/", "a/b/c"}, {"B/", "B/x"}} {
			if at[pair[0]] > at[pair[1]] {
				r.Fatalf("%s comes after %s in %v", pair[0], pair[1], at)
			}
		}
		if len(at) != len(want) {
			r.Fatalf("entries were lost: %v", at)
		}
	})
}

func TestCompareNamesIsAnOrder(t *testing.T) {
	name := rapid.StringOfN(rapid.SampledFrom([]rune("aAbBéE019_-. (ж日😀")), 0, 6, -1)
	rapid.Check(t, func(r *rapid.T) {
		a, b, c := name.Draw(r, "a"), name.Draw(r, "b"), name.Draw(r, "c")
		sign := func(n int) int { return max(-1, min(1, n)) }
		if sign(compareNames(a, b)) != -sign(compareNames(b, a)) {
			r.Fatalf("%q and %q", a, b)
		}
		if compareNames(a, a) != 0 {
			r.Fatalf("%q differs from itself", a)
		}
		if compareNames(a, b) <= 0 && compareNames(b, c) <= 0 && compareNames(a, c) > 0 {
			r.Fatalf("got %q, %q, %q, want compareNames(a, b) > 0 or compareNames(b, c) > 0 or compareNames(a, c) <= 0",
				a, b, c)
		}
	})
}

func TestTooWide(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/": true, real: true, filepath.Join(real, "project"): false, filepath.Dir(real): false} {
		if got := tooWide(path); got != want {
			t.Errorf("%s: got %v, want got = %v", path, got, want)
		}
	}
}

// The .gitignore files of all folders together are bounded.
func TestIgnoreFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("# a comment takes no time\n", maxIgnore/26-1) + "hidden\n"
	for i := range 6 {
		at := filepath.Join(dir, fmt.Sprint("d", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{".gitignore": text, "hidden": ""} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := Names(t.Context(), ws, 100)
	got := slices.DeleteFunc(names, func(p string) bool { return !strings.HasSuffix(p, "hidden") })
	if d := cmp.Diff([]string{"d4/hidden", "d5/hidden"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
}
