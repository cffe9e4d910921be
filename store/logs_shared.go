package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/feed"
)

// ErrNoFolder: the task is in a database, and the operation needs the folder of a task.
var ErrNoFolder = errors.New("tasks in a database have no folder")

// InDatabase reports whether the task is in a database: its paths are no paths of files.
func (r Ref) InDatabase() bool { return strings.HasPrefix(r.Log, sharedHome) }

// sharedLogs are the journals of a root in a database. The name of a journal is its path below home, with slashes.
type sharedLogs struct {
	*postgres.Journals
	home string
}

// Names of journals: see Store.TasksDir and Store.OverlayDir.
const (
	tasksPrefix = "tasks/"
	overlayName = "overlay"
)

func (l *sharedLogs) name(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, l.home+string(filepath.Separator)))
}

// JournalOf implements postgres.Names of the feed.
func (l *sharedLogs) JournalOf(t feed.Task) (name string, ok bool) {
	switch {
	case t == feed.Task{Source: overlaySource, ID: overlayID}:
		return overlayName, true
	case t.Source == OwnSource && api.ValidTaskID(t.ID):
		return tasksPrefix + t.ID, true
	}
	return "", false
}

// TaskOf implements postgres.Names of the feed.
func (l *sharedLogs) TaskOf(name string) (feed.Task, bool) {
	if name == overlayName {
		return feed.Task{Source: overlaySource, ID: overlayID}, true
	}
	id, ok := strings.CutPrefix(name, tasksPrefix)
	return feed.Task{Source: OwnSource, ID: id}, ok && api.ValidTaskID(id)
}

func (l *sharedLogs) has(ctx context.Context, path string) bool {
	has, err := l.Has(ctx, l.name(path))
	return has || err != nil
}

func (l *sharedLogs) taken(ctx context.Context, path string) bool { return l.has(ctx, path) }

func (l *sharedLogs) names(ctx context.Context, dir string) ([]string, error) {
	entries, err := l.entries(ctx, dir)
	return slices.Collect(maps.Keys(entries)), err
}

// entries returns the journals in a folder that lists show, by the last elements of their paths.
func (l *sharedLogs) entries(ctx context.Context, dir string) (map[string]postgres.Entry, error) {
	prefix := l.name(dir) + "/"
	all, err := l.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	list := make(map[string]postgres.Entry, len(all))
	for _, e := range all {
		if e.Name = e.Name[len(prefix):]; e.Name != "" && e.Name[0] != '.' && e.Name[0] != '_' {
			list[e.Name] = e
		}
	}
	return list, nil
}

// Lost returns the tasks of a database whose server has died. In folders the lock of a dead process is free, and
// nothing is lost.
func (s *Store) Lost(ctx context.Context) (list []Ref, err error) {
	shared, ok := s.logs.(*sharedLogs)
	if !ok {
		return nil, nil
	}
	names, err := shared.Lost(ctx)
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, tasksPrefix); ok && api.ValidTaskID(id) {
			list = append(list, s.OwnRef(id))
		}
	}
	return list, err
}

// Every returns all tasks of the root, also those in the trash and those that are being made. Some may be no task:
// their names are not valid ids.
func (s *Store) Every(ctx context.Context) (list []Ref, err error) {
	for dir, ref := range map[string]func(string) Ref{s.TasksDir(): s.OwnRef, s.TrashDir(): s.TrashRef} {
		names, err := s.logs.unlisted(ctx, dir, "")
		if err != nil {
			return nil, err
		}
		list = append(list, api.Each(names, ref)...)
	}
	return list, nil
}

func (l *sharedLogs) unlisted(ctx context.Context, dir, prefix string) ([]string, error) {
	base := l.name(dir) + "/"
	all, err := l.List(ctx, base+prefix)
	if err != nil {
		return nil, err
	}
	return api.Each(all, func(e postgres.Entry) string { return e.Name[len(base):] }), nil
}

func (l *sharedLogs) open(ctx context.Context, path string, seal *journal.Seal) (journal.Stored, error) {
	return l.OpenReader(ctx, l.name(path), seal)
}

// holder is for showing a task: without an answer of the database it reports no owner.
func (l *sharedLogs) holder(ctx context.Context, path string) (journal.OwnerInfo, bool) {
	info, held, err := l.Holder(ctx, l.name(path))
	return info, held && err == nil
}

func (l *sharedLogs) begin(ctx context.Context, path, from string, seq uint64) error {
	return l.Begin(ctx, l.name(path), l.name(from), seq)
}

func (l *sharedLogs) restore(ctx context.Context, path string, over uint64, from journal.Stored) error {
	return l.Restore(ctx, l.name(path), over, from)
}

func (l *sharedLogs) move(ctx context.Context, from, to string) error {
	return l.Move(ctx, l.name(from), l.name(to))
}

func (l *sharedLogs) remove(ctx context.Context, path string) error {
	return l.Remove(ctx, l.name(path))
}

// announced returns when the database announces the commits of an owner; it does not call Options.Synced. A change of
// the overlay is announced after everything that the process did; see overlaySynced.
func (l *sharedLogs) announced(path string, o filelog.Options) postgres.Announce {
	switch {
	case o.Synced == nil:
		return postgres.AnnounceNever
	case l.name(path) == overlayName:
		return postgres.AnnounceAtEnd
	}
	return postgres.AnnounceSoon
}

// own takes the lease of a journal.
func (l *sharedLogs) own(ctx context.Context, path string, o filelog.Options) (journal.Owner, error) {
	for end := time.Now().Add(o.WaitForLock); ; {
		log, err := l.Own(ctx, l.name(path), postgres.OwnOptions{
			Address:  o.Owner.Address,
			By:       o.By,
			Clock:    o.Clock,
			Existing: o.Existing,
			Seal:     o.Seal,
			Meets:    o.Meets,
			Announce: l.announced(path, o),
		})
		if _, busy := errors.AsType[*journal.BusyError](err); !busy || time.Now().After(end) {
			if errors.Is(err, journal.ErrNotFound) {
				err = fmt.Errorf("%w: %w", ErrNotFound, err)
			}
			return log, err
		}
		if !sleep.For(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}
