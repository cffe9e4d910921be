package doctor

import (
	"slices"

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

// Report is what a check found and what it repaired.
type Report struct {
	Tasks    int       `json:"tasks"`
	OK       int       `json:"ok"`
	Damaged  []Finding `json:"damaged"`
	Repaired []Finding `json:"repaired"` // repaired, removed or rebuilt; Damaged holds the rest

	// These lose nothing: derived data that is missing or behind, and what interrupted work left.
	Stale     []Finding `json:"stale"`
	Leftovers []Finding `json:"leftovers"`

	// Tasks that hold something open or settings of their own, and whose journals are not proven to be this root's own:
	// they do not continue by themselves. See store.Store.Trust.
	Untrusted []Finding `json:"untrusted"`

	// Contents of checkpoints that were read and compared, and their bytes. The caller adds them.
	Contents     int   `json:"contents"`
	ContentBytes int64 `json:"content_bytes"`
}

// Finding is one thing that is wrong, with one task or, when it has no ID, with what is kept for all tasks.
type Finding struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost"`
	Copy      string `json:"copy,omitempty"` // the bytes that a repair replaced

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
func aboutTask(ref store.Ref, file, problem, recovered, lost string) Finding {
	return Finding{
		ID:        ref.ID,
		Path:      ref.Dir,
		File:      file,
		Problem:   problem,
		Recovered: recovered,
		Lost:      lost,
	}
}

func (f Finding) withRepair() Finding     { f.repairable = true; return f }
func (f Finding) withKind(k kind) Finding { f.kind = k; return f }

// fromMismatch is the finding that derived data differs.
func fromMismatch(m store.Mismatch) Finding {
	f := Finding{
		ID:         m.ID,
		Path:       m.Path,
		File:       m.File,
		Problem:    m.Problem,
		rewrite:    m.Rewrite,
		repairable: !m.Unrepairable,
	}
	if m.Stale {
		f.kind = stale
	}
	if m.Source != "" {
		f.Recovered = "it is derived from " + m.Source
	}
	return f
}

func fromMismatches(list []store.Mismatch) []Finding {
	var out []Finding
	for _, m := range list {
		out = append(out, fromMismatch(m))
	}
	return out
}

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

func anyDamaged(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.kind == damaged })
}

// doctor is one check.
type doctor struct {
	store *store.Store
	opt   Options
}
