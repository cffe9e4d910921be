package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/task"
)

// The overlay is what a person says of tasks whose folders are not ours: titles,
// tags, pins, and that a task is out of the way. It is a journal in Roost's root,
// so that a crash loses nothing that was acknowledged and two processes take
// turns. A file for each task was the alternative: it would keep no history, and
// a list of ten thousand tasks would open as many files.

// overlayWait is how long another process is waited for that holds the overlay:
// it does so for one change.
const overlayWait = 10 * time.Second

// Labels are what a person files a task under. Nil members and absent tags stay as
// they are.
type Labels struct {
	Title       *string
	Untitled    bool     // back to the title that the task has by itself
	Add, Remove []string // tags
	Pinned      *bool

	// Still is asked with the task in hand, of what it is filed under; its error leaves all
	// as it is. nil asks nothing.
	Still func(title string, tags []string, pinned bool) error
}

// still asks Still.
func (l Labels) still(title string, tags []string, pinned bool) error {
	if l.Still == nil {
		return nil
	}
	return l.Still(title, tags, pinned)
}

// ErrLabel: a title or tag that cannot be one.
var ErrLabel = errors.New("it cannot be used as a label")

// mark is one event of the overlay. Absent members stay as they are.
type mark struct {
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	ID      string    `json:"id"`
	Title   *string   `json:"title,omitempty"`
	Tags    *[]string `json:"tags,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`
	Deleted *bool     `json:"deleted,omitempty"` // a foreign task is not shown; of our own, when it was moved
	Purged  *bool     `json:"purged,omitempty"`
	Name    string    `json:"name,omitempty"` // of our own task's folder in the trash
	Dir     string    `json:"dir,omitempty"`  // where the task lay, for when its storage is not named any more
	Head    uint64    `json:"head,omitempty"` // the newest commit of the task's journal at that time
	Undoes  uint64    `json:"undoes,omitempty"`
	Redoes  uint64    `json:"redoes,omitempty"` // commits of the overlay: see task.Changed
	With    string    `json:"with,omitempty"`   // SOURCE:ID of the task whose deletion took this one, its subtask, along
	at      int64
	epoch   uint64 // of who deleted it
}

const (
	tagged  = "task.changed"
	trashed = "task.deleted"
)

// Marks are the overlay, folded.
type Marks map[[2]string]mark

// Marks reads the overlay. Nothing is written; where there is none, it is empty.
// A commit of it that is damaged loses that change and no other.
func (s *Store) Marks(ctx context.Context) (Marks, error) {
	log, err := filelog.OpenReader(s.OverlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the overlay %s: %w", s.OverlayDir(), err)
	}
	m, err := foldMarks(ctx, log)
	return m, errors.Join(err, log.Close())
}

// OverlayDir is the folder of the overlay: the journal of labels and deletions that no task's own journal holds.
func (s *Store) OverlayDir() string { return filepath.Join(s.opt.Root, "overlay") }

