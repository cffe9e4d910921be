package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/roofmt/sqlitefile"
	"github.com/roost-dev/roost/store/projection"
)

// Source is one storage with task folders.
type Source struct {
	Name  string
	Tool  string // the tool by the source's name and path; "" = each task has its own
	Path  string // as it is configured
	Tasks string // the folder that holds the task folders
	One   bool   // only single task folders of the source are configured
	Own   bool

	ids      []string                  // names of the task folders
	byPath   string                    // the tool, by the path alone
	at       map[string]string         // the files of tasks without a folder: transcripts of subagents
	journals map[string]postgres.Entry // of a database; nil when tasks are in folders
	gone     map[string]Ref            // continued tasks of a storage that is no longer configured
	err      error                     // why the source cannot be read
}

// state describes a source of which nothing is counted yet.
func (src *Source) state() api.SourceState {
	out := api.SourceState{Name: src.Name, Tool: src.Tool, Path: src.Path, State: readable, Folder: src.Tasks}
	if src.err != nil {
		out.State = unreachable + src.err.Error()
	}
	return out
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
		out = append(out, api.Each(src.ids, func(id string) Ref { return s.ref(src, id) })...)
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

// Places lists the places where Roost looks for storages of other tools, beside the configured ones; none where that
// is off.
func (s *Store) Places() ([]api.Place, error) {
	if !s.others.Load().auto {
		return nil, nil
	}
	env, err := roofmt.SystemEnv()
	if err != nil {
		return nil, fmt.Errorf("look for editors' storages: %w", err)
	}
	return roofmt.Places(env), nil
}

// sources lists Roost's own root, the configured storages and those found on this machine, each once. roofmt decides what
// a path is and where editors keep their storages.
func (s *Store) sources(ctx context.Context) ([]Source, error) { return s.sourcesKnown(ctx, nil) }

// sourcesKnown is sources for a list that keeps what it found before. A storage that cannot be read keeps its earlier
// place.
func (s *Store) sourcesKnown(ctx context.Context, known *reading) ([]Source, error) {
	own := Source{Name: OwnSource, Tool: "roost", Path: s.opt.Root, Tasks: s.TasksDir(), Own: true}
	if shared, ok := s.logs.(*sharedLogs); ok {
		own.journals, own.err = shared.entries(ctx, own.Tasks)
		own.ids = slices.Collect(maps.Keys(own.journals))
		return []Source{own}, ctx.Err()
	}
	own.ids, own.err = names(own.Tasks)
	if own.err == nil && s.TasksLost() {
		own.err = fmt.Errorf("its folder %s with tasks is missing", own.Tasks)
	}
	list, tools := []Source{own}, s.others.Load()
	at := map[string]int{inputfile.Resolved(own.Tasks): 0}
	add := func(src Source) {
		key := inputfile.Resolved(src.Tasks)
		i, seen := at[key]
		switch {
		case !seen:
			src.Name = cmp.Or(src.Name, SourceName(src.Tasks))
			at[key] = len(list)
			list = append(list, src)
		case list[i].One && src.One:
			for _, id := range src.ids {
				if !slices.Contains(list[i].ids, id) {
					list[i].ids = append(list[i].ids, id)
				}
			}
			maps.Copy(list[i].at, src.at)
		case list[i].One:
			src.Name = list[i].Name
			list[i] = src
		}
	}
	found := func(src Source) {
		lost := lostSources(known, src)
		if len(lost) == 0 {
			lost = []Source{src}
		}
		for _, src := range lost {
			add(src)
		}
	}
	for _, path := range tools.dirs {
		src := look(ctx, path)
		sessions := roofmt.SessionsDir(path) // a data folder of Cline's may hold both, or only these
		if sessions == "" || len(src.ids) > 0 || src.err != nil {
			found(src)
		}
		if sessions != "" {
			found(look(ctx, sessions))
		}
	}
	if tools.auto {
		env, err := roofmt.SystemEnv()
		if err != nil {
			return nil, fmt.Errorf("look for editors' storages: %w", err)
		}
		for _, place := range roofmt.DefaultStorages(env) {
			src := look(ctx, place.Dir)
			src.Tool = string(place.Tool)
			if len(src.ids) > 0 || src.err != nil {
				found(src)
			}
		}
	}
	for i := range list {
		if !list[i].Own && !list[i].One {
			list[i].ids = s.withGone(ctx, list[i])
		}
	}
	return append(list, s.left(ctx, list)...), ctx.Err()
}

// TasksLost reports whether the root exists without its folder of tasks. Roost makes that folder before it writes anything
// else of a task, and never removes it.
func (s *Store) TasksLost() bool {
	begun := func(name string) bool { return exists(s.opt.Root, name) }
	return !exists(s.TasksDir(), "") && slices.ContainsFunc([]string{"feed", "overlay", "trash"}, begun)
}

// left returns the tasks that were continued in storages that are no longer configured, and whose folders are gone:
// only their journals are left. A folder that still exists belongs to its storage, and lists show it again when that
// is configured.
func (s *Store) left(ctx context.Context, list []Source) (out []Source) {
	for _, r := range s.adoptedLogs() {
		if slices.ContainsFunc(list, func(src Source) bool { return src.Name == r.Source }) {
			continue
		}
		if r.Dir, r.Tool = s.adoptedFrom(ctx, r); r.Dir == "" || exists(r.Dir, "") {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Name != r.Source {
			out = append(out, Source{Name: r.Source, Path: s.AdoptedDir(r.Source), gone: map[string]Ref{}})
		}
		src := &out[len(out)-1]
		src.Tool = r.Tool
		src.gone[r.ID] = r
		src.ids = append(src.ids, r.ID)
	}
	return out
}

// look finds out what storage or tasks a path holds.
func look(ctx context.Context, path string) Source {
	found, err := roofmt.Find(ctx, path)
	src := Source{Path: path, Tool: string(found.Tool), byPath: string(found.Tool), Tasks: found.TasksDir, at: map[string]string{}, err: err}
	for _, f := range found.Tasks {
		src.ids = append(src.ids, f.ID)
		if filepath.Base(f.Dir) != f.ID {
			src.at[f.ID] = f.Dir
		}
	}
	if found.Shape == roofmt.TaskFolder {
		src.One, src.Tasks = true, filepath.Dir(found.Tasks[0].Dir)
	}
	src.Tasks = cmp.Or(src.Tasks, filepath.Join(path, "tasks"))
	return src
}

// lostSources returns the known storages at or below a path that cannot be read now. The path that sources are named
// by has no links, and these cannot be resolved now.
func lostSources(rows *reading, src Source) (out []Source) {
	if src.err == nil {
		return nil
	}
	below := strings.TrimSuffix(src.Path, string(filepath.Separator)) + string(filepath.Separator)
	for _, known := range rows.Sources() {
		if known.Path == src.Path || strings.HasPrefix(known.Path, below) {
			out = append(out, Source{
				Name: known.Name, Tool: known.Tool, byPath: known.ByPath, Path: known.Path, Tasks: known.Tasks, err: src.err,
			})
		}
	}
	return out
}

// withGone adds the tasks that we continued and whose folders the editor deleted: their journals are whole.
func (s *Store) withGone(ctx context.Context, src Source) []string {
	ids := src.ids
	ours, err := names(s.AdoptedDir(src.Name))
	if err != nil || len(ours) == 0 {
		return ids
	}
	has := api.SetOf(ids)
	for _, id := range ours {
		if !has[id] && s.HasJournal(ctx, Ref{Log: filepath.Join(s.AdoptedDir(src.Name), id)}) {
			ids = append(ids, id)
		}
	}
	return ids
}

var unsafeName = lazyregexp.New(`[^A-Za-z0-9._-]+`)

// SourceName names a source by its folder of tasks. The name is readable, stable, and differs between storages of equal
// names. It follows from the place and not from the path as given: a storage, its tasks folder and one of its tasks
// must lead to the same journals.
func SourceName(tasks string) string {
	tasks = inputfile.Resolved(tasks)
	sum := sha256.Sum256([]byte(tasks))
	if filepath.Base(tasks) == "tasks" {
		tasks = filepath.Dir(tasks)
	}
	base := strings.Trim(unsafeName().ReplaceAllString(filepath.Base(tasks), "-"), ".-_")
	return cmp.Or(base, "source") + "-" + hex.EncodeToString(sum[:3])
}

// rowCache keeps the entries of other tools' indexes as long as the files do not change: an index has the rows of all
// tasks, and is read once for all of them.
type rowCache struct {
	mu  sync.Mutex
	dir map[string]rowsRead // by tasks folder
}

// row returns the entry of a task in the index beside its folder; nil when there is none. Salvage needs it: it has
// the title of a task whose own files have none, and classic Cline keeps workspaces nowhere else. From a damaged
// index it returns whole entries; the damage of an index is no damage of the task.
func (c *rowCache) row(folder string) []byte {
	tasks, id := roofmt.PlaceOf(folder)
	return c.of(tasks).Row(id)
}

// rowsRead holds the rows of an index, and the error that ended reading it.
type rowsRead struct {
	*roofmt.Rows
	err error
}

func (c *rowCache) of(tasks string) rowsRead {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, ok := c.dir[tasks]
	if !ok || got.Prints != roofmt.RowPrints(tasks) {
		got.Rows, got.err = roofmt.ReadRows(tasks)
		if c.dir == nil {
			c.dir = map[string]rowsRead{}
		}
		c.dir[tasks] = got
	}
	return got
}

// problem describes the damage of the indexes of a folder of tasks; "" when there is none. An index that is being written
// just now is not damaged.
func (c *rowCache) problem(tasks string) string {
	err := c.of(tasks).err
	if err == nil || errors.Is(err, sqlitefile.ErrRestless) {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// withRow fills in a folder's row. A folder with an item of its own needs none; the row of a session, made from its manifest
// and messages, gets the members that only the index has.
func (s *Store) withRow(folder *roofmt.Folder) {
	if folder != nil && len(folder.Item) == 0 {
		folder.Row = roofmt.MergeRow(folder.Row, s.rows.row(folder.Dir))
	}
}

// IndexRow returns a task's entry in the index beside its folder; nil when there is none.
func (s *Store) IndexRow(folder string) []byte { return s.rows.row(folder) }

// The states of a source. The text of an unreachable one ends with the reason. A list does not show it as empty: its tasks
// are unknown, not gone.
const (
	readable    = api.SourceReadable
	partly      = api.SourcePartlyDamaged
	unreachable = api.SourceUnreachable
)

// judge sets the state of a source that follows from its counts.
func judge(src *api.SourceState) {
	if src.State != readable || src.Damaged == 0 && src.Problem == "" {
		return
	}
	if src.State = partly; src.Damaged == 0 {
		return
	}
	// A disk that was just removed looks like damage of all its tasks.
	if _, err := os.ReadDir(src.Folder); err != nil && src.Folder != "" {
		src.State = unreachable + "it went away while it was read: " + err.Error()
	}
}

// ReadProblem describes why a task that was listed cannot be read.
func ReadProblem(ref Ref, err error) string {
	if !projection.Linked(ref.Dir) {
		return err.Error()
	}
	if _, broken := os.Stat(ref.Dir); broken != nil {
		return "a link that cannot be followed: " + broken.Error()
	}
	return err.Error()
}
