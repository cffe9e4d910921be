package service

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/task"
)

// Patch changes title, tags, pin or settings of a task. It returns the task with its copies.
func (s *Service) Patch(ctx context.Context, c Call, id string, p api.TaskPatch) (Task, []string, error) {
	var w wrongs
	r := engine.Request{Interactive: true}
	settle(p.Settings, &r, &w)
	err := w.err()
	if err == nil {
		err = s.writable()
	}
	if err != nil {
		return Task{}, nil, err
	}
	ref, copies, err := s.store.FindWithCopies(ctx, id)
	if err != nil {
		return Task{}, nil, err
	}
	l, filed, err := s.labels(ctx, c, ref, p)
	if err != nil {
		return Task{}, nil, err
	}
	// Settings come first: they can be refused for more reasons than labels.
	if !reflect.DeepEqual(p.Settings, api.Settings{}) {
		if ref, err = s.engine.Amend(ctx, ref, r, c.stillSet(id)); err != nil {
			return Task{}, nil, err
		}
	}
	if filed {
		if _, err = labels.Set(ctx, s.store, ref, l); err != nil {
			return Task{}, nil, labelProblem(err)
		}
	}
	return Task{s, ref}, copies, nil
}

// labels are title, tags and pin of a patch; filed is false when it has none of them.
func (s *Service) labels(ctx context.Context, c Call, ref store.Ref, p api.TaskPatch) (l labels.Change, filed bool, err error) {
	if p.Title.Given {
		if l.Title, filed = p.Title.Value, true; l.Title == nil {
			l.Untitled = true
		} else {
			*l.Title = strings.TrimSpace(*l.Title)
		}
	}
	if p.Pinned.Given {
		pinned := p.Pinned.Value != nil && *p.Pinned.Value
		l.Pinned, filed = &pinned, true
	}
	if p.Tags.Given {
		filed = true
		var want []string
		if p.Tags.Value != nil {
			want = *p.Tags.Value
		}
		sum, _, err := Task{s, ref}.Document(ctx)
		if err != nil {
			return l, false, err
		}
		l.Add = want
		for _, tag := range sum.Tags {
			if !slices.Contains(want, tag) {
				l.Remove = append(l.Remove, tag)
			}
		}
	}
	if len(p.AddTags)+len(p.RemoveTags) > 0 {
		if p.Tags.Given {
			return l, false, api.Invalid(api.Wrong{Parameter: "/add_tags",
				Detail: "tags replaces all tags, and goes without add_tags and remove_tags"})
		}
		l.Add, l.Remove, filed = p.AddTags, p.RemoveTags, true
	}
	l.Check = c.stillFiled(ref.ID)
	return l, filed, nil
}

// stillFiled compares the labels of a task with those that the caller saw; nil when it did not look.
func (c Call) stillFiled(id string) func(title string, tags []string, pinned bool) error {
	if c.Seen == nil {
		return nil
	}
	return func(title string, tags []string, pinned bool) error {
		if title != "" && title != c.Seen.Title || !slices.Equal(tags, c.Seen.Tags) || pinned != c.Seen.Pinned {
			return report.MovedProblem(id)
		}
		return nil
	}
}

// stillSet compares the settings of a task with those that the caller saw; nil when it did not look.
func (c Call) stillSet(id string) func(task.Settings) error {
	if c.Seen == nil {
		return nil
	}
	return func(now task.Settings) error {
		if now.Mode != c.Seen.Mode || now.Provider != c.Seen.Provider || now.Model != c.Seen.Model {
			return report.MovedProblem(id)
		}
		return nil
	}
}

func labelProblem(err error) error {
	if !errors.Is(err, labels.ErrInvalid) {
		return err
	}
	at := "/title"
	if strings.Contains(err.Error(), "tag") {
		at = "/tags"
	}
	return api.Invalid(api.Wrong{Parameter: at, Detail: err.Error()})
}
