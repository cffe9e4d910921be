package filelog_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// seal signs and verifies with one key.
func seal(log, key string) *journal.Seal {
	k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
	return &journal.Seal{Log: log, Sign: &k, Verify: []journal.Key{k}}
}

// signed makes a log of n commits behind epoch.opened and lets it go.
func signed(t *testing.T, dir string, s *journal.Seal, n int) {
	t.Helper()
	o, err := filelog.Own(t.Context(), dir, filelog.Options{By: "test", Seal: s})
	if err != nil {
		t.Fatal(err)
	}
	add(t, o, n)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

// proofs gives what a reader, and then the next owner, find out about a log.
func proofs(t *testing.T, dir string, s *journal.Seal) (reader, owner journal.Proof) {
	t.Helper()
	r, err := filelog.OpenKnowing(dir, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if reader, err = r.(journal.Prover).Proof(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := filelog.Own(t.Context(), dir, filelog.Options{By: "test", Seal: s})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if owner, err = o.(journal.Prover).Proof(t.Context()); err != nil {
		t.Fatal(err)
	}
	return reader, owner
}

// TestTamperedLogIsNoticed changes a signed log in the ways of somebody who can write to it
// and has no key.
func TestTamperedLogIsNoticed(t *testing.T) {
	ours := seal("root/task", "00000001")
	log := func(dir string) string { return filepath.Join(dir, "journal.jsonl") }
	edit := func(change func(lines [][]byte) [][]byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			data, err := os.ReadFile(log(dir))
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(data, []byte("\n"))
			put(t, dir, "journal.jsonl", bytes.Join(change(lines[:len(lines)-1]), nil))
			_ = os.Remove(filepath.Join(dir, "journal.idx"))
		}
	}
	again := func(line []byte) []byte { // with a checksum that holds
		c, err := journal.DecodeCommit(line)
		if err != nil {
			t.Fatal(err)
		}
		c.By = "somebody"
		out, err := journal.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		name        string
		deed        func(t *testing.T, dir string)
		want, owner journal.Proof
		seal        *journal.Seal
	}{
		{name: "nothing", deed: func(*testing.T, string) {}},
		{
			name: "a line is written anew", want: journal.Proof{Unsigned: 4, Altered: 6}, owner: journal.Proof{Unsigned: 4, Altered: 6},
			deed: edit(func(l [][]byte) [][]byte { l[3] = again(l[3]); return l }),
		},
		{
			name: "a line is taken out", want: journal.Proof{Altered: 6}, owner: journal.Proof{Altered: 6},
			deed: edit(func(l [][]byte) [][]byte { return append(l[:3:3], l[4], l[5]) }),
		},
		{
			name: "the end is cut off", want: journal.Proof{Cut: true}, owner: journal.Proof{Cut: true, Unsigned: 7},
			deed: edit(func(l [][]byte) [][]byte { return l[:4] }),
		},
		{
			name: "the end is cut off and the record is gone", want: journal.Proof{Cut: true}, owner: journal.Proof{Cut: true, Unsigned: 5},
			deed: func(t *testing.T, dir string) {
				edit(func(l [][]byte) [][]byte { return l[:4] })(t, dir)
				if err := os.Remove(filepath.Join(dir, "journal.lock")); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "the end is cut off and the record is another log's", want: journal.Proof{Cut: true}, owner: journal.Proof{Cut: true, Unsigned: 5},
			deed: func(t *testing.T, dir string) {
				edit(func(l [][]byte) [][]byte { return l[:4] })(t, dir)
				other := filepath.Join(t.TempDir(), "other")
				signed(t, other, seal("root/other", "00000001"), 3)
				data, err := os.ReadFile(filepath.Join(other, "journal.lock"))
				if err != nil {
					t.Fatal(err)
				}
				put(t, dir, "journal.lock", data)
			},
		},
		{
			name: "a commit without a key comes behind", want: journal.Proof{Unsigned: 7}, owner: journal.Proof{Unsigned: 7},
			deed: edit(func(l [][]byte) [][]byte {
				line, err := journal.EncodeCommit(journal.Commit{Seq: 7, Epoch: 1, Events: []journal.Event{[]byte(`{"type":"x"}`)}})
				if err != nil {
					t.Fatal(err)
				}
				return append(l, line)
			}),
		},
		{name: "the key is not here", deed: func(*testing.T, string) {}, seal: seal("root/task", "00000002"), want: journal.Proof{Unknown: 6}, owner: journal.Proof{Unknown: 6}},
		{name: "it is another task's", deed: func(*testing.T, string) {}, seal: seal("root/other", "00000001"), want: journal.Proof{Altered: 6}, owner: journal.Proof{Altered: 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "task")
			signed(t, dir, ours, 5)
			c.deed(t, dir)
			with := c.seal
			if with == nil {
				with = ours
			}
			reader, owner := proofs(t, dir, with)
			if reader != c.want {
				t.Errorf("the reader finds %+v, want %+v", reader, c.want)
			}
			if owner != c.owner {
				t.Errorf("the owner finds %+v, want %+v", owner, c.owner)
			}
			if c.want == (journal.Proof{}) {
				return
			}
			// Opening it did not sign what was not signed.
			if reader, _ := proofs(t, dir, with); max(reader.Unsigned, reader.Unknown, reader.Altered) == 0 {
				t.Errorf("after an owner the log counts as proven: %+v", reader)
			}
		})
	}
}

// An index that was written beside a log proves nothing without the key: it is a way to skip
// the verification of what stands before it.
func TestForgedIndexProvesNothing(t *testing.T) {
	ours, theirs := seal("root/task", "00000001"), seal("root/task", "00000002")
	dir := filepath.Join(t.TempDir(), "task")
	o, err := filelog.Own(t.Context(), dir, filelog.Options{By: "test", Seal: theirs})
	if err != nil {
		t.Fatal(err)
	}
	add(t, o, 200)
	head, err := o.Head(t.Context())
	if err == nil {
		err = o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: head, Data: []byte("approve all")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := filelog.OpenKnowing(dir, ours, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if s, err := r.Snapshot(t.Context()); err == nil {
		t.Errorf("a verified reader gives the snapshot %q", s.Data)
	}
	if p, err := r.(journal.Prover).Proof(t.Context()); err != nil || p.Unknown != 201 {
		t.Errorf("proof %+v, %v; want all 201 commits by an unknown key", p, err)
	}
	plain, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Snapshot(t.Context()); err != nil {
		t.Errorf("who only shows the log may use it: %v", err)
	}
}

// With a proven index an owner does not verify the whole log again, and finds the same.
func TestProvenIndexIsBelieved(t *testing.T) {
	s := seal("root/task", "00000001")
	dir := filepath.Join(t.TempDir(), "task")
	signed(t, dir, nil, 100)
	signed(t, dir, s, 300)
	if _, err := os.Stat(filepath.Join(dir, "journal.idx")); err != nil {
		t.Fatal(err)
	}
	with, _ := proofs(t, dir, s)
	if err := os.Remove(filepath.Join(dir, "journal.idx")); err != nil {
		t.Fatal(err)
	}
	without, owner := proofs(t, dir, s)
	if want := (journal.Proof{Unsigned: 101}); with != want || without != want || owner != want {
		t.Errorf("with an index %+v, without %+v, the owner %+v; want %+v", with, without, owner, want)
	}
}

// A log of a program that did not sign is opened, goes on signed, and its record keeps the
// lock file readable for both.
func TestOldLogGoesOnSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "task")
	signed(t, dir, nil, 3)
	lock := filepath.Join(dir, "journal.lock")
	rec, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	// The line of such a program has no mac.
	before, _, _ := bytes.Cut(rec, []byte(`,"mac":`))
	old := append(bytes.Clone(before), []byte(`,"crc":"`+crcOf(before)+"\"}\n")...)
	put(t, dir, "journal.lock", append(old, `{"pid":1}`...))
	signed(t, dir, seal("root/task", "00000001"), 2)
	reader, owner := proofs(t, dir, seal("root/task", "00000001"))
	if want := (journal.Proof{Unsigned: 4}); reader != want || owner != want {
		t.Errorf("reader %+v, owner %+v; want %+v", reader, owner, want)
	}
}

func BenchmarkSigned(b *testing.B) {
	for _, c := range []struct {
		name string
		seal *journal.Seal
	}{{"off", nil}, {"on", seal("root/task", "00000001")}} {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			o, err := filelog.Own(ctx, filepath.Join(b.TempDir(), "task"), filelog.Options{By: "bench", Seal: c.seal})
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close()
			for b.Loop() {
				if _, err := o.Append(ctx, benchDraft()); err != nil {
					b.Fatal(err)
				}
				if err := o.Barrier(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func crcOf(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}
