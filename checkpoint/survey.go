package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Survey is the state of the workspace before a command.
type Survey struct {
	k       *Keeper
	base    *scan // the result of its scan
	unheld  unheld
	release func() // allows the store to remove contents that no manifest names

	file  string        // the file that stores the survey; "" = none
	until time.Time     // when the command was last seen running; zero = the process with the survey runs it
	took  time.Duration // how long the command ran
}

// unheld describes what a command may change and no checkpoint could bring back.
type unheld struct {
	Files   int
	Bytes   int64
	Names   []string // of the largest files, at most five, largest first
	Folders []string // folders that could not be read
	Cut     bool     // there are more files than the limit
	Full    bool     // the store has reached its limit (Options.MaxStore)
	Trouble error    // why nothing more could be kept; nil when only limits kept contents out

	// Paths that .gitignore hides and no task knows: at most five, those nearest to the top; folders end in "/".
	Hidden     []string
	MoreHidden bool
}

// Unheld describes what could not be brought back: "3 files (1.2 GB) that could not be brought back: a.bin, ..."; "" =
// everything could be. It leaves out what .gitignore hides, which exists before every command.
func (s *Survey) Unheld() string { return s.unheld.String() }

func (u unheld) String() string {
	var parts []string
	if u.Files > 0 {
		s := fmt.Sprintf("%s (%s) that could not be brought back: %s", api.Plural(u.Files, "file"), api.SizeText(u.Bytes),
			strings.Join(u.Names, ", "))
		if u.Files > len(u.Names) {
			s += ", ..."
		}
		if u.Full {
			s += " (the store of checkpoints is full: roost checkpoint gc may make room, or a larger checkpoint_store)"
		}
		parts = append(parts, s)
	}
	if n := len(u.Folders); n > 0 {
		s := api.Plural(n, "folder") + " that may not be read: " + strings.Join(u.Folders[:min(n, 5)], ", ")
		if n > 5 {
			s += ", ..."
		}
		parts = append(parts, s)
	}
	if u.Cut {
		parts = append(parts, "more files than a survey examines")
	}
	if u.Trouble != nil {
		parts = append(parts, "files whose contents cannot be kept ("+u.Trouble.Error()+")")
	}
	return strings.Join(parts, "; ")
}

// Hidden names what .gitignore hides and no task knows: ".env, node_modules/, ..."; "" = there is nothing.
func (s *Survey) Hidden() string {
	text := strings.Join(s.unheld.Hidden, ", ")
	if s.unheld.MoreHidden {
		text += ", ..."
	}
	return text
}

// Survey examines the workspace before a command, and keeps contents that the command might change, if they exist
// nowhere else and the limits allow it. Unheld lists contents that it could not keep; the caller reports them before
// the command runs. Files that .gitignore hides are left out unless they are known (see Know) or in a repository's
// index.
//
// It belongs to one command: Changes or Close ends it.
func (k *Keeper) Survey(ctx context.Context) (*Survey, error) {
	s := &Survey{k: k, release: sync.OnceFunc(k.store.Keep())}
	err := k.withTurn(ctx, func() error {
		sc, trouble, err := k.scan(ctx, nil)
		if err != nil {
			return err
		}
		s.base, s.unheld = sc, sc.unheld(trouble)
		return nil
	})
	if err != nil {
		s.release()
		return nil, fmt.Errorf("look at the files of %s before a command: %w", k.w.Root(), err)
	}
	return s, nil
}

// withTurn runs do while no other survey runs.
func (k *Keeper) withTurn(ctx context.Context, do func() error) error {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	if err := k.prepare(ctx, false); err != nil { // contents that a survey relies on may be in the store of an earlier version
		return err
	}
	k.load()
	return do()
}

// Close ends a survey whose command was not run. After Changes it does nothing.
func (s *Survey) Close() { s.release() }

func (s *scan) unheld(trouble error) unheld {
	u := unheld{Cut: s.end != "", Full: s.full, Trouble: trouble}
	u.Folders = append(u.Folders, api.Each(s.closed, func(dir string) string { return shown(strings.TrimSuffix(dir, "/")) })...)
	var large []*entry
	for i := range s.list {
		e := &s.list[i]
		if e.held != nowhere || e.kind() == api.KindOther {
			continue
		}
		u.Files++
		u.Bytes += e.stat.size
		large = append(large, e)
	}
	slices.SortStableFunc(large, func(a, b *entry) int { return cmp.Compare(b.stat.size, a.stat.size) })
	u.Names = append(u.Names, api.Each(large[:min(5, len(large))], func(e *entry) string { return shown(e.path) })...)
	hidden := slices.DeleteFunc(slices.Clone(s.veiled), func(p string) bool { _, ok := s.find(p); return ok }) // an index names it
	slices.SortStableFunc(hidden, func(a, b string) int { return depth(a) - depth(b) })
	u.Hidden = append(u.Hidden, api.Each(hidden[:min(5, len(hidden))], shown)...)
	u.MoreHidden = len(hidden) > len(u.Hidden)
	return u
}

