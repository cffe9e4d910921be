package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// CheckOptions say what a check may change. The zero value changes nothing.
type CheckOptions struct {
	Repair  bool // set torn tails aside and put back Roo's files from the journal
	Rebuild bool // delete and rebuild what is derived
}

// Report is what a check found.
type Report struct {
	Tasks    int       `json:"tasks"`
	OK       int       `json:"ok"`
	Damaged  []Finding `json:"damaged"`
	Repaired []Finding `json:"repaired"`
}

// Finding is one thing that is wrong with one task.
type Finding struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost"`
}

// Check verifies tasks: every commit, every blob, every file. Without ids, all.
// Folders without message bytes count as tasks that are in order.
func (s *Store) Check(ctx context.Context, ids []string, o CheckOptions) (Report, error) {
	refs, err := s.chosen(ctx, ids)
	if err != nil {
		return Report{}, err
	}
	out := Report{Damaged: []Finding{}, Repaired: []Finding{}}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out.Tasks++
		found := s.check(ctx, ref)
		if (o.Rebuild || o.Repair && len(found) > 0) && (exists(ref.Log, "journal.jsonl") || ref.Own && len(found) > 0) {
			if err := s.repair(ctx, ref, o); err != nil {
				// One task that cannot be mended does not keep the others from it.
				found = append(found, Finding{ID: ref.ID, Path: ref.Dir, File: ref.Log, Problem: err.Error()})
			} else {
				left := s.check(ctx, ref)
				out.Repaired = append(out.Repaired, mended(found, left)...)
				found = left
			}
		}
		if len(found) == 0 {
			out.OK++
		}
		out.Damaged = append(out.Damaged, found...)
	}
	return out, nil
}

// mended are the findings that are gone.
func mended(before, after []Finding) []Finding {
	var out []Finding
	for _, f := range before {
		if !slices.Contains(after, f) {
			out = append(out, f)
		}
	}
	return out
}

func (s *Store) chosen(ctx context.Context, ids []string) ([]Ref, error) {
	if len(ids) == 0 {
		refs, _, err := s.refs(ctx)
		return refs, err
	}
	var out []Ref
	for _, id := range ids {
		ref, err := s.Find(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
	}
	return out, nil
}

// check reads one task wholly and changes nothing.
func (s *Store) check(ctx context.Context, ref Ref) []Finding {
	find := func(file, problem, recovered, lost string) Finding {
		return Finding{ID: ref.ID, Path: ref.Dir, File: file, Problem: problem, Recovered: recovered, Lost: lost}
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return []Finding{find(ref.Dir, err.Error(), "", "")}
	}
	defer v.Close()
	var out []Finding
	for _, d := range v.Summary.Damaged {
		out = append(out, find(d.File, d.Problem, d.Recovered, d.Lost))
	}
	if v.Log == nil {
		return out
	}
	health, err := v.Log.Health(ctx)
	if err != nil {
		return append(out, find("journal.jsonl", err.Error(), "", ""))
	}
	if health.TornTail != nil {
		out = append(out, find("journal.jsonl", "unfinished last line: "+health.TornTail.Reason, "everything before it", "nothing that was acknowledged"))
	}
	for _, h := range health.MissingBlobs {
		out = append(out, find(blobFile(h), journal.ErrBlobMissing.Error(), "", "the payload"))
	}
	for _, h := range health.DamagedBlobs {
		out = append(out, find(blobFile(h), journal.ErrBlobDamaged.Error(), "", "the payload"))
	}
	return out
}

func blobFile(h journal.Hash) string {
	return filepath.Join("blobs", string(h[:2]), string(h))
}

// repair owns the task, which sets a torn tail aside, takes in what is whole,
// and writes Roo's files again from the journal. Originals that it replaces are
// in the journal's blobs before that.
func (s *Store) repair(ctx context.Context, ref Ref, o CheckOptions) error {
	if o.Rebuild {
		if holder, held := filelog.Holder(ref.Log); held {
			return &journal.BusyError{Dir: ref.Log, Holder: holder}
		}
		for _, name := range []string{"journal.idx", watermarkName} {
			if err := os.Remove(filepath.Join(ref.Log, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("rebuild %s of task %s: %w", name, ref.ID, err)
			}
		}
	}
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	if ref.Own {
		if err := roofmt.Sweep(ctx, ref.Dir); err != nil {
			return errors.Join(err, owned.Task.Close(ctx))
		}
	}
	return owned.Task.Close(ctx)
}
