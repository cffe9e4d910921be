package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
)

// AmbiguousError: several tasks match a reference.
type AmbiguousError struct {
	Given      string
	Candidates []Ref
	Tasks      []api.Summary // of the first candidates, so that a user can choose one
	All        []Ref         // all tasks: a shorter name must fit none of the others
}

// mostRead is how many candidates find reads, so that a user can choose one.
const mostRead = 10

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d tasks: %s", e.Given, len(e.Candidates), strings.Join(e.Names(), ", "))
}

// Names returns the candidates' ids, with the source where several candidates have the same id.
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

// RefsAndSources names every task folder of every source, also empty and damaged ones, without those that were
// deleted in Roost, and the state of each source. It opens no task: names cost one look into each source. An overlay
// that cannot be read hides nothing. For a caller who may find only some tasks, it lists tasks instead, which opens
// them.
func (s *Store) RefsAndSources(ctx context.Context) ([]Ref, []api.SourceState, error) {
	refs, states, err := s.refsAndSources(ctx)
	if err == nil {
		refs, err = s.seen(ctx, refs)
	}
	return refs, states, err
}

// refsAndSources is RefsAndSources for all tasks, whoever asks.
func (s *Store) refsAndSources(ctx context.Context) ([]Ref, []api.SourceState, error) {
	all, states, err := s.everyRef(ctx)
	if err != nil || !slices.ContainsFunc(all, func(r Ref) bool { return !r.Own }) { // only others' tasks are hidden
		return all, states, err
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

// Find resolves what a user typed: an id, its unique beginning or end, or SOURCE:ID. It creates nothing. Given the
// whole name of a task in Roost's own root, Find looks in no other storage.
func (s *Store) Find(ctx context.Context, given string) (Ref, error) {
	if id, own := strings.CutPrefix(given, OwnSource+":"); own && api.ValidTaskID(id) {
		if ref := s.OwnRef(id); s.HasJournal(ctx, ref) {
			if err := s.allowed(ctx, ref, given); err != nil {
				return Ref{}, err
			}
			return ref, ctx.Err()
		}
	}
	found, _, err := s.find(ctx, given)
	if err != nil {
		return Ref{}, err
	}
	return found[0], nil
}

// FindAll resolves several names; all tasks when there are none. It looks through the tasks once for the names that have
// a source and a whole id, and for each other name.
func (s *Store) FindAll(ctx context.Context, ids []string) ([]Ref, error) {
	if len(ids) == 0 {
		return s.Refs(ctx)
	}
	all, _, err := s.refsAndSources(ctx) // Refs would open all tasks for a caller who may find only some
	if err != nil {
		return nil, err
	}
	known := map[string]Ref{}
	for _, ref := range all {
		known[ref.Source+":"+ref.ID] = ref
	}
	return api.TryEach(ids, func(id string) (Ref, error) {
		if ref, there := known[id]; there {
			return ref, s.allowed(ctx, ref, id)
		}
		return s.Find(ctx, id)
	})
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
	copies := api.Some(found, func(r Ref) (string, bool) { return r.Dir, r != ref })
	return ref, append([]string{}, copies...), ctx.Err()
}

// find gives the places of the task that a user named, the best one first, and all tasks. With a source in the name there
// is one place.
func (s *Store) find(ctx context.Context, given string) (found, all []Ref, err error) {
	all, states, err := s.refsAndSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	part := matching(given, all, func(r Ref, source string) bool { return r.Source == source || r.Tool == source },
		func(r Ref) string { return r.ID })
	if len(part) > 1 && sightOf(ctx) != nil { // what the caller may not find makes no name ambiguous
		part = slices.DeleteFunc(slices.Clone(part), func(r Ref) bool { return !s.Sees(ctx, r) })
	}
	groups := s.distinct(ctx, part)
	switch len(groups) {
	case 0:
		if err := s.unread(states); err != nil {
			return nil, nil, err
		}
		if name, ok := s.lastDeleted(ctx, given); ok {
			return nil, nil, &TrashedError{Given: given, Name: name}
		}
		return nil, nil, fmt.Errorf("%w: %q%s", ErrNotFound, given, outOfReach(states))
	case 1:
		return groups[0], all, s.allowed(ctx, groups[0][0], given)
	}
	many := &AmbiguousError{Given: given, All: all, Candidates: api.Each(groups, func(g []Ref) Ref { return g[0] })}
	for _, r := range many.Candidates[:min(len(many.Candidates), mostRead)] {
		many.Tasks = append(many.Tasks, s.SummaryOf(ctx, r))
	}
	return nil, nil, many
}

// FindChild finds a child of a task by its whole id, in Roost's own root or in the parent's storage. Otherwise the error
// is ErrNotFound.
func (s *Store) FindChild(ctx context.Context, parent Ref, id string) (Ref, error) {
	if !api.ValidTaskID(id) {
		return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if own := s.OwnRef(id); s.Taken(ctx, own) {
		return own, nil
	}
	all, _, err := s.refsAndSources(ctx)
	if err != nil {
		return Ref{}, err
	}
	if i := slices.IndexFunc(all, func(r Ref) bool { return r.ID == id && r.Source == parent.Source }); i >= 0 {
		return all[i], nil
	}
	if t, err := s.FindDeleted(ctx, id); err == nil {
		return Ref{}, &TrashedError{Given: id, Name: t.Name}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
}

// FindLatest calls Find, and then Latest on the result.
func (s *Store) FindLatest(ctx context.Context, given string) (Ref, error) {
	ref, err := s.Find(ctx, given)
	if err != nil {
		return ref, err
	}
	return s.Latest(ctx, ref), nil
}

// Latest returns the task that continues a foreign one, or the task itself.
func (s *Store) Latest(ctx context.Context, ref Ref) Ref {
	if fork, ok := s.Continued(ctx, ref); ok {
		return fork
	}
	return ref
}

// Continued returns the task in Roost's own root that continues a foreign one, if there is one: its settings and
// messages are the newer ones. Owning either of the two owns that task.
func (s *Store) Continued(ctx context.Context, ref Ref) (Ref, bool) {
	if ref.Own {
		return Ref{}, false
	}
	fork := s.OwnRef(forkID(ref))
	return fork, s.HasJournal(ctx, fork)
}

// forkSpace keeps ids of forks apart from all other name-based ids.
var forkSpace = uuid.MustParse("7d0a1f5e-1f5b-5c1e-9a35-6f0f7a6f2c11")

// forkID returns the id under which a foreign task is continued. It follows from the task's place: continuing it
// again, also from two processes at the same moment, leads to the same fork. A random id would make a new fork each
// time.
func forkID(from Ref) string {
	return uuid.NewSHA1(forkSpace, []byte(from.Source+"\x00"+from.ID)).String()
}

// matching returns the tasks that a user may have named: by the whole name, else by its beginning or end. With a
// source in the name, only tasks of that source match.
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

// FindDeleted resolves the name of a deleted task as Find does: the whole name, or a unique beginning or end of the id.
func (s *Store) FindDeleted(ctx context.Context, given string) (DeletedTask, error) {
	part, err := s.matchingDeleted(ctx, given)
	switch {
	case err != nil:
		return DeletedTask{}, err
	case len(part) == 0:
		return DeletedTask{}, fmt.Errorf("%w in the trash: %q", ErrNotFound, given)
	case len(part) == 1:
		return part[0], nil
	}
	return DeletedTask{}, &AmbiguousError{Given: given, Candidates: api.Each(part, func(d DeletedTask) Ref {
		d.Ref.ID = d.id()
		return d.Ref
	})}
}

// matchingDeleted returns the deleted tasks that a user may have named, of those that the caller may find.
func (s *Store) matchingDeleted(ctx context.Context, given string) ([]DeletedTask, error) {
	all, err := s.Deleted(ctx)
	return matching(given, all, func(d DeletedTask, source string) bool { return d.Ref.Source == source }, DeletedTask.id), err
}

// lastDeleted returns the name of the deleted task that a user means: of copies of one task that are all deleted, the
// one that was deleted last.
func (s *Store) lastDeleted(ctx context.Context, given string) (name string, ok bool) {
	part, err := s.matchingDeleted(ctx, given)
	if err != nil || len(part) == 0 {
		return "", false
	}
	if len(part) == 1 {
		return part[0].Name, true
	}
	if slices.ContainsFunc(part, func(d DeletedTask) bool { return d.id() != part[0].id() }) {
		return "", false
	}
	return slices.MaxFunc(part, func(a, b DeletedTask) int { return cmp.Compare(a.At, b.At) }).QualifiedName(), true
}

// unread returns an error when the tasks are in a database that cannot be read now: a task that was not found may
// still exist.
func (s *Store) unread(states []api.SourceState) error {
	if _, shared := s.logs.(*sharedLogs); !shared {
		return nil
	}
	for _, own := range states { // a database is the only source
		if why, is := strings.CutPrefix(own.State, unreachable); is {
			return &RootError{Path: s.opt.Root, Check: "its database cannot be read", Err: errors.New(why)}
		}
	}
	return nil
}

// outOfReach returns a note for a task that was not found: it may be in a storage that cannot be read now. It is ""
// when all storages can be read.
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

// UnlistedTasks returns the tasks that no list shows, given those that lists show: the tasks in the trash, those
// deleted in another tool's storage, and those continued in a storage that is not configured now. Its error is about
// the trash; the other tasks come with it.
func (s *Store) UnlistedTasks(ctx context.Context, listed []Ref) ([]Ref, error) {
	deleted, err := s.logs.names(ctx, s.TrashDir())
	out := api.Each(deleted, s.TrashRef)
	known := api.SetOf(api.Each(listed, func(r Ref) string { return r.Log }))
	for _, r := range s.adoptedLogs() {
		if known[r.Log] || !s.HasJournal(ctx, r) {
			continue
		}
		dir, tool := s.adoptedFrom(ctx, r)
		r.Dir, r.Tool = cmp.Or(dir, r.Log), tool
		out = append(out, r)
	}
	return out, err
}

// adoptedLogs returns the folders of journals of tasks in other tools' storages.
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

// LogRef returns a reference to a task's journal alone, by its names in a feed. It does not check that the journal
// exists.
func (s *Store) LogRef(source, id string) (Ref, bool) {
	switch {
	case source == overlaySource && id == overlayID:
		return s.OverlayRef(), true
	case !api.ValidTaskID(id) || !api.ValidTaskID(source):
		return Ref{}, false
	case source == OwnSource:
		return s.OwnRef(id), true
	}
	dir := filepath.Join(s.AdoptedDir(source), id)
	return Ref{ID: id, Source: source, Dir: dir, Log: dir}, true
}

// Refs is RefsAndSources without the sources.
func (s *Store) Refs(ctx context.Context) ([]Ref, error) {
	refs, _, err := s.RefsAndSources(ctx)
	return refs, err
}
