package doctor

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
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/projection"
)

// repairedFindings are the findings that a repair removed, with the copies of what it replaced.
func repairedFindings(before, after []finding, copies map[string]string) []finding {
	var out []finding
	for _, f := range before {
		if f.kind != leftover && !slices.Contains(after, f) {
			f.Copy = copies[filepath.Base(f.File)]
			out = append(out, f)
		}
	}
	return out
}

// repair takes the task over. That sets a torn tail aside, takes in what is whole, and writes Roo's files again from
// the journal. It returns the copies of the replaced bytes by file name.
func (d *doctor) repair(ctx context.Context, ref store.Ref, found []finding) (map[string]string, error) {
	if err := d.removeDerived(ref, found); err != nil {
		return nil, err
	}
	before := tornTails(ref.Log)
	owned, err := d.store.Own(ctx, ref)
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
		if f.rewrite == "" || f.rewrite == "journal.idx" {
			continue
		}
		blob, err := t.Distrust(ctx, f.rewrite, f.Problem)
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		keep(f.rewrite, blob)
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
			copies[journalName] = filepath.Join(ref.Log, name)
		}
	}
	return copies, nil
}

// removeDerived removes what the next owner makes again from journal and blobs.
func (d *doctor) removeDerived(ref store.Ref, found []finding) error {
	for _, f := range found {
		name := filepath.Base(f.File)
		if name != "journal.idx" && name != projection.Name || !d.opt.Rebuild && f.rewrite == "" {
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

// tornTails are the files of unfinished lines that owners set aside.
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
