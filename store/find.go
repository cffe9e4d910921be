package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/store/overlay"
)

// OwnSource is the name of Roost's own root among the sources.
const OwnSource = overlay.OwnSource

// Ref is one task in one place.
type Ref struct {
	ID     string
	Source string // "roost", or the source's name, e.g. "roo-code"
	Tool   string // roost, roo, cline, zoo, kilo
	Dir    string // the folder with the JSON files; of a subagent of Cline's its transcript
	Log    string // the folder with journal, index, lock and blobs; it may not exist yet
	Own    bool   // it is in Roost's own root
}

// Foreign reports whether another tool made the task and still owns its folder.
func (r Ref) Foreign() bool { return !r.Own }

// ErrNotFound: no task has that reference.
var ErrNotFound = errors.New("no such task")

// AmbiguousError: several tasks match a reference.
type AmbiguousError struct {
	Given      string
	Candidates []Ref
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d tasks: %s", e.Given, len(e.Candidates), strings.Join(e.Names(), ", "))
}

// Names are the candidates' ids, with the source where several candidates have the same id.
func (e *AmbiguousError) Names() []string {
	ids := map[string]int{}
	for _, c := range e.Candidates {
		ids[c.ID]++
	}
	names := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		if names[i] = c.ID; ids[c.ID] > 1 {
			names[i] = c.Source + ":" + c.ID
		}
	}
	return names
}

// RootError: Roost's own root cannot be used. There is no silent fallback.
type RootError struct {
	Path  string
	Check string // the check that failed
	Err   error
}

func (e *RootError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("root %s: %s: %v", e.Path, e.Check, e.Err)
	}
	return fmt.Sprintf("root %s: %s", e.Path, e.Check)
}

func (e *RootError) Unwrap() error { return e.Err }

// CheckID is an error for a task whose folder name cannot become a path of ours.
func CheckID(r Ref) error {
	if !api.ValidTaskID(r.ID) {
		return fmt.Errorf("task folder %s: its name cannot be a task id of Roost; import it under a new one", r.Dir)
	}
	return nil
}

// OwnRef is a task in Roost's own root.
func (s *Store) OwnRef(id string) Ref {
	dir := filepath.Join(s.TasksDir(), id)
	return Ref{ID: id, Source: OwnSource, Tool: "roost", Dir: dir, Log: dir, Own: true}
}

// RefsAndSources names every task folder of every source, also empty and damaged ones, without those that were deleted
// in Roost, and the state of each source. It opens no task: names cost one look into each source. An overlay that cannot
// be read hides nothing.
func (s *Store) RefsAndSources(ctx context.Context) ([]Ref, []api.SourceState, error) {
	all, states, err := s.everyRef(ctx)
	if err != nil {
		return nil, nil, err
	}
	marks, err := s.Overlay(ctx)
	if err != nil {
		return all, states, ctx.Err()
	}
	return slices.DeleteFunc(all, func(r Ref) bool {
		hidden := marks.Hidden(r.Source, r.ID)
		for i := range states {
			if hidden && states[i].Name == r.Source {
				states[i].Tasks--
			}
		}
		return hidden
	}), states, nil
}

// everyRef lists every task folder of every source.
func (s *Store) everyRef(ctx context.Context) ([]Ref, []api.SourceState, error) {
	var out []Ref
	var states []api.SourceState
	list, err := s.sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, src := range list {
		state := src.state()
		out = slices.Grow(out, len(src.ids))
		for _, id := range src.ids {
			out = append(out, s.ref(src, id))
		}
		state.Tasks = len(src.ids)
		states = append(states, state)
	}
	return out, states, nil
}

func (s *Store) ref(src Source, id string) Ref {
	if r, ok := src.gone[id]; ok {
		return r
	}
	r := Ref{ID: id, Source: src.Name, Tool: src.Tool, Dir: filepath.Join(src.Tasks, id), Own: src.Own}
	if dir, ok := src.at[id]; ok {
		r.Dir = dir
	}
	if r.Log = r.Dir; !src.Own {
		r.Log = filepath.Join(s.AdoptedDir(src.Name), id)
	}
	return r
}

// Find resolves what a user typed: an id, its unique beginning or end, or SOURCE:ID. It creates nothing.
func (s *Store) Find(ctx context.Context, given string) (Ref, error) {
	found, _, err := s.find(ctx, given)
	if err != nil {
		return Ref{}, err
	}
	return found[0], nil
}

