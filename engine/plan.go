package engine

import (
	"context"
	"errors"
	"fmt"

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

// ResumePlan is what a run of a task would begin with.
type ResumePlan struct {
	Ref      store.Ref // what continues: the task, or the fork that continues it already
	Place    string
	First    bool          // Roost never worked on it
	Settings task.Settings // of the run, as far as nothing must be decided
	Asks     []error       // what a person must decide before a run can begin, in the order of asking
	Notes    []string      // what is different since the last run, and what else a person should know
}

// PlanResume finds what a request to continue a task would meet, and changes nothing: the checks are those of the run
// itself. A decision that an earlier plan asked for is a member of the request.
func (e *Engine) PlanResume(ctx context.Context, r Request) (p ResumePlan, err error) {
	ref, err := e.store.Find(ctx, r.Task)
	if err != nil {
		return p, err
	}
	p.Ref = e.store.Latest(ctx, ref)
	switch {
	case p.Ref.Own && ref.Foreign():
		p.Place = PlaceFork
	case p.Ref.Own:
		p.Place = PlaceOwn
	case p.Ref.CanAdopt():
		p.Place = PlaceInPlace
	default:
		p.Place = PlaceFork
	}
	view, err := e.store.ReadToContinue(ctx, p.Ref)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	p.First = view.Log == nil
	has := view.State.NextSettings()
	untrusted, err := e.checkTrust(ctx, p.Ref, view.State, r)
	if err != nil {
		return p, err
	}
	if untrusted != nil {
		if untrusted.mustAsk(len(view.State.Problems) > 0, r) {
			p.Asks = append(p.Asks, untrusted)
		}
		if !r.TrustSettings {
			has = has.Proposed()
		}
	}
	var notices []string
	if p.Settings, notices, err = e.settle(ref, view, has, &r); err == nil {
		p.Settings, _, err = e.resolver().Prepare(has, p.Settings, r.Choice, false)
	}
	if err != nil {
		p.Asks, err = append(p.Asks, err), nil
	}
	p.Notes = append(notices, differences(view.State, p.Settings, gitHead(p.Settings.Workspace))...)
	return p, nil
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
