package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// mended are the findings that are gone, with the copies of what was there.
func mended(before, after []Finding, copies map[string]string) []Finding {
	var out []Finding
	for _, f := range before {
		if f.kind != leftover && !slices.Contains(after, f) {
			f.Copy = copies[filepath.Base(f.File)]
			out = append(out, f)
		}
	}
	return out
}

// repair owns the task, which sets a torn tail aside, takes in what is whole,
// and writes Roo's files again from the journal. It returns where the bytes went
// that were replaced, by file name.
func (s *Store) repair(ctx context.Context, ref Ref, found []Finding, o CheckOptions) (map[string]string, error) {
	if err := forgetDerived(ref, found, o); err != nil {
		return nil, err
	}
	before := tornTails(ref.Log)
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	t := owned.Task
	if ref.Own {
		if err := roofmt.Sweep(ctx, ref.Dir); err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
	}
	copies := map[string]string{}
	keep := func(name, blob string) {
		if len(blob) > 2 {
			copies[name] = filepath.Join(t.Ref.Log, blobFile(journal.Hash(blob)))
		}
	}
	for _, f := range found {
		if f.rotten == "" || f.rotten == "journal.idx" {
			continue
		}
		blob, err := t.distrust(ctx, f)
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		keep(f.rotten, blob)
	}
	adopted := t.State().Adopted
	if err := t.Close(ctx); err != nil {
		return nil, fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	if adopted != nil {
		for _, f := range adopted.Files {
			if copies[f.Name] == "" {
				keep(f.Name, f.Blob)
			}
		}
	}
	for _, change := range t.Intakes() {
		keep(change.File, change.Kept)
	}
	for _, name := range tornTails(ref.Log) {
		if !slices.Contains(before, name) {
			copies["journal.jsonl"] = filepath.Join(ref.Log, name)
		}
	}
	return copies, nil
}

// distrust keeps the bytes of a projection that is not what was written, and lets it
// be written again. The keeping is a commit like that of any refused file.
func (t *Task) distrust(ctx context.Context, f Finding) (blob string, err error) {
	hash, size, err := t.keepInside(ctx, t.Ref.Dir, f.rotten)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("task %s: keep the damaged %s: %w", t.Ref.ID, f.rotten, err)
	}
	if !t.refusedBefore(f.rotten, hash) {
		err = t.Commit(ctx, task.ForeignRefused{Name: f.rotten, Blob: hash, Size: size, Reason: f.Problem})
		if err == nil {
			err = t.Barrier(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	t.proj.mu.Lock()
	defer t.proj.mu.Unlock()
	mark := t.proj.mark.Files[f.rotten]
	mark.SHA256, mark.Shows = "damaged", ""
	t.proj.mark.Files[f.rotten] = mark
	t.proj.shown = 0
	return hash, nil
}

// forgetDerived removes what is to be made again from journal and blobs.
func forgetDerived(ref Ref, found []Finding, o CheckOptions) error {
	for _, f := range found {
		name := filepath.Base(f.File)
		if name != "journal.idx" && name != watermarkName || !o.Rebuild && f.rotten == "" {
			continue
		}
		if holder, held := filelog.Holder(ref.Log); held {
			return &journal.BusyError{Dir: ref.Log, Holder: holder}
		}
		if err := os.Remove(filepath.Join(ref.Log, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("rebuild %s of task %s: %w", name, ref.ID, err)
		}
	}
	return nil
}

// tornTails are the unfinished lines that owners set aside.
func tornTails(logDir string) []string {
	entries, err := os.ReadDir(logDir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "journal.torn-") {
			out = append(out, e.Name())
		}
	}
	return out
}
