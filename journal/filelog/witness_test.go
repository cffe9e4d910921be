package filelog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// copied is a copy of a folder, as cp -a makes it: every file has another inode.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// cutLines removes the last n lines of a log.
func cutLines(t testing.TB, dir string, n int) {
	t.Helper()
	path := filepath.Join(dir, "journal.jsonl")
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(log, []byte("\n"))
	size := 0
	for _, l := range lines[:len(lines)-1-n] {
		size += len(l)
	}
	if err := os.Truncate(path, int64(size)); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// witnessed makes a log of six commits in epoch 2, with an index and a payload.
func witnessed(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	add(t, o, 3)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o = mustOwn(t, dir, filelog.Options{})
	if _, err := o.PutBlob(t.Context(), []byte("payload")); err != nil {
		t.Fatal(err)
	}
	add(t, o, 1)
	if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 6, Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A copied log that lacks what the files beside it say was synced is damaged, and its
// next owner gives no number to a second commit.
func TestCopiedLogLacksItsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		harm  func(t *testing.T, dir string)
		known uint64
		seqs  []uint64
		lost  []uint64
		epoch uint64 // of the next owner
	}{
		{"whole", func(*testing.T, string) {}, 0, []uint64{1, 2, 3, 4, 5, 6}, nil, 3},
		{"whole, and known outside", func(*testing.T, string) {}, 6, []uint64{1, 2, 3, 4, 5, 6}, nil, 3},
		{"cut at a line's end", func(t *testing.T, dir string) { cutLines(t, dir, 2) }, 0, []uint64{1, 2, 3, 4}, []uint64{5, 6}, 3},
		{"zeroed end", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "journal.jsonl")
			log, _ := os.ReadFile(path)
			at := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
			clear(log[at:])
			put(t, dir, "journal.jsonl", log)
		}, 0, []uint64{1, 2, 3, 4, 5}, []uint64{6}, 3},
		{"cut, without the record", func(t *testing.T, dir string) { cutLines(t, dir, 2); remove(t, dir, "journal.lock") }, 0, []uint64{1, 2, 3, 4}, []uint64{5, 6}, 2},
		{"cut, the record damaged", func(t *testing.T, dir string) { cutLines(t, dir, 2); put(t, dir, "journal.lock", []byte("x")) }, 0, []uint64{1, 2, 3, 4}, []uint64{5, 6}, 2},
		{"cut, only known outside", func(t *testing.T, dir string) {
			cutLines(t, dir, 2)
			remove(t, dir, "journal.lock", "journal.idx")
		}, 5, []uint64{1, 2, 3, 4}, []uint64{5}, 2},
		{"cut, nobody knows", func(t *testing.T, dir string) {
			cutLines(t, dir, 2)
			remove(t, dir, "journal.lock", "journal.idx")
		}, 0, []uint64{1, 2, 3, 4}, nil, 2},
		{"deleted", func(t *testing.T, dir string) { remove(t, dir, "journal.jsonl") }, 0, nil, []uint64{1, 2, 3, 4, 5, 6}, 3},
		{"deleted and begun anew", func(t *testing.T, dir string) { put(t, dir, "journal.jsonl", nil) }, 0, nil, []uint64{1, 2, 3, 4, 5, 6}, 3},
		{"deleted with the record", func(t *testing.T, dir string) { remove(t, dir, "journal.jsonl", "journal.lock") }, 0, nil, []uint64{1, 2, 3, 4, 5, 6}, 2},
		{"deleted but for a payload", func(t *testing.T, dir string) { remove(t, dir, "journal.jsonl", "journal.lock", "journal.idx") }, 0, nil, []uint64{1}, 1},
		{"deleted, known outside", func(t *testing.T, dir string) { remove(t, dir, "journal.jsonl", "journal.lock", "journal.idx") }, 6, nil, []uint64{1, 2, 3, 4, 5, 6}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copied(t, witnessed(t))
			c.harm(t, dir)
			if !filelog.Exists(dir) {
				t.Error("there is no journal, it says")
			}
			read := func() (seqs, lost []uint64) {
				r, err := filelog.OpenKnowing(dir, nil, c.known)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				for commit, err := range r.Read(context.Background(), 1) {
					var d *journal.DamageError
					switch {
					case errors.As(err, &d):
						lost = append(lost, d.Seq)
					case err != nil:
						t.Fatal(err)
					default:
						seqs = append(seqs, commit.Seq)
					}
				}
				h, err := r.Health(t.Context())
				if err != nil || len(h.Damaged) != len(lost) {
					t.Errorf("health: %+v, %v", h, err)
				}
				return seqs, lost
			}
			seqs, lost := read()
			if diff := cmp.Diff([][]uint64{c.seqs, c.lost}, [][]uint64{seqs, lost}); diff != "" {
				t.Error(diff)
			}
			o := mustOwn(t, dir, filelog.Options{Known: c.known})
			if o.Epoch() != c.epoch {
				t.Errorf("epoch %d, want %d", o.Epoch(), c.epoch)
			}
			add(t, o, 1)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			next := uint64(len(c.seqs) + len(c.lost))
			seqs, lost = read()
			if diff := cmp.Diff([][]uint64{append(c.seqs, next+1, next+2), c.lost}, [][]uint64{seqs, lost}); diff != "" {
				t.Errorf("afterwards: %s", diff)
			}
		})
	}
}

// A folder in which no commit was ever made is no journal.
func TestNoTraceOfAJournal(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "journal.lock", []byte("\x00\x00\x00"))
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir, filepath.Join("blobs", "tmp-half"), []byte("x"))
	if _, err := filelog.OpenReader(dir); !errors.Is(err, journal.ErrNotFound) || filelog.Exists(dir) {
		t.Fatal(err)
	}
	o := mustOwn(t, dir, filelog.Options{})
	defer o.Close()
	if head, err := o.Head(t.Context()); head != 1 || err != nil || o.Epoch() != 1 {
		t.Fatal(head, o.Epoch(), err)
	}
}

// A fork knows how much of its base counts: a base that lacks that is damaged.
func TestTheBaseOfACopiedForkLacksItsEnd(t *testing.T) {
	base := t.TempDir()
	wrote(t, base, "a", "b")
	fork := begun(t, base, 3)
	wrote(t, fork, "x")
	dir := copied(t, fork)
	seqs, lost := found(t, dir)
	if diff := cmp.Diff([][]uint64{{1, 2, 3, 4, 5}, nil}, [][]uint64{seqs, lost}); diff != "" {
		t.Fatal(diff)
	}
	cutLines(t, filepath.Join(dir, "base"), 1)
	remove(t, filepath.Join(dir, "base"), existing(filepath.Join(dir, "base"), "journal.idx")...)
	seqs, lost = found(t, dir)
	if diff := cmp.Diff([][]uint64{{1, 2, 4, 5}, {3}}, [][]uint64{seqs, lost}); diff != "" {
		t.Fatal(diff)
	}
}

func existing(dir string, names ...string) (out []string) {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// Over any number of commits that a record claims, telling costs little.
func TestARecordMayClaimAnything(t *testing.T) {
	dir := copied(t, witnessed(t))
	put(t, dir, "journal.lock", filelog.RecordOf(1<<40, 1<<60, 1<<50, 7))
	_, lost := found(t, dir)
	if len(lost) == 0 || len(lost) > 100 {
		t.Fatalf("%d are lost", len(lost))
	}
	o := mustOwn(t, dir, filelog.Options{})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}
