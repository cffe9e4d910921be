package doctor

import (
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// Options are the options of Check. The zero value changes nothing.
type Options struct {
	// Repair repairs what can be repaired without losing a byte: it sets an unfinished last line of a journal aside and
	// writes a damaged file of Roo's again from the journal. Finding.Copy names the replaced bytes. A task of another
	// tool that has no journal yet is repaired only when it is named, because that makes it a task of ours. Repair also
	// removes what dead processes of ours left half written and nothing can need.
	Repair bool
	// Rebuild makes derived data again where it is missing, behind or wrong. Correct data stays as it is.
	Rebuild bool

	// SpillDir, when not "", is a folder besides root and cache in which exports may have left unfinished files: the
	// current folder.
	SpillDir string
}

// finding is one thing that is wrong, and what a repair does about it.
type finding struct {
	api.Finding
	kind       kind
	repairable bool
	rewrite    string // the derived file that a repair writes again
	remove     string // the leftover that a repair removes
}

// kind is the list of the report that a finding belongs to.
type kind uint8

const (
	damaged kind = iota
	stale
	leftover
	untrusted
)

// aboutTask begins a finding about a task.
func aboutTask(ref store.Ref, file, problem, recovered, lost string) finding {
	f := about(ref.Dir, file, problem, recovered, lost)
	f.ID = ref.ID
	return f
}

// about begins a finding about what is kept for all tasks.
func about(path, file, problem, recovered, lost string) finding {
	return finding{Finding: api.Finding{
		Path:      path,
		File:      file,
		Problem:   problem,
		Recovered: recovered,
		Lost:      lost,
	}}
}

// documents are findings without what only a repair needs.
func documents(list []finding) []api.Finding {
	out := make([]api.Finding, len(list))
	for i, f := range list {
		out[i] = f.Finding
	}
	return out
}

func (f finding) withRepair() finding     { f.repairable = true; return f }
func (f finding) withKind(k kind) finding { f.kind = k; return f }

// fromMismatch is the finding that derived data differs.
func fromMismatch(m store.Mismatch) finding {
	f := about(m.Path, m.File, m.Problem, "", "")
	f.ID, f.rewrite, f.repairable = m.ID, m.Rewrite, !m.Unrepairable
	if m.Stale {
		f.kind = stale
	}
	if m.Source != "" {
		f.Recovered = "it is derived from " + m.Source
	}
	return f
}

func fromMismatches(list []store.Mismatch) []finding {
	var out []finding
	for _, m := range list {
		out = append(out, fromMismatch(m))
	}
	return out
}

// add sorts findings into the lists of a report.
func add(r *api.Checkup, list []finding) {
	for _, f := range list {
		to := &r.Damaged
		switch f.kind {
		case stale:
			to = &r.Stale
		case leftover:
			to = &r.Leftovers
		case untrusted:
			to = &r.Untrusted
		}
		*to = append(*to, f.Finding)
	}
}

func anyDamaged(list []finding) bool {
	return slices.ContainsFunc(list, func(f finding) bool { return f.kind == damaged })
}

// doctor is one check.
type doctor struct {
	store *store.Store
	opt   Options
}
