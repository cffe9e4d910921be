//go:build unix

package object

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A process that is killed anywhere in its work leaves a store that others go on with:
// what was named stays whole, what was not named is collected, nothing is left.
func TestKills(t *testing.T) {
	for _, place := range []string{
		"object.pack.written", "object.pack.named", "object.index.named", "object.ref.locked", "object.ref.named",
		"object.collect.written", "object.collect.removing", "object.merge.written", "object.merge.removing",
	} {
		t.Run(place, func(t *testing.T) {
			s := made(t)
			old := commit(t, s, map[string]string{"f": "old"})
			ok(t, s.SetRef(RefName("child"), old))
			ok(t, s.SetRef(RefName("other"), commit(t, s, map[string]string{"f": "other", "g": "x"})))
			if strings.Contains(place, "merge") {
				for i := range crowd - 3 {
					write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte{byte(i)})) })
				}
			}
			s.Settle()
			c := start(t, s, place)
			answer := ""
			if strings.Contains(place, "collect") {
				answer = c.say("collect")
			} else {
				answer = c.say("commit new")
			}
			if answer != "" {
				t.Fatalf("the child was not killed: %s", answer)
			}
			err := c.cmd.Wait()
			if c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child ended by itself: %v", err)
			}
			o := opened(t, s.dir)
			id := must[ID](t)(o.Ref(RefName("child")))
			if got := files(t, o, id); got["f"] != "new" && (id != old || got["f"] != "old") {
				t.Errorf("after the kill: %s, %v", id, got)
			}
			// The same again, by somebody else, at once.
			write(t, o, func(b *Batch) {
				blob := must[ID](t)(b.Blob([]byte("new")))
				id = must[ID](t)(b.Commit(Commit{Tree: must[ID](t)(b.Tree([]TreeEntry{{"f", ModeFile, blob}})), Message: "new"}))
			})
			ok(t, o.SetRef(RefName("child"), id))
			o.Settle()
			if got := collect(t, o); got.Kept != 7 {
				t.Errorf("collected: %+v", got)
			}
			if got := packsOf(t, s); len(got) != 2 {
				t.Errorf("packs are left: %q", got)
			}
			for _, dir := range []string{"tmp", "leases"} {
				if left := must[[]os.DirEntry](t)(os.ReadDir(s.path("roost", dir))); len(left) != 0 {
					t.Errorf("%s: %v is left", dir, left)
				}
			}
			if _, err := os.Stat(s.refPath(RefName("child")) + ".lock"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a lock is left: %v", err)
			}
			fsck(t, s)
		})
	}
}

// A lock that a killed process left on one ref keeps nobody from another.
func TestAKillBesideAnotherRef(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"f": "old"})
	c := start(t, s, "object.ref.locked")
	if answer := c.say("commit new"); answer != "" {
		t.Fatal(answer)
	}
	ok(t, s.SetRef("refs/roost/another", id))
	ok(t, s.SetRef(RefName("child"), id))
	ok(t, s.DeleteRef(RefName("child")))
	if _, err := s.Ref(RefName("child")); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// Without space nothing is lost and nothing is left; with space again all goes on.
func TestAFullDisk(t *testing.T) {
	full := syscall.ENOSPC
	for _, at := range []string{"create", "write", "sync", "rename", "syncdir"} {
		for skip := range 2 {
			if skip > 0 && testing.Short() {
				break
			}
			s := made(t)
			old := commit(t, s, map[string]string{"f": "old"})
			ok(t, s.SetRef("refs/roost/t", old))
			passes := skip
			s.fault = func(op string) error {
				if passes -= strings.Count(op, at); op == at && passes < 0 {
					return full
				}
				return nil
			}
			failed := false
			err := func() error {
				b, err := s.Begin(context.Background())
				if err != nil {
					return err
				}
				defer b.Discard()
				blob, err := b.Blob([]byte("new"))
				if err == nil {
					_, err = b.BlobFrom(&noise{left: 5 << 20, x: 3}, 5<<20)
				}
				var id ID
				if err == nil {
					id, err = b.Tree([]TreeEntry{{"f", ModeFile, blob}})
				}
				if err == nil {
					id, err = b.Commit(Commit{Tree: id, Message: "new"})
				}
				if err == nil {
					err = b.Close()
				}
				if err == nil {
					err = s.SetRef("refs/roost/t", id)
				}
				return err
			}()
			if failed = err != nil; failed && !errors.Is(err, full) {
				t.Errorf("%s %d: %v", at, skip, err)
			}
			if skip == 0 && !failed {
				t.Errorf("%s: nothing failed", at)
			}
			if left := must[[]os.DirEntry](t)(os.ReadDir(s.path("roost", "tmp"))); len(left) != 0 {
				t.Errorf("%s %d: temporary files are left: %v", at, skip, left)
			}
			if !failed {
				continue
			}
			if _, err := s.Collect(context.Background(), CollectOptions{}); err != nil && !errors.Is(err, full) {
				t.Errorf("%s %d: collect: %v", at, skip, err)
			}
			s.fault = func(string) error { return nil }
			if got := files(t, opened(t, s.dir), must[ID](t)(s.Ref("refs/roost/t"))); got["f"] != "old" {
				t.Errorf("%s %d: %v", at, skip, got)
			}
			ok(t, s.SetRef("refs/roost/t", commit(t, s, map[string]string{"f": "new"})))
			s.Settle()
			collect(t, s)
			fsck(t, s)
		}
	}
}
