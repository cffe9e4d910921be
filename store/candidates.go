package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
)

// Candidates are the tasks that a search looks through: those that a list has, each in the first of its places that the
// filter keeps. Every file of them was compared with what the catalogue was derived from. The caller closes them.
type Candidates struct {
	Tasks   []Candidate
	Sources []api.SourceState // nothing is counted but tasks

	lines *lines
}

// Candidate is a task to look through.
type Candidate struct {
	Ref   Ref
	TS    int64  // of its row
	Size  int64  // of Roo's files
	Stamp string // while it stays the same, so do the task's messages; "" = unknown

	line *entry
}

// Candidates finds the tasks that a filter keeps. Its Sort, Limit and Cursor do not count.
func (s *Store) Candidates(ctx context.Context, f Filter) (*Candidates, error) {
	l, err := s.lines(ctx, catalog.ReadRows(ctx, s.opt.Cache, build(), false), true)
	if err != nil {
		l.keep(ctx)
		l.close()
		return nil, err
	}
	l.mark()
	out := &Candidates{Sources: l.states, lines: l}
	for _, ln := range l.united(ctx, f.matcher()) {
		if ln.lost {
			continue
		}
		c := Candidate{Ref: l.ref(ln), TS: ln.row.TS, Size: ln.row.Size, line: ln}
		if ln.row.Known {
			c.Stamp = fmt.Sprintf("%016x", catalog.Mix(catalog.MixText(ln.row.Digest, ln.row.Files), ln.row.Item))
		}
		out.Tasks = append(out.Tasks, c)
	}
	l.keep(ctx)
	return out, nil
}

// Summary is a candidate's row as it is shown.
func (c *Candidates) Summary(ctx context.Context, of Candidate) api.Summary {
	return c.lines.summaries(ctx, []*entry{of.line})[0]
}

// Unchanged reports whether a candidate's stamp is still that of the task.
func (c *Candidates) Unchanged(of Candidate) bool { return of.Stamp != "" && c.lines.holds(of.line) }

// Close lets go of the folders and of the catalogue.
func (c *Candidates) Close() { c.lines.close() }
