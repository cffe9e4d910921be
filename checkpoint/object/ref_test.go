package object

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNamesThatARefCannotHave(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1"})
	for _, name := range []string{"", "HEAD", "config", "refs", "refs/", "x/refs/a", "refs//a", "refs/a/", "refs/../config", "refs/a/../b", "refs/.a", "refs/a.", "refs/a.lock", "refs/a b", "refs/a\n", "refs/a~", "refs/a^", "refs/a:b", "refs/a?", "refs/a*", "refs/a[", `refs/a\b`, "refs/a@{b", "refs/a..b", "/refs/a"} {
		_, err := s.Ref(name)
		if !errors.Is(err, ErrName) || !errors.Is(s.SetRef(name, id), ErrName) || !errors.Is(s.DeleteRef(name), ErrName) {
			t.Errorf("%q is taken (%v)", name, err)
		}
	}
}

func TestEveryTextHasARefOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA.%-]{0,4}(\.lock)?`), rapid.StringMatching(`[A-Z]{60,80}`))
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		for _, text := range []string{a, b} {
			name := RefName(text)
			if err := checkRef(name); err != nil || strings.ToLower(name) != name || len(name) > 220 {
				t.Fatalf("%q has the ref %q: %v", text, name, err)
			}
		}
		if (RefName(a) == RefName(b)) != (a == b) {
			t.Fatalf("%q and %q: %q", a, b, RefName(a))
		}
	})
	for text, want := range map[string]string{"0190-ab": "refs/roost/0190-ab", "a.b": "refs/roost/a.b", "A": "refs/roost/%41", "a.lock": "refs/roost/a%2elock", "": "refs/roost/%"} {
		if got := RefName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Refs that a person's git packed, moved or points elsewhere are seen as git sees them.
func TestRefsOfGit(t *testing.T) {
	s := made(t)
	a, b := commit(t, s, map[string]string{"a": "1"}), commit(t, s, map[string]string{"a": "2"})
	want := map[string]ID{}
	check := func(what string) {
		t.Helper()
		got := must[map[string]ID](t)(s.Refs())
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		for name, id := range want {
			if got, err := s.Ref(name); got != id || err != nil {
				t.Errorf("%s: %s is %s, %v", what, name, got, err)
			}
			if got := strings.TrimSpace(git(t, s, "", "rev-parse", name)); got != string(id) {
				t.Errorf("%s: git says that %s is %s", what, name, got)
			}
		}
	}
	set := func(name string, id ID) {
		t.Helper()
		ok(t, s.SetRef(name, id))
		want[name] = id
	}
	set("refs/roost/x", a)
	set("refs/roost/y", a)
	set("refs/heads/deep/er", b)
	check("files")
	git(t, s, "", "tag", "-a", "-m", "words", "v1", string(a))
	want["refs/tags/v1"] = ID(strings.TrimSpace(git(t, s, "", "rev-parse", "v1")))
	git(t, s, "", "pack-refs", "--all")
	if _, err := os.Stat(s.refPath("refs/roost/x")); err == nil {
		t.Fatal("git packed nothing")
	}
	check("packed")
	set("refs/roost/x", b)
	check("changed")
	for _, name := range []string{"refs/roost/x", "refs/tags/v1"} {
		ok(t, s.DeleteRef(name))
		delete(want, name)
		check("deleted " + name)
	}
	ok(t, s.DeleteRef("refs/roost/never"))
	set("refs/roost/x", a)
	git(t, s, "", "symbolic-ref", "refs/heads/other", "refs/roost/x")
	want["refs/heads/other"] = a
	check("one that stands for another")
	fsck(t, s)

	git(t, s, "", "tag", "-a", "-m", "words", "v2", string(b))
	ok(t, s.DeleteRef("refs/heads/deep/er"))
	s.Settle()
	if got := collect(t, s); got.Removed != 1 { // the tag v1
		t.Errorf("collected: %+v", got)
	}
	files(t, s, b) // the tag reaches it
}

func TestDamagedRefs(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1"})
	ok(t, s.SetRef("refs/roost/good", id))
	for name, text := range map[string]string{"empty": "", "short": "abc\n", "circle": "ref: refs/roost/circle\n", "out": "ref: ../../etc/passwd\n"} {
		path := s.refPath("refs/roost/" + name)
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := s.Ref("refs/roost/" + name); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		refs, err := s.Refs()
		if !errors.Is(err, ErrDamaged) || refs["refs/roost/good"] != id {
			t.Errorf("%s: all: %v, %v", name, refs, err)
		}
		// Whom it named nobody knows: nothing may be removed.
		if _, err := s.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: collect: %v", name, err)
		}
		ok(t, s.SetRef("refs/roost/"+name, id)) // and it can be set anew
		ok(t, s.DeleteRef("refs/roost/"+name))
	}
	ok(t, os.WriteFile(s.path("packed-refs"), []byte("# pack-refs\nnonsense\n"), 0o600))
	if _, err := s.Refs(); !errors.Is(err, ErrDamaged) {
		t.Errorf("packed-refs: %v", err)
	}
}

func TestALockOfSomebodyElseOnARef(t *testing.T) {
	t.Parallel() // it waits
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1"})
	lock := s.refPath("refs/roost/x") + ".lock"
	ok(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	ok(t, os.WriteFile(lock, nil, 0o600))
	if err := s.SetRef("refs/roost/x", id); err == nil || !strings.Contains(err.Error(), "x.lock") {
		t.Errorf("another program's lock: %v", err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("it was taken away: %v", err)
	}
	old := time.Now().Add(-time.Hour)
	ok(t, os.Chtimes(lock, old, old))
	ok(t, s.SetRef("refs/roost/x", id))
}

func TestRefsOfManyAtOnce(t *testing.T) {
	s := made(t)
	var ids []ID
	for i := range 4 {
		ids = append(ids, commit(t, s, map[string]string{"a": fmt.Sprint(i)}))
	}
	done := make(chan error)
	for i, id := range ids {
		s := opened(t, s.dir)
		go func() {
			var err error
			for n := range 20 {
				err = errors.Join(err, s.SetRef(fmt.Sprint("refs/roost/", i), id), s.SetRef("refs/roost/all", id))
				if n%5 == 4 {
					err = errors.Join(err, s.DeleteRef(fmt.Sprint("refs/roost/", i)))
				}
			}
			done <- errors.Join(err, s.SetRef(fmt.Sprint("refs/roost/", i), id))
		}()
	}
	for range ids {
		ok(t, <-done)
	}
	refs := must[map[string]ID](t)(s.Refs())
	for i, id := range ids {
		if refs[fmt.Sprint("refs/roost/", i)] != id {
			t.Errorf("ref %d: %v", i, refs)
		}
	}
	if len(refs) != 5 || refs["refs/roost/all"] == "" {
		t.Errorf("refs: %v", refs)
	}
}
