package object

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a ref comes to reach while a collection is at work stays, also where it lies loose,
// as git writes objects, and where what it names lies in a pack that was to go.
func TestLooseObjectsThatAreWantedMeanwhile(t *testing.T) {
	for name, more := range map[string]bool{"alone": false, "naming what is in a pack": true} {
		s := made(t)
		ok(t, s.SetRef("refs/roost/t", commit(t, s, map[string]string{"f": "kept"})))
		write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("in a pack"))) })
		s.Settle()
		o := opened(t, s.dir)
		other := ID(strings.TrimSpace(git(t, o, "other garbage", "hash-object", "-w", "--stdin")))
		id := ID(strings.TrimSpace(git(t, o, "loose", "hash-object", "-w", "--stdin")))
		if more {
			list := "100644 blob " + string(blobID([]byte("in a pack"))) + "\tf\n"
			id = ID(strings.TrimSpace(git(t, o, list, "mktree")))
		}
		asked := 0
		got := must[Collected](t)(o.Collect(context.Background(), CollectOptions{Keep: func() ([]ID, error) {
			if asked++; asked == 1 {
				return nil, nil
			}
			return []ID{id}, nil
		}}))
		if asked != 2 {
			t.Errorf("%s: asked %d times", name, asked)
		}
		after := opened(t, s.dir)
		if !after.Has(id) || more && !after.Has(blobID([]byte("in a pack"))) {
			t.Errorf("%s: it is gone: %+v", name, got)
		}
		fsck(t, s)
		if got := collect(t, after); after.Has(id) || after.Has(other) {
			t.Errorf("%s: the next collection leaves it: %+v", name, got)
		}
	}
}

// A content that cannot be read keeps no other garbage from going, and its own pack stays
// as it is: all that can be read of it is still there, and so is what a person may mend.
func TestADamagedPackIsLeft(t *testing.T) {
	for _, loose := range []bool{false, true} {
		s := made(t)
		var a ID
		write(t, s, func(b *Batch) {
			a = commitTo(t, b, map[string]string{"bad": text(1, 20_000), "good": text(2, 20_000)})
			must[ID](t)(b.Blob([]byte("garbage beside it")))
		})
		write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("garbage"))) })
		ok(t, s.SetRef("refs/roost/t", a))
		s.Settle()
		damage(t, s, blobID([]byte(text(1, 20_000))))
		if loose { // another copy that is well: then nothing is lost
			other := made(t)
			write(t, other, func(b *Batch) { must[ID](t)(b.Blob(nil)) })
			id := must[sum](t)(ID(strings.TrimSpace(git(t, other, text(1, 20_000), "hash-object", "-w", "--stdin"))).sum())
			ok(t, os.MkdirAll(filepath.Dir(s.loose(id).path), 0o700))
			ok(t, os.Rename(other.loose(id).path, s.loose(id).path))
		}
		o := opened(t, s.dir)
		packs := packsOf(t, o)
		got := collect(t, o)
		after := opened(t, s.dir)
		if after.Has(blobID([]byte("garbage"))) {
			t.Errorf("a copy: %v: garbage of another pack stays: %+v", loose, got)
		}
		read(t, after, blobID([]byte(text(2, 20_000))), []byte(text(2, 20_000)))
		if loose {
			read(t, after, blobID([]byte(text(1, 20_000))), []byte(text(1, 20_000)))
			fsck(t, s)
			continue
		}
		if !after.Has(blobID([]byte(text(1, 20_000)))) || !after.Has(blobID([]byte("garbage beside it"))) {
			t.Errorf("the damaged pack went: %+v, of %v there are %v", got, packs, packsOf(t, o))
		}
	}
}
