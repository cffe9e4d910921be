package store

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/roofmt"
)

// A task that stands in two places with the same content is one task with a copy:
// a storage that was copied to another editor, or an import. Content is judged by
// the bytes of both histories. One that went on in one of the places is two tasks.

// merged puts the copies of a task into its row. The row is that of the first
// place by rank; the others are named in it and in nothing else.
func (s *Store) merged(ctx context.Context, list []Summary, refs map[string]Ref, keeps func(Summary) bool) []Summary {
	at := map[string][]int{} // by id
	for i, t := range list {
		at[t.ID] = append(at[t.ID], i)
	}
	var out []Summary
	for i, t := range list {
		same := at[t.ID]
		if len(same) == 1 {
			if keeps(t) {
				out = append(out, t)
			}
			continue
		}
		if same[0] != i {
			continue // with the first of its id
		}
		var places []Ref
		for _, j := range same {
			places = append(places, refs[list[j].Path])
		}
		for _, group := range s.groups(ctx, places) {
			var paths []string
			row := -1
			for _, r := range group {
				paths = append(paths, r.Dir)
				j := slices.IndexFunc(same, func(j int) bool { return list[j].Path == r.Dir })
				if row < 0 && keeps(list[same[j]]) {
					row = same[j]
				}
			}
			if row >= 0 {
				t := list[row]
				t.Copies = slices.DeleteFunc(paths, func(p string) bool { return p == t.Path })
				out = append(out, t)
			}
		}
	}
	return out
}

// groups sorts the places of one id into those with the same content, the best
// place of each first.
func (s *Store) groups(ctx context.Context, places []Ref) [][]Ref {
	places = slices.Clone(places)
	slices.SortStableFunc(places, func(a, b Ref) int { return rank(a) - rank(b) })
	var out [][]Ref
next:
	for _, r := range places {
		for i, group := range out {
			if sameTask(ctx, group[0], r) {
				out[i] = append(group, r)
				continue next
			}
		}
		out = append(out, []Ref{r})
	}
	return out
}

// rank: what is ours goes first, then what we continued, then the order of the
// sources.
func rank(r Ref) int {
	switch {
	case r.Own:
		return 0
	case exists(r.Log, "journal.jsonl"):
		return 1
	}
	return 2
}

// sameTask tells whether two folders hold the same histories. Two that both went
// on here have journals of their own and are never one. What cannot be read is not
// the same as anything.
func sameTask(ctx context.Context, a, b Ref) bool {
	if rank(a) < 2 && rank(b) < 2 && exists(a.Log, "journal.jsonl") && exists(b.Log, "journal.jsonl") {
		return false
	}
	files := 0
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.LegacyName, roofmt.TranscriptName(a.ID)} {
		same, bytes := sameFile(ctx, filepath.Join(a.Dir, name), filepath.Join(b.Dir, name))
		if !same {
			return false
		}
		if bytes > 0 {
			files++
		}
	}
	return files > 0 // two empty folders have nothing in common
}

// sameFile compares two files, and says how long they are. Two that are both not
// there are the same.
func sameFile(ctx context.Context, a, b string) (same bool, size int64) {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	switch {
	case os.IsNotExist(errA) && os.IsNotExist(errB):
		return true, 0
	case errA != nil || errB != nil || !infoA.Mode().IsRegular() || !infoB.Mode().IsRegular() || infoA.Size() != infoB.Size():
		return false, 0
	case os.SameFile(infoA, infoB):
		return true, infoA.Size()
	}
	f, err := os.Open(a)
	if err != nil {
		return false, 0
	}
	defer f.Close()
	g, err := os.Open(b)
	if err != nil {
		return false, 0
	}
	defer g.Close()
	one, two := make([]byte, 64<<10), make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, errA := io.ReadFull(f, one)
		m, errB := io.ReadFull(g, two)
		if !bytes.Equal(one[:n], two[:m]) {
			return false, 0
		}
		if errA != nil || errB != nil {
			return ended(errA) && ended(errB), infoA.Size()
		}
	}
	return false, 0
}

func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF } //nolint:errorlint // ReadFull returns just these
