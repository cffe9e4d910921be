// Package labels changes the title, tags and pin of tasks.
//
// The labels of our own tasks are events of their journals. Those of another tool's task are entries of the overlay,
// because its folder is only read.
package labels

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/task"
)

// Change is a change of a task's labels. Nil members and absent tags stay as they are.
type Change struct {
	Title       *string
	Untitled    bool     // remove the title, so that the task's own title shows
	Add, Remove []string // tags
	Pinned      *bool

	// Check is called with the task's present labels while no other process can change them. Its error leaves
	// everything as it is. nil checks nothing.
	Check func(title string, tags []string, pinned bool) error
}

// ErrInvalid: a title or tag that cannot be a label.
var ErrInvalid = errors.New("it cannot be used as a label")

// Set changes the labels of a task and returns its row. The labels of our own tasks are events of their journals; those
// of another tool's task are entries of the overlay, and its folder is not touched. Set fails with a *journal.BusyError
// while another process owns a task of ours.
func Set(ctx context.Context, s *store.Store, ref store.Ref, l Change) (api.Summary, error) {
	if err := l.validate(); err != nil {
		return api.Summary{}, err
	}
	if l.Check == nil {
		l.Check = func(string, []string, bool) error { return nil }
	}
	was, named, err := labelled(ctx, s, ref)
	if err != nil {
		return api.Summary{}, err
	}
	if l.event(was.Title, named, was.Tags, was.Pinned) == nil {
		return was, nil
	}
	if ref.Own {
		err = setOwn(ctx, s, ref, l)
	} else {
		err = s.ChangeOverlay(ctx, func(table overlay.Table, add overlay.Append) error {
			if err := s.MeetsExpectation(ctx, ref); err != nil {
				return err
			}
			store.ApplyLabels(&was, table)
			if err := l.Check(was.Title, was.Tags, was.Pinned); err != nil {
				return err
			}
			e := l.event(was.Title, table.HasTitle(ref.Source, ref.ID), was.Tags, was.Pinned)
			if e == nil {
				return nil
			}
			return add(overlay.Entry{
				Type:   overlay.Changed,
				Source: ref.Source,
				ID:     ref.ID,
				Title:  e.Title,
				Tags:   e.Tags,
				Pinned: e.Pinned,
				Head:   s.HeadOf(ctx, ref),
			})
		})
	}
	if err != nil {
		return api.Summary{}, fmt.Errorf("label task %s: %w", ref.ID, err)
	}
	return Row(ctx, s, ref)
}

func setOwn(ctx context.Context, s *store.Store, ref store.Ref, l Change) error {
	o, err := s.Own(ctx, ref)
	if err != nil {
		return err
	}
	state := o.Task.State()
	if err = l.Check(state.Title, state.Tags, state.Pinned); err != nil {
		return errors.Join(err, o.Task.Close(ctx))
	}
	if e := l.event(state.Title, state.Title != "", state.Tags, state.Pinned); e != nil {
		err = o.Task.CommitSynced(ctx, *e)
	}
	return o.Task.CloseChanged(ctx, err)
}

// Row returns a task's row. A task that cannot be read is an error.
func Row(ctx context.Context, s *store.Store, ref store.Ref) (api.Summary, error) {
	return store.FromView(ctx, s, ref, func(v *store.View) (api.Summary, error) { return v.Summary, nil })
}

// labelled returns a task's row. named: a user gave the task its title.
func labelled(ctx context.Context, s *store.Store, ref store.Ref) (sum api.Summary, named bool, err error) {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return api.Summary{}, false, err
	}
	if named = v.State.Title != ""; !ref.Own {
		named = v.Labels.Title != nil && *v.Labels.Title != ""
	}
	return v.Summary, named, v.Close()
}

// event returns the event that makes the change; nil when it changes nothing. named: a user gave the task its title.
func (l Change) event(title string, named bool, tags []string, pinned bool) *task.Changed {
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
		next = append([]string{}, next...)
		e.Tags, changed = &next, true
	}
	if !changed {
		return nil
	}
	return &e
}

// maxTitle and maxTag bound labels, in bytes: every line of a list shows them. maxTags bounds the tags of one change,
// which an archive may bring.
const (
	maxTitle = 4096
	maxTag   = 64
	maxTags  = 1000
)

func (l Change) validate() error {
	if l.Title != nil {
		switch {
		case l.Untitled:
			return fmt.Errorf("the change sets and removes the title: %w", ErrInvalid)
		case strings.TrimSpace(*l.Title) == "":
			return fmt.Errorf("the title is empty: %w", ErrInvalid)
		case len(*l.Title) > maxTitle || !utf8.ValidString(*l.Title):
			return fmt.Errorf("the title must be text of at most %d bytes: %w", maxTitle, ErrInvalid)
		}
	}
	if n := len(l.Add) + len(l.Remove); n > maxTags {
		return fmt.Errorf("the change has %d tags, more than %d: %w", n, maxTags, ErrInvalid)
	}
	for _, t := range slices.Concat(l.Add, l.Remove) {
		odd := strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == ',' })
		if t == "" || len(t) > maxTag || odd || !utf8.ValidString(t) || strings.ContainsAny(t[:1], "+-#") {
			return fmt.Errorf("the tag %.100q must be 1 to %d bytes without blanks, commas, or +, - or # at its beginning: %w", t, maxTag, ErrInvalid)
		}
		if slices.Contains(l.Add, t) && slices.Contains(l.Remove, t) {
			return fmt.Errorf("the change adds and removes the tag %q: %w", t, ErrInvalid)
		}
	}
	return nil
}
