package store

import (
	"context"
	"slices"
)

// CheckOptions say what a check may change. The zero value changes nothing.
type CheckOptions struct {
	// Repair mends what can be mended without losing a byte: an unfinished last
	// line of a journal is set aside, and a damaged file of Roo's is written again
	// from the journal. What was there is kept, and Finding.Copy says where. A task
	// of another tool that has no journal yet is only mended when it is named: that
	// makes it a task of ours. Lost commits and payloads cannot be mended. What dead
	// processes of ours left half written, and nobody can need, is removed.
	Repair bool
	// Rebuild makes derived data again where it is missing, behind, or says something
	// else than what it is derived from. What is right stays as it is.
	Rebuild bool

	// Spill, when not "", is a folder besides root and cache in which exports may have
	// left unfinished files: the current one.
	Spill string
}

// Report is what a check found, and what it did about it.
type Report struct {
	Tasks    int       `json:"tasks"`
	OK       int       `json:"ok"`
	Damaged  []Finding `json:"damaged"`
	Repaired []Finding `json:"repaired"` // mended, removed or built again; Damaged holds what is left

	// Nothing is lost by these: derived data that is missing or behind, and what
	// interrupted work left lying about.
	Stale     []Finding `json:"stale"`
	Leftovers []Finding `json:"leftovers"`

	// Tasks that hold something open, or settings of their own, and whose logs are not proven to
	// be this root's own: they do not go on by themselves. See Trust.
	Untrusted []Finding `json:"untrusted"`

	// Contents of checkpoints that were read and compared, and their bytes.
	Contents     int   `json:"contents"`
	ContentBytes int64 `json:"content_bytes"`
}

// Finding is one thing that is wrong, with one task or, when it has no ID, with what
// is kept for all of them.
type Finding struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost"`
	Copy      string `json:"copy,omitempty"` // where the bytes lie that a repair replaced

	kind     kind
	mendable bool
	rotten   string // the file of Roo's that has to be written again
	remove   string // the leftover that a repair removes
}

// kind says what a finding means.
type kind uint8

const (
	faulty kind = iota
	stale
	leftover
	untrusted
)

func (f Finding) can() Finding      { f.mendable = true; return f }
func (f Finding) of(k kind) Finding { f.kind = k; return f }

// add sorts findings into the report.
func (r *Report) add(list []Finding) {
	for _, f := range list {
		switch f.kind {
		case stale:
			r.Stale = append(r.Stale, f)
		case leftover:
			r.Leftovers = append(r.Leftovers, f)
		case untrusted:
			r.Untrusted = append(r.Untrusted, f)
		default:
			r.Damaged = append(r.Damaged, f)
		}
	}
}

func anyFaulty(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.kind == faulty })
}

// Check verifies tasks: every commit, every payload, every file, and that what is
// derived agrees. Without ids, all tasks, those in the trash, and what is kept for
// all of them. Folders without message bytes count as tasks that are in order.
func (s *Store) Check(ctx context.Context, ids []string, o CheckOptions) (Report, error) {
	out := Report{Damaged: []Finding{}, Repaired: []Finding{}, Stale: []Finding{}, Leftovers: []Finding{}, Untrusted: []Finding{}}
	refs, err := s.Chosen(ctx, ids)
	if err != nil {
		return Report{}, err
	}
	for i, ref := range refs {
		Tell(ctx, Progress{What: "checking", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		found, done := s.checkAndMend(ctx, ref, o, len(ids) > 0)
		out.Tasks++
		if !anyFaulty(found) {
			out.OK++
		}
		out.add(found)
		out.Repaired = append(out.Repaired, done...)
	}
	if len(ids) == 0 {
		s.checkRest(ctx, refs, o, &out)
	}
	return out, ctx.Err()
}

// checkAndMend gives what is wrong with a task in the end, and what is no more.
func (s *Store) checkAndMend(ctx context.Context, ref Ref, o CheckOptions, named bool) (found, done []Finding) {
	found = s.check(ctx, ref)
	if s.mends(ref, found, o, named) {
		copies, err := s.repair(ctx, ref, found, o)
		if err != nil {
			// One task that cannot be mended does not keep the others from it.
			f := Finding{ID: ref.ID, Path: ref.Dir, File: ref.Log, Problem: err.Error()}
			return append(found, f), nil
		}
		left := s.check(ctx, ref)
		done = mended(found, left, copies)
		found = left
	}
	if o.Repair {
		left, removed := sweep(found)
		found, done = left, append(done, removed...)
	}
	return found, done
}

// mends decides whether a task is touched.
func (s *Store) mends(ref Ref, found []Finding, o CheckOptions, named bool) bool {
	ours := HasJournal(ref.Log)
	if o.Rebuild && ours && slices.ContainsFunc(found, func(f Finding) bool { return f.kind == stale || f.rotten != "" }) {
		return true
	}
	if !o.Repair || !slices.ContainsFunc(found, func(f Finding) bool { return f.kind == faulty && f.mendable }) {
		return false
	}
	return ours || ref.Own || named && continuedInPlace(ref.Tool) && !linked(ref.Dir)
}

// Chosen are the tasks that ids name, or all.
func (s *Store) Chosen(ctx context.Context, ids []string) ([]Ref, error) {
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
