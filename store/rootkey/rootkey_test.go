package rootkey_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store/rootkey"
)

func seal(t *testing.T, r *rootkey.Ring) *journal.Seal {
	t.Helper()
	s, err := r.Seal("tasks/a")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func made(t *testing.T, state, root string) *rootkey.Ring {
	t.Helper()
	r := rootkey.Open(state, root)
	if err := r.Make(); err != nil {
		t.Fatal(err)
	}
	return r
}

func folders(t *testing.T) (state, root string) {
	t.Helper()
	state, root = filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	return state, root
}

// proves reports whether what one seal signs counts for the other.
func proves(signer, reader *journal.Seal) bool {
	id, mac := signer.MAC("test", []byte("data"))
	return reader.Proves(id, mac, "test", []byte("data"))
}

func TestReadingMakesNoKey(t *testing.T) {
	state, root := folders(t)
	if s := seal(t, rootkey.Open(state, root)); s.Sign != nil || len(s.Verify) > 0 {
		t.Errorf("a key before anything was written: %+v", s)
	}
	for _, dir := range []string{state, root} {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s holds %s", dir, entries[0].Name())
		}
	}
}

// A copy of a root, in another place or in the same one, has none of its keys until its user
// trusts it.
func TestCopiedRootHasNoKeys(t *testing.T) {
	state, root := folders(t)
	first := seal(t, made(t, state, root))
	id, err := os.ReadFile(filepath.Join(root, "root.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !proves(first, seal(t, rootkey.Open(state, root))) {
		t.Fatal("the next process does not know the key")
	}

	elsewhere := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "root.json"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	copied := made(t, state, elsewhere)
	if proves(first, seal(t, copied)) {
		t.Error("a copy counts what was signed in the other place")
	}
	if n, err := copied.Trust(); n != 1 || err != nil {
		t.Fatalf("trust brought %d keys, %v; want 1", n, err)
	}
	if !proves(first, seal(t, copied)) {
		t.Error("a trusted copy does not count what was signed in the other place")
	}
	if proves(seal(t, copied), seal(t, rootkey.Open(state, root))) {
		t.Error("the first place counts what the copy signs")
	}

	// A restored root: the same path, another file.
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "root.json"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	if proves(first, seal(t, made(t, state, root))) {
		t.Error("a restored root counts what was signed before")
	}
}

func TestKeysAreForTheirOwnerAlone(t *testing.T) {
	state, root := folders(t)
	made(t, state, root)
	err := filepath.Walk(state, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Several processes that come first at once end with one id and one key.
func TestOneKeyAPlace(t *testing.T) {
	state, root := folders(t)
	seals := make([]*journal.Seal, 16)
	var all sync.WaitGroup
	for i := range seals {
		all.Go(func() {
			r := rootkey.Open(state, root)
			if err := r.Make(); err != nil {
				t.Error(err)
				return
			}
			seals[i], _ = r.Seal("tasks/a")
		})
	}
	all.Wait()
	for _, s := range seals[1:] {
		if s == nil || !proves(s, seals[0]) {
			t.Fatal("two keys were made")
		}
	}
}

func TestTokenBelongsToItsPlace(t *testing.T) {
	state, root := folders(t)
	r := rootkey.Open(state, root)
	if r.MadeToken("a") {
		t.Error("a token that was never made here counts")
	}
	if err := r.NoteToken("a"); err != nil {
		t.Fatal(err)
	}
	if next := rootkey.Open(state, root); !next.MadeToken("a") || next.MadeToken("b") {
		t.Error("the token that was made here is not the one that counts")
	}
}

// The key of a group is for the server's user alone, or for the group of a pod, as Kubernetes mounts a secret.
func TestGroupKeyIsForItsServerAlone(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("files have no such modes here")
	}
	file := filepath.Join(t.TempDir(), "group.json")
	if _, err := rootkey.Group(file, true); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: false, 0o444: false, 0o604: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := rootkey.Group(file, false); (err == nil) != want {
			t.Errorf("a key with mode %#o: got %v, want it accepted: %v", mode, err, want)
		}
	}
}
