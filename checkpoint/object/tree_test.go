package object

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNamesThatATreeCannotHold(t *testing.T) {
	bad := []string{"", ".", "..", ".git", ".GIT", ".Git", "a/b", "/", "a\x00", "git~1", "GIT~1", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", ".git\\config", ".g\u200cit", "\ufeff.git"}
	good := []string{"a", ".gitignore", ".gitmodules", "git", "git~2", "git~10", ".git-x", ".gitx", "...", " ", "a\nb", "ünï", "\xff\xfe", ".github", "con", "a:b", `a\b`}
	blob := blobID(nil)
	for _, name := range bad {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := encodeTree([]TreeEntry{{name, ModeFile, blob}}); !errors.Is(err, ErrName) {
			t.Errorf("a tree with %q: %v", name, err)
		}
	}
	s := made(t)
	write(t, s, func(b *Batch) {
		must[ID](t)(b.Blob(nil))
		var list []TreeEntry
		for _, name := range good {
			if err := CheckName(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
			list = append(list, TreeEntry{name, ModeFile, blob})
		}
		must[ID](t)(b.Tree(list))
	})
	fsck(t, s)
}

func TestTreesThatCannotBe(t *testing.T) {
	blob := blobID(nil)
	for name, list := range map[string][]TreeEntry{
		"a name twice":         {{"a", ModeFile, blob}, {"b", ModeFile, blob}, {"a", ModeTree, blob}},
		"a mode of a device":   {{"a", 0o060644, blob}},
		"other bits of a file": {{"a", 0o100600, blob}},
		"no mode":              {{"a", 0, blob}},
		"no id":                {{"a", ModeFile, ""}},
		"half an id":           {{"a", ModeFile, blob[:20]}},
		"an id in capitals":    {{"a", ModeFile, ID(strings.ToUpper(string(blob)))}},
	} {
		if out, err := encodeTree(list); err == nil {
			t.Errorf("%s: %q", name, out)
		}
	}
}

func TestATreeIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) TreeEntry {
			return TreeEntry{
				Name: rapid.StringMatching(`[a-c.0~/-]{1,3}`).Filter(func(s string) bool { return CheckName(s) == nil }).Draw(t, "name"),
				Mode: rapid.SampledFrom([]uint32{ModeFile, ModeExecutable, ModeLink, ModeTree, ModeCommit}).Draw(t, "mode"),
				ID:   blobID(rapid.SliceOfN(rapid.Byte(), 1, 1).Draw(t, "id")),
			}
		}), 0, 20, func(e TreeEntry) string { return e.Name }).Draw(t, "entries")
		data, err := encodeTree(list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseTree(data)
		if err != nil {
			t.Fatal(err)
		}
		byName := func(a, b TreeEntry) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(got, byName)
		slices.SortFunc(list, byName)
		if len(list) > 0 && !slices.Equal(got, list) {
			t.Fatal(gocmp.Diff(list, got))
		}
	})
}

func TestCommitsAreReadAsWritten(t *testing.T) {
	tree, parent := blobID([]byte("t")), blobID([]byte("p"))
	for name, c := range map[string]struct{ in, want Commit }{
		"all of it":       {Commit{tree, []ID{parent, tree}, "A B <a@b>", time.Unix(1e9, 0), "title\n\nbody\n"}, Commit{tree, []ID{parent, tree}, "A B <a@b>", time.Unix(1e9, 0).UTC(), "title\n\nbody\n"}},
		"nearly nothing":  {Commit{Tree: tree}, Commit{Tree: tree, Author: author, At: time.Unix(0, 0).UTC(), Message: "\n"}},
		"hostile persons": {Commit{Tree: tree, Author: "a\n\ttree x<b<>c\n>"}, Commit{Tree: tree, Author: "atree x <b>", At: time.Unix(0, 0).UTC(), Message: "\n"}},
		"no address":      {Commit{Tree: tree, Author: "somebody"}, Commit{Tree: tree, Author: author, At: time.Unix(0, 0).UTC(), Message: "\n"}},
		"words with NUL":  {Commit{Tree: tree, Message: "a\x00b"}, Commit{Tree: tree, Author: author, At: time.Unix(0, 0).UTC(), Message: "ab\n"}},
		"lines like ours": {Commit{Tree: tree, Message: "\n\ntree x\nparent y"}, Commit{Tree: tree, Author: author, At: time.Unix(0, 0).UTC(), Message: "\n\ntree x\nparent y\n"}},
	} {
		data, err := encodeCommit(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := ParseCommit(data)
		if diff := gocmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for _, c := range []Commit{{}, {Tree: "x"}, {Tree: tree, Parents: []ID{""}}} {
		if _, err := encodeCommit(c); err == nil {
			t.Errorf("%v is written", c)
		}
	}
}

func FuzzTree(f *testing.F) {
	id := bytes.Repeat([]byte{7}, 20)
	f.Add(append([]byte("100644 a\x00"), id...))
	f.Add(append([]byte("40000 .git\x00"), id...))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseTree(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if n := len(list); n*24 > len(data) {
			t.Fatalf("%d entries in %d bytes", n, len(data))
		}
		if out, err := encodeTree(list); err == nil {
			if again, err := ParseTree(out); err != nil || len(again) != len(list) {
				t.Fatalf("%d entries became %d (%v)", len(list), len(again), err)
			}
		}
	})
}

func FuzzCommit(f *testing.F) {
	data, _ := encodeCommit(Commit{Tree: blobID(nil), Parents: []ID{blobID(nil)}, Message: "m"})
	f.Add(data)
	f.Add([]byte("tree \n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCommit(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		out, err := encodeCommit(c)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if again, err := ParseCommit(out); err != nil || again.Tree != c.Tree || !slices.Equal(again.Parents, c.Parents) {
			t.Fatalf("%v became %v (%v)", c, again, err)
		}
	})
}
