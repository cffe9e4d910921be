package checkpoint

import (
	"path/filepath"
	"testing"
	"unicode/utf8"
)

func FuzzRecorded(f *testing.F) {
	for _, s := range []string{"a", "a/b", "\xff", "\U0010FF80", "\U0010FFFF\x80", "é\xc3", ""} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		r := Recorded(a)
		if !utf8.ValidString(r) {
			t.Errorf("%q is recorded as %q", a, r)
		}
		if filepath.Separator == '/' && OnDisk(r) != a {
			t.Errorf("%q is recorded as %q, which is %q", a, r, OnDisk(r))
		}
		if (r == Recorded(b)) != (a == b) && filepath.Separator == '/' {
			t.Errorf("%q and %q are both recorded as %q", a, b, r)
		}
		if plain(r) && !filepath.IsLocal(OnDisk(r)) {
			t.Errorf("%q leads out", r)
		}
	})
}

func TestPlain(t *testing.T) {
	for p, want := range map[string]bool{
		"a": true, "a/b.c": true, ".gitignore": true, "..a": true, "a..": true,
		"": false, ".": false, "..": false, "../a": false, "/a": false, "a/": false, "a//b": false, "a/./b": false, "a/../b": false,
		".git": false, "a/.git/b": false, ".GIT/x": false, "a\x00b": false,
	} {
		if plain(p) != want {
			t.Errorf("%q: got %v, want plain(p) = %v", p, !want, want)
		}
	}
}
