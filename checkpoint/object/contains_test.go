package object

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Contains tells what is there now, wherever it lies and whoever wrote it, and relies on
// nothing: it leaves no lease, and makes no store.
func TestContainsTellsAndHoldsNothing(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	in, other, loose, bad := text(1, 3000), text(2, 3000), text(3, 3000), text(4, 3000)
	if s.Contains(blobID([]byte(in))) || s.Contains("no id") {
		t.Error("something is in a store that is not there")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("asking made a folder: %v", err)
	}
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte(in))) })
	write(t, opened(t, s.dir), func(b *Batch) { must[ID](t)(b.Blob([]byte(other))) })
	git(t, s, loose, "hash-object", "-w", "--stdin")
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte(bad))) })
	s.Settle()

	o := opened(t, s.dir) // one that holds nothing
	for what, content := range map[string]string{"packed": in, "packed by somebody else": other, "loose": loose, "damaged, not read yet": bad} {
		if !o.Contains(blobID([]byte(content))) {
			t.Errorf("%s: it is said to be missing", what)
		}
	}
	if o.Contains(blobID([]byte("absent"))) {
		t.Error("what is absent is said to be there")
	}
	if !o.held.idle() {
		t.Error("asking holds something")
	}

	damage(t, o, blobID([]byte(bad)))
	if _, err := o.Read(ctx, blobID([]byte(bad)), 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("what was damaged: %v", err)
	}
	if o.Contains(blobID([]byte(bad))) {
		t.Error("what was seen to be damaged is said to be there: nobody would write it again")
	}
	path := o.loose(must[sum](t)(blobID([]byte(loose)).sum())).path
	ok(t, os.Remove(path))
	if o.Contains(blobID([]byte(loose))) {
		t.Error("a loose object that was removed is said to be there")
	}
}

// damage changes a byte in the middle of a packed object.
func damage(t testing.TB, s *Store, id ID) {
	t.Helper()
	for name, p := range s.known.packs {
		i, found := p.idx.find(must[sum](t)(id.sum()))
		if !found {
			continue
		}
		path := filepath.Join(s.packDir(), name+".pack")
		data := must[[]byte](t)(os.ReadFile(path))
		data[p.idx.offset(i)+p.length(p.idx.offset(i))/2] ^= 1
		ok(t, os.Chmod(path, 0o600))
		ok(t, os.WriteFile(path, data, 0o600))
		return
	}
	t.Fatalf("%s is in no pack", id)
}

// A pack of so many objects that it is searched in its own index: all of it is found, by
// who wrote it and by others, beside small packs, and it goes as a whole.
func TestAPackOfManyObjects(t *testing.T) {
	s := made(t)
	content := func(i int) []byte { return fmt.Append(nil, "object ", i) }
	id := commit(t, s, map[string]string{"small": "pack"})
	ok(t, s.SetRef("refs/roost/t", id))
	write(t, s, func(b *Batch) {
		for i := range smallPack + 1 {
			must[ID](t)(b.Blob(content(i)))
		}
	})
	for who, s := range map[string]*Store{"writer": s, "other": opened(t, s.dir)} {
		for i := range smallPack + 1 {
			if !s.Contains(blobID(content(i))) {
				t.Fatalf("%s: object %d is missing", who, i)
			}
		}
		if s.Contains(blobID(content(smallPack + 1))) {
			t.Errorf("%s: there is one too many", who)
		}
		if got := must[[]byte](t)(s.Read(context.Background(), blobID(content(7)), 0)); string(got) != string(content(7)) {
			t.Errorf("%s: read %q", who, got)
		}
	}
	s.Settle()
	if got := collect(t, s); got.Removed != smallPack+1 || got.Kept != 3 {
		t.Errorf("collected: %+v", got)
	}
	if s.Contains(blobID(content(7))) || !s.Contains(id) {
		t.Error("the wrong pack went")
	}
}

// What a dry run says becomes true: of garbage in packs beside what is needed, and of
// loose garbage. It changes nothing.
func TestADryRunSaysWhatWillBe(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	var id ID
	write(t, s, func(b *Batch) { // half of this pack is needed
		id = commitTo(t, b, map[string]string{"f": text(1, 20_000)})
		must[ID](t)(b.Blob([]byte(text(2, 20_000))))
	})
	ok(t, s.SetRef("refs/roost/t", id))
	git(t, s, text(3, 20_000), "hash-object", "-w", "--stdin")
	s.Settle()
	before := packsOf(t, s)
	dry := must[Collected](t)(s.Collect(ctx, CollectOptions{DryRun: true}))
	if fmt.Sprint(packsOf(t, s)) != fmt.Sprint(before) || !s.Contains(blobID([]byte(text(3, 20_000)))) {
		t.Error("a dry run changed something")
	}
	done := must[Collected](t)(s.Collect(ctx, CollectOptions{}))
	if dry.Kept != done.Kept || dry.Removed != done.Removed || dry.Before != done.Before || dry.Removed != 2 || dry.Kept != 3 {
		t.Errorf("said %+v, did %+v", dry, done)
	}
	if off := dry.After - done.After; off < -1000 || off > 1000 {
		t.Errorf("said that %d bytes would be left of %d, and it is %d", dry.After, dry.Before, done.After)
	}
}