func foldMarks(ctx context.Context, log journal.Reader) (Marks, error) {
	out := Marks{}
	err := eachMark(ctx, log, func(c journal.Commit, e mark) {
		if e.Type == tagged || e.Type == trashed || e.Type == keptHere {
			e.epoch = c.Epoch
			out.apply(e, c.At)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachMark goes through an overlay. What of it is damaged, or unknown, is passed over.
func eachMark(ctx context.Context, log journal.Reader, f func(journal.Commit, mark)) error {
	for c, err := range log.Read(ctx, 1) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the overlay: %w", err)
		}
		for _, raw := range c.Events {
			if e, ok := readMark(raw); ok {
				f(c, e)
			}
		}
	}
	return nil
}

func readMark(raw []byte) (e mark, ok bool) {
	ok = json.Unmarshal(raw, &e) == nil
	return e, ok
}

func (m Marks) apply(e mark, at int64) {
	key := [2]string{e.Source, e.ID}
	if e.Name != "" {
		key[1] = e.Name // a deletion of our own task is known by its folder
	}
	have := m[key]
	e.Tags, e.Title, e.Pinned = either(e.Tags, have.Tags), either(e.Title, have.Title), either(e.Pinned, have.Pinned)
	e.Purged = either(e.Purged, have.Purged)
	e.at = at
	if e.Deleted == nil || !*e.Deleted {
		e.With = have.With
	}
	if e.Deleted == nil {
		e.Deleted, e.at, e.epoch = have.Deleted, have.at, have.epoch
	}
	if e.Dir == "" {
		e.Dir = have.Dir
	}
	m[key] = e
}

func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func (m mark) hidden() bool { return m.Source != OwnSource && m.Deleted != nil && *m.Deleted }

func (m mark) purged() bool { return m.Purged != nil && *m.Purged }

// Hidden reports whether a task of another tool's storage was deleted in Roost.
func (m Marks) Hidden(source, id string) bool { return m[[2]string{source, id}].hidden() }

// Apply puts into a row what the overlay says of that task. It may be done again.
func (m Marks) Apply(t *Summary) {
	have, ok := m[[2]string{t.Source, t.ID}]
	if !ok || t.Source == OwnSource {
		return
	}
	if have.Title != nil && *have.Title != "" {
		t.Title = *have.Title
		t.Inferred = slices.DeleteFunc(slices.Clone(t.Inferred), func(f string) bool { return f == "title" })
	}
	if have.Tags != nil {
		t.Tags = slices.Clone(*have.Tags)
	}
	if have.Pinned != nil {
		t.Pinned = *have.Pinned
	}
}

// shelve calls f with the overlay's journal owned, and keeps what f appends to it.
// Everything that moves tasks goes through here: one at a time on this root.
func (s *Store) shelve(ctx context.Context, f func(Marks, func(...mark) error) error) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	log, err := ownLog(ctx, s.OverlayDir(), filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program, WaitForLock: overlayWait, Synced: s.tellingShelf(), Seal: s.Seal("overlay"),
	})
	if err != nil {
		return fmt.Errorf("open the overlay: %w", err)
	}
	keep := func(list ...mark) error {
		draft := journal.Draft{At: s.opt.Now(), By: s.opt.Program}
		for _, e := range list {
			raw, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("keep the change: %w", err)
			}
			draft.Events = append(draft.Events, raw)
		}
		if _, err := log.Append(ctx, draft); err != nil {
			return fmt.Errorf("keep the change: %w", err)
		}
		return log.Barrier(ctx)
	}
	marks, err := foldMarks(ctx, log)
	if err == nil {
		err = s.mend(ctx, marks, log.Epoch(), keep)
	}
	if err == nil {
		err = f(marks, keep)
	}
	return errors.Join(err, log.Close())
}

// Label changes title, tags or pin of a task and returns its row. Those of our own
// tasks are events of their journals; a task of another tool's storage gets them
// in the overlay, and its folder is not touched. A task that runs elsewhere gives
// a *journal.BusyError when it is ours.
func (s *Store) Label(ctx context.Context, ref Ref, l Labels) (Summary, error) {
	if err := l.check(); err != nil {
		return Summary{}, err
	}
	was, named, err := s.filed(ctx, ref)
	if err != nil {
		return Summary{}, err
	}
	if l.over(was.Title, named, was.Tags, was.Pinned) == nil {
		return was, nil
	}
	if ref.Own {
		err = s.labelOwn(ctx, ref, l)
	} else {
		err = s.shelve(ctx, func(m Marks, keep func(...mark) error) error {
			if err := MeetsExpectation(ctx, ref); err != nil {
				return err
			}
			m.Apply(&was)
			if err := l.still(was.Title, was.Tags, was.Pinned); err != nil {
				return err
			}
			e := l.over(was.Title, m.named(ref), was.Tags, was.Pinned)
			if e == nil {
				return nil
			}
			return keep(mark{Type: tagged, Source: ref.Source, ID: ref.ID, Title: e.Title, Tags: e.Tags, Pinned: e.Pinned, Head: HeadOf(ctx, ref.Log)})
		})
	}
	if err != nil {
		return Summary{}, fmt.Errorf("label task %s: %w", ref.ID, err)
	}
	return s.row(ctx, ref)
}

