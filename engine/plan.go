package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Where a task continues.
const (
	PlaceOwn     = "own"      // in Roost's own root, where it is
	PlaceInPlace = "in_place" // in the other tool's storage, whose files stay as that tool writes them
	PlaceFork    = "fork"     // as a new task of Roost: the tool's files are not written
)

// PlanResume finds what a request to continue a task would meet, and changes nothing: the checks are those of the run
// itself. A decision that an earlier plan asked for is a member of the request. ref is what continues: the task, or the fork
// that continues it already. asks are what a person must decide before a run can begin, in the order of asking. The
// caller adds the plan's title, tool, current run and documents of asks.
func (e *Engine) PlanResume(ctx context.Context, r Request) (ref store.Ref, p api.ResumePlan, asks []error, err error) {
	given, err := e.store.Find(ctx, r.Task)
	if err != nil {
		return ref, p, nil, err
	}
	ref = e.store.Latest(ctx, given)
	view, err := e.store.ReadToContinue(ctx, ref)
	if err != nil {
		return ref, p, nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	switch {
	case ref.Own && !given.Foreign():
		p.Place = PlaceOwn
	case view.StaysInPlace():
		p.Place = PlaceInPlace
	default:
		p.Place = PlaceFork
	}
	p.First = view.Log == nil
	has := view.State.NextSettings()
	untrusted, err := e.checkTrust(ctx, ref, view.State, r)
	if err != nil {
		return ref, p, nil, err
	}
	if untrusted != nil {
		if untrusted.mustAsk(len(view.State.Problems) > 0, r) {
			asks = append(asks, untrusted)
		}
		if !r.TrustSettings {
			has = has.Proposed()
		}
	}
	next, notices, err := e.settle(given, view, has, &r)
	if err == nil {
		next, _, err = e.resolver().Prepare(has, next, r.Choice, false)
	}
	if err != nil {
		asks = append(asks, err)
	}
	p.Workspace, p.Provider, p.Model, p.Mode, p.Approve = next.Workspace, next.Provider, next.Model, next.Mode, next.Approve
	p.Notes = append(append([]string{}, notices...), differences(view.State, next, gitHead(next.Workspace))...)
	return ref, p, asks, nil
}

// settle finds the settings of a run of a task that is continued, without a change: the choice of the request over
// those that the task has. An error is a decision that the caller must make first.
func (e *Engine) settle(ref store.Ref, v *store.View, has task.Settings, r *Request) (s task.Settings, notices []string, err error) {
	r.Choice = e.resolver().Defaults(has, r.Choice, false)
	if r.Choice, notices, err = e.resolver().ResolveProfile(ref.Source, ref.ID, has, r.Choice); err != nil {
		return has, notices, err
	}
	was := v.Summary.Model // from the histories, where the settings name none
	r.Choice = e.resolver().KeepModel(has, was, r.Choice)
	s, err = e.resolver().Settings(has, r.Choice)
	if errors.Is(err, setup.ErrNoWorkspace) {
		err = setup.NoWorkspace(ref.ID, v.Summary.Workspace)
	}
	if err == nil {
		err = e.resolver().CheckWorkspace(s.Workspace)
	}
	if err == nil && s.Provider != "" && has.Model == "" && was != "" && s.Model != was {
		if !e.resolver().ModelNamed(r.Choice) {
			err = &setup.OtherModelError{Task: ref.ID, Was: was, Provider: s.Provider, Model: s.Model}
		}
		notices = append(notices, fmt.Sprintf("model: %s -> %s", was, s.Model))
	}
	return s, notices, err
}
