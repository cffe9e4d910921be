package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// finding begins a finding about a task.
func (r Ref) finding(file, problem, recovered, lost string) Finding {
	return Finding{ID: r.ID, Path: r.Dir, File: file, Problem: problem, Recovered: recovered, Lost: lost}
}

// check reads one task wholly and changes nothing.
func (s *Store) check(ctx context.Context, ref Ref) []Finding {
	v, err := s.read(ctx, ref, true)
	if err != nil {
		return append([]Finding{ref.finding(ref.Dir, cause(ref, err), "", "")}, s.leftovers(ctx, ref, nil)...)
	}
	defer v.Close()
	var out []Finding
	for _, d := range v.Summary.Damaged {
		f := ref.finding(d.File, d.Problem, d.Recovered, d.Lost)
		f.mendable = filepath.Base(d.File) != "journal.jsonl"
		out = append(out, f)
	}
	if text, err := pairs(ctx, v.State); err != nil {
		out = append(out, ref.finding(ref.Dir, err.Error(), "", ""))
	} else if text != "" {
		out = append(out, ref.finding(roofmt.APIName, text, "all that is there; a request to a model is made valid without changing it", "the other half of each"))
	}
	if v.Log == nil {
		return append(out, s.leftovers(ctx, ref, nil)...)
	}
	// A view does not look at files that need no look for showing the task.
	if folder, err := roofmt.Read(ctx, ref.Dir); err == nil {
		for _, loss := range folder.Losses {
			if loss.File == roofmt.ItemName || loss.File == roofmt.MetadataName {
				out = append(out, ref.finding(filepath.Join(ref.Dir, loss.File), loss.Problem, "it is derived from the journal", "").can())
			}
		}
		if err := folder.Close(); err != nil {
			out = append(out, ref.finding(ref.Dir, err.Error(), "", ""))
		}
	}
	health, err := v.Log.Health(ctx)
	if err != nil {
		return append(out, ref.finding("journal.jsonl", err.Error(), "", ""))
	}
	out = append(out, ofHealth(ref, health)...)
	out = append(out, s.checkStanding(ctx, v, anyFaulty(out))...)
	if _, held := filelog.Holder(ref.Log); !held { // else what is derived is on its way
		out = append(out, s.derived(ctx, v, anyFaulty(out))...)
	}
	return append(out, s.leftovers(ctx, ref, v.Log)...)
}

// checkStanding verifies the log's commits. damaged tells that it is known to lack some.
func (s *Store) checkStanding(ctx context.Context, v *View, damaged bool) []Finding {
	stands, err := s.Standing(ctx, v.Ref, v.State.Begins)
	brings := v.State.Brings()
	switch {
	case err != nil:
		return []Finding{v.Ref.finding("journal.jsonl", "it cannot be verified: "+err.Error(), "", "")}
	case stands == Altered && !damaged:
		return []Finding{v.Ref.finding("journal.jsonl", "its commits do not match their signatures, or its end is missing: it was changed outside of Roost", "what it shows; it does not go on by itself", "")}
	case stands != Ours && len(brings) > 0:
		text := map[Standing]string{
			Unsigned: "an older Roost wrote it, without signatures", Elsewhere: "it was signed in another place", Altered: "it was changed outside of Roost",
		}[stands]
		return []Finding{v.Ref.finding("journal.jsonl", text, "roost root trust lets it go on as it stands", "").holding(brings)}
	}
	return nil
}

// holding adds what a task holds that would be obeyed.
func (f Finding) holding(brings []string) Finding {
	f.Problem += "; it holds " + strings.Join(brings, "; ")
	return f.of(untrusted)
}

// ofHealth is what is wrong with a journal. Lost commits are in the folded state.
func ofHealth(ref Ref, h journal.Health) []Finding {
	var out []Finding
	if h.TornTail != nil {
		out = append(out, ref.finding("journal.jsonl", "unfinished last line: "+h.TornTail.Reason, "everything before it", "nothing that was acknowledged").can())
	}
	for _, d := range h.SetAside {
		out = append(out, ref.finding("journal.jsonl", fmt.Sprintf("at byte %d: %s", d.Offset, d.Reason), "the commits that count; its bytes stay", "").of(leftover))
	}
	for _, b := range h.MissingBlobs {
		out = append(out, ref.finding(blobFile(b), journal.ErrBlobMissing.Error(), "", "the payload"))
	}
	for _, b := range h.DamagedBlobs {
		out = append(out, ref.finding(blobFile(b), journal.ErrBlobDamaged.Error(), "", "the payload"))
	}
	return out
}

func blobFile(h journal.Hash) string {
	return filepath.Join("blobs", string(h[:2]), string(h))
}
