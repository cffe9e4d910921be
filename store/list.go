package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Filter narrows and orders a list. Zero members do not filter.
type Filter struct {
	Workspace string // the folder, by whichever path it was reached
	Status    string
	Source    string // a source's or a tool's name
	Tag       string // one that the person gave it
	Query     string // words that the title or id must hold
	Since     int64  // Unix milliseconds
	Until     int64
	Sort      string // newest (default; pinned ones first), oldest, cost, tokens
	Damaged   bool   // only damaged ones
	Empty     bool   // also folders without message bytes
	Limit     int
	Cursor    string
}

// SourceState is what one storage holds.
type SourceState struct {
	Name    string `json:"name"`
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	State   string `json:"state"` // readable, partly damaged, or "unreachable: why": never just empty
	Tasks   int    `json:"tasks"`
	Damaged int    `json:"damaged"`
	Empty   int    `json:"empty"`
	Bytes   int64  `json:"bytes"` // of the tasks' files

	tasks string // the folder of task folders
}

// Listing is one page of a list and what was found in all.
type Listing struct {
	Items      []Summary
	NextCursor string
	Sources    []SourceState
}

// List reads every task of every source. One that cannot be parsed is listed as
// damaged; nothing breaks the list and nothing is written.
func (s *Store) List(ctx context.Context, f Filter) (Listing, error) {
	refs, sources, err := s.refs(ctx)
	if err != nil {
		return Listing{}, err
	}
	marks, err := s.Marks(ctx)
	if err != nil {
		marks = nil // no titles and tags of theirs, but all tasks
	}
	var found []Summary
	places := map[string]Ref{}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return Listing{}, err
		}
		sum := s.summary(ctx, ref)
		marks.Apply(&sum)
		found = append(found, sum)
		places[ref.Dir] = ref
	}
	tally(sources, found)
	all := s.merged(ctx, found, places, f.keeps)
	slices.SortStableFunc(all, f.order())
	from := 0
	if f.Cursor != "" {
		if from, err = strconv.Atoi(f.Cursor); err != nil || from < 0 {
			return Listing{}, fmt.Errorf("cursor %q: not one that a list gave", f.Cursor)
		}
	}
	out := Listing{Sources: sources}
	from = min(from, len(all))
	out.Items = all[from:]
	if f.Limit > 0 && len(out.Items) > f.Limit {
		out.Items = out.Items[:f.Limit]
		out.NextCursor = strconv.Itoa(from + f.Limit)
	}
	return out, nil
}

// summary reads one task, without what the overlay says of it; what fails to be
// read is a damaged task, not an error.
func (s *Store) summary(ctx context.Context, ref Ref) Summary {
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return Summary{
			ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Path: ref.Dir, Status: "idle",
			Damaged: []Damage{{File: ref.Dir, Problem: cause(ref, err)}},
		}.filled()
	}
	sum := v.Summary
	if err := v.Close(); err != nil {
		sum.Damaged = append(sum.Damaged, Damage{File: ref.Dir, Problem: err.Error()})
	}
	return sum
}

func (f Filter) keeps(t Summary) bool {
	switch {
	case t.Empty && !f.Empty, !t.Empty && f.Empty && f.Damaged:
		return false
	case f.Damaged && len(t.Damaged) == 0:
		return false
	case f.Workspace != "" && clean(t.Workspace) != clean(f.Workspace):
		return false
	case f.Tag != "" && !slices.Contains(t.Tags, f.Tag):
		return false
	case f.Status != "" && t.Status != f.Status:
		return false
	case f.Source != "" && t.Source != f.Source && t.Tool != f.Source:
		return false
	case f.Since != 0 && t.TS < f.Since, f.Until != 0 && t.TS >= f.Until:
		return false
	}
	text := strings.ToLower(t.Title + " " + t.ID)
	for _, word := range strings.Fields(strings.ToLower(f.Query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (f Filter) order() func(a, b Summary) int {
	newest := func(a, b Summary) int { return int(min(max(b.TS-a.TS, -1), 1)) }
	switch f.Sort {
	case "oldest":
		return func(a, b Summary) int { return newest(b, a) }
	case "cost":
		return func(a, b Summary) int { return int(min(max(b.Usage.micros()-a.Usage.micros(), -1), 1)) }
	case "tokens":
		return func(a, b Summary) int { return int(min(max(b.Usage.tokens()-a.Usage.tokens(), -1), 1)) }
	}
	return func(a, b Summary) int {
		switch { // an order by cost or age is strict, this one is for people
		case a.Pinned && !b.Pinned:
			return -1
		case b.Pinned && !a.Pinned:
			return 1
		}
		return newest(a, b)
	}
}

func (u Usage) micros() int64 {
	if u.Cost == nil {
		return 0
	}
	return int64(*u.Cost)
}

func (u Usage) tokens() int64 { return u.TokensIn + u.TokensOut + u.CacheReads + u.CacheWrites }