// A person may have checked a commit out by its id: no ref names it, and it stays.
func TestWhatHeadNamesStays(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"f": "checked out"})
	commit(t, s, map[string]string{"f": "garbage"})
	ok(t, os.WriteFile(s.path("HEAD"), []byte(string(id)+"\n"), 0o600))
	s.Settle()
	if got := collect(t, s); got.Kept != 3 || got.Removed != 3 {
		t.Errorf("collected: %+v", got)
	}
	if got := files(t, s, id); got["f"] != "checked out" {
		t.Errorf("it holds %q", got)
	}
}

// A content of exactly as many bytes as are allowed is read, one more is not, in whichever
// form it lies.
func TestALimitIsExact(t *testing.T) {
	ctx := context.Background()
	for _, form := range []string{"packed", "loose"} {
		t.Run(form, func(t *testing.T) {
			s := made(t)
			content := text(1, 5000)
			write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte(content))) })
			if form == "loose" {
				unpackAll(t, s)
			}
			o := opened(t, s.dir)
			if got := must[[]byte](t)(o.Read(ctx, blobID([]byte(content)), 5000)); string(got) != content {
				t.Error("another content")
			}
			if _, err := o.Read(ctx, blobID([]byte(content)), 4999); !errors.Is(err, ErrTooLarge) {
				t.Errorf("one byte over the limit: %v", err)
			}
		})
	}
}

// A process that was killed while it took a ref out of git's table left the table's lock:
// it is nobody's, and the next change does not wait for it.
func TestAKillInGitsTable(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"f": "1"})
	ok(t, s.SetRef("refs/roost/a", id))
	git(t, s, "", "pack-refs", "--all")
	ok(t, os.WriteFile(s.path("packed-refs.lock"), nil, 0o600))
	ok(t, os.WriteFile(s.path("roost", "pending"), []byte("packed-refs"), 0o600))
	ok(t, s.DeleteRef("refs/roost/a"))
	if _, err := s.Ref("refs/roost/a"); !errors.Is(err, ErrMissing) {
		t.Errorf("a ref that was deleted: %v", err)
	}
	// A name that is none of ours is not taken for one.
	outside := filepath.Join(s.dir, "victim.lock")
	ok(t, os.WriteFile(outside, nil, 0o600))
	ok(t, os.WriteFile(s.path("roost", "pending"), []byte("victim"), 0o600))
	ok(t, s.SetRef("refs/roost/b", id))
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file that is no lock of a ref went: %v", err)
	}
}

// A ref in a store that was never made is deleted without making one.
func TestDeletingARefOfNoStore(t *testing.T) {
	s := made(t)
	ok(t, s.DeleteRef("refs/roost/x"))
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made a folder: %v", err)
	}
}

func TestTheLengthOfARefsName(t *testing.T) {
	z := func(n int) string { return strings.Repeat("z", n) }
	if got := RefName(z(200)); got != "refs/roost/"+z(200) {
		t.Errorf("200 letters: %q", got)
	}
	if got := RefName(z(201)); len(got) != len("refs/roost/")+100+2+40 || !strings.HasPrefix(got, "refs/roost/"+z(100)+"%%") {
		t.Errorf("201 letters: %q", got)
	}
}

// The runes that macOS does not look at in names, and their neighbours, which it does.
func TestRunesThatHideInNames(t *testing.T) {
	for _, r := range []rune{0x200c, 0x200d, 0x200f, 0x202a, 0x202c, 0x202e, 0x206a, 0x206f, 0xfeff} {
		if err := CheckName(".g" + string(r) + "IT"); !errors.Is(err, ErrName) {
			t.Errorf("%U: %v", r, err)
		}
	}
	for _, r := range []rune{0x200b, 0x2010, 0x2029, 0x202f, 0x2069, 0x2070, 0xfefe} {
		if err := CheckName(".g" + string(r) + "it"); err != nil {
			t.Errorf("%U: %v", r, err)
		}
	}
}