func (s *Store) labelOwn(ctx context.Context, ref Ref, l Labels) error {
	o, err := s.Own(ctx, ref)
	if err != nil {
		return err
	}
	state := o.Task.State()
	if err = l.still(state.Title, state.Tags, state.Pinned); err != nil {
		return errors.Join(err, o.Task.Close(ctx))
	}
	if e := l.over(state.Title, state.Title != "", state.Tags, state.Pinned); e != nil {
		if err = o.Task.Commit(ctx, *e); err == nil {
			err = o.Task.Barrier(ctx)
		}
	}
	return errors.Join(err, o.Task.Close(ctx))
}

// row is one task's row; what cannot be read is an error here.
func (s *Store) row(ctx context.Context, ref Ref) (Summary, error) {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return Summary{}, err
	}
	return v.Summary, v.Close()
}

// filed is one task's row, and whether its title was given to it.
func (s *Store) filed(ctx context.Context, ref Ref) (sum Summary, named bool, err error) {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return Summary{}, false, err
	}
	if named = v.State.Title != ""; !ref.Own {
		marks, err := s.Marks(ctx)
		if err != nil {
			return Summary{}, false, errors.Join(err, v.Close())
		}
		named = marks.named(ref)
	}
	return v.Summary, named, v.Close()
}

// named reports whether a task of another tool got a title here.
func (m Marks) named(ref Ref) bool {
	title := m[[2]string{ref.Source, ref.ID}].Title
	return title != nil && *title != ""
}

// over gives the change that the labels are for a task, nil when there is none. named
// says that its title was given to it.
func (l Labels) over(title string, named bool, tags []string, pinned bool) *task.Changed {
	var e task.Changed
	changed := false
	if l.Untitled && named {
		e.Title, changed = new(string), true
	}
	if l.Title != nil && *l.Title != title {
		e.Title, changed = l.Title, true
	}
	if l.Pinned != nil && *l.Pinned != pinned {
		e.Pinned, changed = l.Pinned, true
	}
	next := slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return slices.Contains(l.Remove, t) })
	for _, t := range l.Add {
		if !slices.Contains(next, t) {
			next = append(next, t)
		}
	}
	if !slices.Equal(next, tags) {
		if next == nil {
			next = []string{}
		}
		e.Tags, changed = &next, true
	}
	if !changed {
		return nil
	}
	return &e
}

// titleMax and tagMax bound labels, in bytes: they stand on every line of a list.
const (
	titleMax = 4096
	tagMax   = 64
)

func (l Labels) check() error {
	if l.Title != nil {
		switch {
		case l.Untitled:
			return fmt.Errorf("a title is to be given and taken away: %w", ErrLabel)
		case strings.TrimSpace(*l.Title) == "":
			return fmt.Errorf("the title is empty: %w", ErrLabel)
		case len(*l.Title) > titleMax || !utf8.ValidString(*l.Title):
			return fmt.Errorf("the title must be text of at most %d bytes: %w", titleMax, ErrLabel)
		}
	}
	for _, t := range slices.Concat(l.Add, l.Remove) {
		odd := strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == ',' })
		if t == "" || len(t) > tagMax || odd || !utf8.ValidString(t) || strings.ContainsAny(t[:1], "+-#") {
			return fmt.Errorf("the tag %q must be 1 to %d bytes without blanks, commas, or +, - or # at its beginning: %w", t, tagMax, ErrLabel)
		}
		if slices.Contains(l.Add, t) && slices.Contains(l.Remove, t) {
			return fmt.Errorf("the tag %q is to be added and removed: %w", t, ErrLabel)
		}
	}
	return nil
}