// depth returns how many folders are above a path.
func depth(p string) int { return strings.Count(strings.TrimSuffix(p, "/"), "/") }

// shown returns a recorded path in the form that a person may see in one line.
func shown(p string) string {
	return strings.Map(func(r rune) rune {
		if isStrange(r) || r < ' ' || r == 0x7F {
			return '?'
		}
		return r
	}, p)
}

// Changes returns the paths that differ after the command, in order, each with what was there before and what is
// there now. Contents that have a Blob are durable when it returns. With an error that wraps ErrUnkept the list is
// correct, but some contents could not be kept.
//
// The list includes changes that others made while the command ran: see Whose. Call it after the command has ended.
func (s *Survey) Changes(ctx context.Context) ([]task.CheckpointFile, error) {
	defer s.release()
	if s.until.IsZero() && !s.base.made.IsZero() {
		s.took = time.Since(s.base.made)
	}
	k := s.k
	var out []task.CheckpointFile
	var trouble error
	err := k.withTurn(ctx, func() error {
		after, t, err := k.scan(ctx, s.base)
		if err != nil {
			return err
		}
		changed := s.compare(after)
		if len(changed) == 0 {
			return nil
		}
		trouble = errors.Join(t, k.fetch(ctx, changed))
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, c := range changed {
			was, now := s.base.gone(c.path), after.gone(c.path)
			if c.was != nil {
				was = c.was.version()
			}
			if c.now != nil {
				now = c.now.version()
			}
			out = append(out, task.CheckpointFile{Path: c.path, Was: &was, Now: now})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the files of %s after a command: %w", k.w.Root(), err)
	}
	for _, f := range out {
		k.Know(f.Path)
		k.noteHeld(*f.Was, f.Now)
	}
	if trouble != nil {
		return out, fmt.Errorf("%w: %w", ErrUnkept, trouble)
	}
	return out, nil
}

// change is one path that differs; nil means that nothing is there.
type change struct {
	path     string
	was, now *entry
}

// compare walks through both lists at once. A path that one of the walks could not examine does not count as added or
// removed.
func (s *Survey) compare(after *scan) (out []change) {
	a, b := s.base.list, after.list
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].path < b[0].path:
			if !after.blind(a[0].path) {
				out = append(out, change{path: a[0].path, was: new(a[0])})
			}
			a = a[1:]
		case len(a) == 0 || b[0].path < a[0].path:
			if !s.base.blind(b[0].path) {
				out = append(out, change{path: b[0].path, now: new(b[0])})
			}
			b = b[1:]
		default:
			if a[0].differs(&b[0]) {
				out = append(out, change{path: a[0].path, was: new(a[0]), now: new(b[0])})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// fetch copies into the store the changed contents that only the user's git objects have.
func (k *Keeper) fetch(ctx context.Context, changed []change) error {
	want := map[[20]byte][]*entry{}
	var ids [][20]byte
	for _, c := range changed {
		for _, e := range []*entry{c.was, c.now} {
			if e == nil || e.held != theirs {
				continue
			}
			if k.store.Has(ctx, e.hash()) {
				e.held = ours
				continue
			}
			e.held = nowhere // until the store has it
			if want[e.blob] == nil {
				ids = append(ids, e.blob)
			}
			want[e.blob] = append(want[e.blob], e)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	room, err := k.room(ctx)
	if err != nil {
		return err
	}
	room = min(room, k.o.MaxRead)
	b, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer b.Discard()
	var got [][20]byte
	err = k.git.copy(ctx, ids, func(id [20]byte, size int64, from io.Reader) error {
		e := want[id][0]
		if size > room || size != e.size {
			return nil
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(from, data); err != nil {
			return nil //nolint:nilerr // git ended early
		}
		// What git returned is what the file held, by both names.
		if c := contentOf(data); c.blob != id || c.sum != e.sum {
			return nil
		}
		if _, err := b.Add(data); err != nil {
			return err
		}
		room -= size
		got = append(got, id)
		return nil
	})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		return err
	}
	for _, id := range got {
		for _, e := range want[id] {
			e.held = ours
		}
	}
	return nil
}