// FindAll resolves several names; all tasks when there are none.
func (s *Store) FindAll(ctx context.Context, ids []string) ([]Ref, error) {
	if len(ids) == 0 {
		return s.Refs(ctx)
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

// FindWithCopies is Find, with the folders of the task's copies of the same content in other places, as lists show them.
// Most tasks have none. Read leaves them out: comparing them costs a read of all histories, and work on a task does not
// need them.
func (s *Store) FindWithCopies(ctx context.Context, given string) (Ref, []string, error) {
	found, all, err := s.find(ctx, given)
	if err != nil {
		return Ref{}, nil, err
	}
	ref := found[0]
	if strings.Contains(given, ":") { // the places of other sources were left out
		places := slices.DeleteFunc(all, func(r Ref) bool { return r.ID != ref.ID })
		if len(places) > 1 {
			groups := s.Groups(ctx, places)
			at := slices.IndexFunc(groups, func(g []Ref) bool { return slices.Contains(g, ref) })
			found = groups[max(at, 0)]
		}
	}
	copies := []string{}
	for _, r := range found {
		if r != ref {
			copies = append(copies, r.Dir)
		}
	}
	return ref, copies, ctx.Err()
}

// find gives the places of the task that a user named, the best one first, and all tasks. With a source in the name there
// is one place.
func (s *Store) find(ctx context.Context, given string) (found, all []Ref, err error) {
	all, states, err := s.RefsAndSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	part := matching(given, all, func(r Ref, source string) bool { return r.Source == source || r.Tool == source },
		func(r Ref) string { return r.ID })
	groups := s.distinct(ctx, part)
	switch len(groups) {
	case 0:
		if t, err := s.FindDeleted(ctx, given); err == nil {
			return nil, nil, &TrashedError{Given: given, Name: t.Name}
		}
		return nil, nil, fmt.Errorf("%w: %q%s", ErrNotFound, given, outOfReach(states))
	case 1:
		return groups[0], all, nil
	}
	many := &AmbiguousError{Given: given}
	for _, g := range groups {
		many.Candidates = append(many.Candidates, g[0])
	}
	return nil, nil, many
}

// matching are the tasks that a user may have named: by the whole name, else by its beginning or end, and of a source
// where one is given.
func matching[T any](given string, all []T, in func(T, string) bool, name func(T) string) []T {
	source, want, named := strings.Cut(given, ":")
	if !named {
		want = given
	}
	var exact, part []T
	for _, t := range all {
		switch n := name(t); {
		case named && !in(t, source):
		case n == want:
			exact = append(exact, t)
		case len(want) >= 3 && (strings.HasPrefix(n, want) || strings.HasSuffix(n, want)):
			part = append(part, t)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return part
}

// outOfReach is a note for a task that was not found: it may be in a storage that cannot be read now. It is "" when all
// storages can be read.
func outOfReach(states []api.SourceState) string {
	for _, state := range states {
		if strings.HasPrefix(state.State, unreachable) {
			return "; it may lie in " + state.Path + ", which cannot be reached now"
		}
	}
	return ""
}

// distinct groups the places of each task: its copies in other places are the same task.
func (s *Store) distinct(ctx context.Context, found []Ref) [][]Ref {
	var out [][]Ref
	done := map[string]bool{}
	for _, r := range found {
		if !done[r.ID] {
			done[r.ID] = true
			places := slices.DeleteFunc(slices.Clone(found), func(o Ref) bool { return o.ID != r.ID })
			out = append(out, s.Groups(ctx, places)...)
		}
	}
	return out
}

// UnlistedTasks are the tasks that no list shows, given those that lists show: the tasks in the trash, those deleted in
// another tool's storage, and those continued in a storage that is not configured now. Its error is about the trash;
// the other tasks come with it.
func (s *Store) UnlistedTasks(ctx context.Context, listed []Ref) ([]Ref, error) {
	var out []Ref
	deleted, err := names(s.TrashDir())
	for _, name := range deleted {
		out = append(out, s.TrashRef(name))
	}
	known := map[string]bool{}
	for _, r := range listed {
		known[r.Log] = true
	}
	for _, r := range s.adoptedLogs() {
		if known[r.Log] || !HasJournal(r.Log) {
			continue
		}
		dir, tool := adoptedFrom(ctx, r.Log)
		r.Dir, r.Tool = cmp.Or(dir, r.Log), tool
		out = append(out, r)
	}
	return out, err
}

// adoptedLogs are the folders of journals of tasks in other tools' storages.
func (s *Store) adoptedLogs() (out []Ref) {
	sources, _ := names(s.AdoptedDir("")) // there may be none
	for _, source := range sources {
		ids, _ := names(s.AdoptedDir(source))
		for _, id := range ids {
			log := filepath.Join(s.AdoptedDir(source), id)
			out = append(out, Ref{ID: id, Source: source, Dir: log, Log: log})
		}
	}
	return out
}

// Refs is RefsAndSources without the sources.
func (s *Store) Refs(ctx context.Context) ([]Ref, error) {
	refs, _, err := s.RefsAndSources(ctx)
	return refs, err
}

// Recent are the tasks with a journal of ours that was written to since a time, in Unix
// milliseconds, the latest first, and no more than limit. It looks at the journals' times
// alone, and reads none.
func (s *Store) Recent(ctx context.Context, since int64, limit int) ([]Ref, error) {
	type written struct {
		ref Ref
		at  time.Time
	}
	var found []written
	own, err := names(s.TasksDir())
	if err != nil {
		return nil, fmt.Errorf("look for tasks: %w", err)
	}
	refs := s.adoptedLogs()
	for _, id := range own {
		refs = append(refs, s.OwnRef(id))
	}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(ref.Log, journalName))
		if err == nil && info.ModTime().UnixMilli() >= since {
			found = append(found, written{ref, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(x, y written) int { return y.at.Compare(x.at) })
	out := make([]Ref, 0, min(limit, len(found)))
	for _, f := range found[:min(limit, len(found))] {
		out = append(out, f.ref)
	}
	return out, nil
}

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
	l, err := s.lines(ctx, catalog.ReadRows(ctx, s.opt.Cache, build(), catalog.Bare), true)
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
