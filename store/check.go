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
)

// CheckOptions say what a check may change. The zero value changes nothing.
type CheckOptions struct {
	// Repair mends what can be mended without losing a byte: an unfinished last
	// line of a journal is set aside, and a damaged file of Roo's is written again
	// from the journal. What was there is kept, and Finding.Copy says where. A task
	// of another tool that has no journal yet is only mended when it is named: that
	// makes it a task of ours. Lost commits and payloads cannot be mended.
	Repair  bool
	Rebuild bool // delete and build again what is derived
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
	Copy      string `json:"copy,omitempty"` // where the bytes lie that a repair replaced

	mendable bool
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
		if s.mends(ref, found, o, len(ids) > 0) {
			copies, err := s.repair(ctx, ref, o)
			if err != nil {
				// One task that cannot be mended does not keep the others from it.
				found = append(found, Finding{ID: ref.ID, Path: ref.Dir, File: ref.Log, Problem: err.Error()})
			} else {
				left := s.check(ctx, ref)
				out.Repaired = append(out.Repaired, mended(found, left, copies)...)
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

// mends decides whether a task is touched.
func (s *Store) mends(ref Ref, found []Finding, o CheckOptions, named bool) bool {
	ours := exists(ref.Log, "journal.jsonl")
	if o.Rebuild && ours {
		return true
	}
	if !o.Repair || !slices.ContainsFunc(found, func(f Finding) bool { return f.mendable }) {
		return false
	}
	return ours || ref.Own || named && continuedInPlace(ref.Tool) && !linked(ref.Dir)
}

// mended are the findings that are gone, with the copies of what was there.
func mended(before, after []Finding, copies map[string]string) []Finding {
	var out []Finding
	for _, f := range before {
		if !slices.Contains(after, f) {
			f.Copy = copies[filepath.Base(f.File)]
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
	v, err := s.read(ctx, ref, true)
	if err != nil {
		return []Finding{find(ref.Dir, err.Error(), "", "")}
	}
	defer v.Close()
	var out []Finding
	mendable := func(f Finding) Finding { f.mendable = true; return f }
	for _, d := range v.Summary.Damaged {
		f := find(d.File, d.Problem, d.Recovered, d.Lost)
		f.mendable = filepath.Base(d.File) != "journal.jsonl"
		out = append(out, f)
	}
	if v.Log == nil {
		return out
	}
	// A view does not look at files that need no look for showing the task.
	if folder, err := roofmt.Read(ctx, ref.Dir); err == nil {
		for _, loss := range folder.Losses {
			if loss.File == roofmt.ItemName || loss.File == roofmt.MetadataName {
				out = append(out, mendable(find(filepath.Join(ref.Dir, loss.File), loss.Problem, "it is derived from the journal", "")))
			}
		}
		if err := folder.Close(); err != nil {
			out = append(out, find(ref.Dir, err.Error(), "", ""))
		}
	}
	health, err := v.Log.Health(ctx)
	if err != nil {
		return append(out, find("journal.jsonl", err.Error(), "", ""))
	}
	if health.TornTail != nil {
		out = append(out, mendable(find("journal.jsonl", "unfinished last line: "+health.TornTail.Reason, "everything before it", "nothing that was acknowledged")))
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
// and writes Roo's files again from the journal. It returns where the bytes went
// that were replaced, by file name.
func (s *Store) repair(ctx context.Context, ref Ref, o CheckOptions) (map[string]string, error) {
	if o.Rebuild {
		if err := forgetDerived(ref); err != nil {
			return nil, err
		}
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
	adopted := t.State().Adopted
	if err := t.Close(ctx); err != nil {
		return nil, fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	copies := map[string]string{}
	keep := func(name, blob string) {
		if len(blob) > 2 {
			copies[name] = filepath.Join(t.Ref.Log, blobFile(journal.Hash(blob)))
		}
	}
	if adopted != nil {
		for _, f := range adopted.Files {
			keep(f.Name, f.Blob)
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

// forgetDerived removes what can be made again from journal and blobs.
func forgetDerived(ref Ref) error {
	if holder, held := filelog.Holder(ref.Log); held {
		return &journal.BusyError{Dir: ref.Log, Holder: holder}
	}
	for _, name := range []string{"journal.idx", watermarkName} {
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
