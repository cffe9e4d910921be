package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

// ForkOptions choose where a new task begins in the history of another one.
type ForkOptions struct {
	ID       string // of the new task; "" = a random one
	At       string // the last message that it has: #12, a ts, or ~2 (before the last two turns); "" = all
	Branch   string // the branch that it starts from; "" = the head
	Origin   string
	Title    string
	Settings func(*task.Settings) error // changes the settings that the fork copies; an error refuses the fork
	DryRun   bool
	Person   string // who forks it, and owns the fork; "" without accounts

	// Before is called with the new task's id before anything of the task exists. It may be nil.
	Before func(id string, s *task.State) error
}

// Fork makes a new task in Roost's own root that begins with the history of another one. A task that runs can be forked:
// the fork has what is saved. finish writes Roo's files of the new task and must be called.
//
// Errors: *ReferenceError, *BranchError, or those of store.Store.Find and Own.
func Fork(ctx context.Context, s *store.Store, ref store.Ref, o ForkOptions) (api.ForkResult, func(context.Context) error, error) {
	ref = s.Latest(ctx, ref)
	v, err := s.ReadToContinue(ctx, ref)
	if err != nil {
		return api.ForkResult{}, nothingToFinish, err
	}
	if !o.DryRun && !v.Settled() {
		// The journal must first hold what only the other tool's files hold. A fork that is impossible must not adopt the task.
		plan := o
		plan.DryRun = true
		_, err := planFork(ctx, s, v, nil, plan)
		if err = errors.Join(err, v.Close()); err != nil {
			return api.ForkResult{}, nothingToFinish, err
		}
		if ref, v, err = readSettled(ctx, s, ref); err != nil {
			return api.ForkResult{}, nothingToFinish, err
		}
	}
	if err := store.MeetsExpectationAt(ctx, ref, v.State.Seq); err != nil {
		return api.ForkResult{}, nothingToFinish, errors.Join(fmt.Errorf("fork task %s: %w", ref.ID, err), v.Close())
	}
	plan, err := planFork(ctx, s, v, v.FilesKnownElsewhere(), o)
	if err = errors.Join(err, v.Close()); err != nil || o.DryRun {
		return plan.result, nothingToFinish, err
	}
	if o.Before != nil {
		if err := o.Before(plan.id, v.State); err != nil {
			return plan.result, nothingToFinish, fmt.Errorf("fork task %s: %w", ref.ID, err)
		}
	}
	failpoint.Hit("fork.before")
	if err := plan.make(ctx, s, ref); err != nil {
		return plan.result, nothingToFinish, fmt.Errorf("fork task %s: %w", ref.ID, err)
	}
	failpoint.Hit("fork.made")
	return plan.result, func(ctx context.Context) error {
		t, err := s.OwnMade(ctx, s.OwnRef(plan.id))
		if err != nil {
			return err
		}
		return t.Close(ctx)
	}, nil
}

// FindFork returns the result of an earlier fork, as Fork returned it. Its error wraps store.ErrNotFound when there
// is no task of that id.
func FindFork(ctx context.Context, s *store.Store, id string) (api.ForkResult, error) {
	ref := s.OwnRef(id)
	if !s.HasJournal(ctx, ref) {
		return api.ForkResult{}, fmt.Errorf("%w: %s", store.ErrNotFound, id)
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return api.ForkResult{}, err
	}
	out := api.ForkResult{ID: id, Path: ref.Dir, Messages: api.MessageCounts{UI: len(v.State.UI()), API: len(v.State.API())}}
	if f := v.State.Fork; f != nil {
		out.From = *forkedFrom(f)
		if f.At > 0 && f.At <= len(v.State.UI()) {
			out.Last, out.Messages.UI = new(rowAt(v.State, f.At-1)), f.At
		}
	}
	return out, v.Close()
}

// readSettled adopts a task of another tool, so that its journal holds all of it, and opens it for reading.
func readSettled(ctx context.Context, s *store.Store, ref store.Ref) (store.Ref, *store.View, error) {
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return ref, nil, err
	}
	ref = owned.Task.Ref
	if err := owned.Task.Close(ctx); err != nil {
		return ref, nil, err
	}
	v, err := s.Read(ctx, ref)
	return ref, v, err
}

// forkPlan is a fork that is not made yet.
type forkPlan struct {
	id     string
	base   uint64       // the newest commit that it shares with the other task
	events []task.Event // the first events of the fork
	known  []byte       // what another tool recorded about files
	result api.ForkResult
}

// planFork plans a fork of the task that v shows. It changes v's state into the fork's.
func planFork(ctx context.Context, s *store.Store, v *store.View, known []byte, o ForkOptions) (forkPlan, error) {
	state := v.State
	base := state.Seq
	plan := forkPlan{
		id:     o.ID,
		base:   base,
		known:  known,
		result: api.ForkResult{From: api.ForkedFrom{ID: v.Ref.ID, Source: v.Ref.Source, Branch: HeadBranch}, DryRun: o.DryRun},
	}
	if plan.id == "" {
		plan.id = uuid.Must(uuid.NewV7()).String() // it never fails
	}
	b, err := findBranch(state, o.Branch)
	if err != nil {
		return plan, err
	}
	start, err := forkEvent(ctx, s, v, plan, o)
	if err != nil {
		return plan, err
	}
	if b != nil {
		start.Branch, plan.result.From.Branch = b.Seq, store.BranchName(b.Seq)
	}
	// v's state becomes the fork's, as its journal will give it, so that the cut is planned for the fork.
	if err := fold.Event(state, start.CreatedAt, start); err != nil {
		return plan, err
	}
	plan.events = []task.Event{start}
	cut, err := planCut(state, o.At)
	if err != nil {
		return plan, err
	}
	if cut != nil {
		cut.Why = "fork"
		if err := fold.Event(state, start.CreatedAt, *cut); err != nil {
			return plan, err
		}
		plan.events = append(plan.events, *cut)
	}
	start.At = len(state.UI())
	plan.events[0] = start
	plan.result.From.At, plan.result.Messages = start.At, api.MessageCounts{UI: len(state.UI()), API: len(state.API())}
	if n := len(state.UI()); n > 0 {
		plan.result.Last = new(rowAt(state, n-1))
	}
	if !o.DryRun {
		plan.result.ID, plan.result.Path = plan.id, s.OwnRef(plan.id).Dir
	}
	state.Seq = base // the commits that were applied here are not in the shared log
	return plan, nil
}

// forkEvent returns the event with which a fork begins.
func forkEvent(ctx context.Context, s *store.Store, v *store.View, plan forkPlan, o ForkOptions) (task.Forked, error) {
	e := task.Forked{
		Task:      plan.id,
		From:      v.Ref.ID,
		Source:    v.Ref.Source,
		Seq:       plan.base,
		CreatedAt: s.Now(),
		Origin:    o.Origin,
		Title:     o.Title,
		Settings:  v.State.Settings,
		Person:    o.Person,
	}
	if plan.known != nil {
		sum := sha256.Sum256(plan.known)
		e.Metadata = hex.EncodeToString(sum[:])
	}
	if standing, err := s.Standing(ctx, v.Ref, v.State.Begins); err != nil {
		return e, err
	} else if standing.OrderedBy(v.State, o.Person) != store.Ours {
		e.Settings = e.Settings.Proposed()
	}
	if o.Settings != nil {
		if err := o.Settings(&e.Settings); err != nil {
			return e, err
		}
	}
	if named := v.Labels.Title; named != nil { // by the user, in the overlay
		e.Title = cmp.Or(e.Title, *named)
	}
	e.Title = cmp.Or(e.Title, v.State.Title)
	return e, nil
}

// planCut returns the rewind that removes what a fork leaves out; nil when the fork has all messages.
func planCut(s *task.State, at string) (*task.Rewound, error) {
	if at == "" {
		return nil, nil
	}
	to, err := resolve(s, at)
	if err != nil {
		return nil, err
	}
	var e task.Rewound
	switch {
	case to.turns > 0:
		e, err = rewind.Turns(s, to.turns)
	case to.between:
		e, err = rewind.At(s, to.row, false)
	case to.row == len(s.UI())-1:
		return nil, nil
	default:
		e, err = rewind.At(s, to.row+1, false)
	}
	if errors.Is(err, rewind.ErrTurns) {
		return nil, tooManyTurns(s, at)
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// make makes the new task's folder. It becomes visible by one rename, as a whole.
func (p forkPlan) make(ctx context.Context, s *store.Store, from store.Ref) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	s.RemoveOldTemps(ctx)
	own, temp := s.OwnRef(p.id), s.OwnRef(store.TempName(p.id))
	err := p.write(ctx, s, from, temp)
	if err == nil {
		failpoint.Hit("fork.written")
		err = s.MoveTask(ctx, temp, own)
	}
	if err != nil {
		return errors.Join(err, s.RemoveTask(ctx, temp))
	}
	_ = s.Announce(ctx, own) // if it fails, the task's first owner does it
	return nil
}

// write writes the journal of the new task into a temporary place.
func (p forkPlan) write(ctx context.Context, s *store.Store, from, temp store.Ref) error {
	if err := s.BeginFork(ctx, temp, from, p.base); err != nil {
		return err
	}
	failpoint.Hit("fork.begun")
	log, err := s.OwnNewJournal(ctx, s.OwnRef(p.id), temp)
	if err != nil {
		return err
	}
	if err := p.writeEvents(ctx, s, log); err != nil {
		return errors.Join(err, log.Close())
	}
	return errors.Join(log.Barrier(ctx), log.Close())
}

// writeEvents commits each event separately: the cut is an action in the fork's own history.
func (p forkPlan) writeEvents(ctx context.Context, s *store.Store, log journal.Owner) error {
	for i, e := range p.events {
		var blobs []journal.Hash
		if i == 0 && p.known != nil { // the first event names the payload
			hash, err := log.PutBlob(ctx, p.known)
			if err != nil {
				return err
			}
			blobs = append(blobs, hash)
		}
		if err := s.Append(ctx, log, e, blobs...); err != nil {
			return err
		}
	}
	return nil
}

// HeadBranch is the name of the branch that is in use.
const HeadBranch = "head"

// BranchError: a task has no branch of that name.
type BranchError struct {
	Given      string
	Candidates []string
}

func (e *BranchError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("there is no branch %q: the task was never rewound", e.Given)
	}
	return fmt.Sprintf("there is no branch %q; there are %s", e.Given, strings.Join(e.Candidates, ", "))
}

// branchLine is a branch with its two histories.
type branchLine struct {
	name    string
	branch  *task.Branch // nil for the head
	ui, api []*task.Message
}

// Branches builds the tree of a task's branches.
func Branches(v *store.View) api.BranchTree {
	s := v.State
	out := api.BranchTree{ID: v.Ref.ID}
	if s.Fork != nil {
		out.Forked = forkedFrom(s.Fork)
	}
	head := branchLine{name: HeadBranch, ui: s.UI(), api: s.API()}
	lines := []branchLine{head}
	for i := range slices.Backward(s.Branches) {
		b := &s.Branches[i]
		l := branchLine{
			name:   store.BranchName(b.Seq),
			branch: b,
			ui:     s.History(b.Leaf, task.UI),
			api:    s.History(b.Leaf, task.API),
		}
		if !slices.ContainsFunc(lines, func(o branchLine) bool { return containsAll(o.ui, l.ui) && containsAll(o.api, l.api) }) {
			lines = append(lines, l)
		}
	}
	for i, l := range lines { // a branch's parent is one of the newer lines
		out.Items = append(out.Items, branchRow(s, l, lines[:i]))
	}
	return out
}

// forkedFrom describes the task that a fork began in.
func forkedFrom(f *task.Forked) *api.ForkedFrom {
	out := &api.ForkedFrom{ID: f.From, Source: f.Source, At: f.At, Branch: HeadBranch}
	if f.Branch != 0 {
		out.Branch = store.BranchName(f.Branch)
	}
	return out
}

// containsAll reports whether all contains each message of part.
func containsAll(all, part []*task.Message) bool {
	if n := len(part); n > len(all) || n > 0 && !slices.Contains(all, part[n-1]) { // most branches, without a set of each
		return false
	}
	has := api.SetOf(all)
	return !slices.ContainsFunc(part, func(m *task.Message) bool { return !has[m] })
}

func branchRow(s *task.State, l branchLine, before []branchLine) api.BranchRow {
	row := api.BranchRow{Name: l.name, All: api.MessageCounts{UI: len(l.ui), API: len(l.api)}}
	if n := len(l.ui); n > 0 {
		row.Last = new(newRow(s, l.ui[n-1], n))
	}
	if l.branch == nil {
		return row
	}
	row.Left, row.Why, row.By = api.Date(l.branch.At), l.branch.Why, l.branch.By
	shared := -1
	for _, p := range before {
		if n := commonPrefix(l.ui, p.ui, identical); n > shared {
			shared, row.Parent = n, p.name
			row.Apart = api.MessageCounts{UI: len(l.ui) - n, API: len(l.api) - commonPrefix(l.api, p.api, identical)}
		}
	}
	row.From = shared
	if shared < len(l.ui) {
		row.First = new(newRow(s, l.ui[shared], shared+1))
	}
	return row
}

func identical(x, y *task.Message) bool { return x == y }

// commonPrefix returns the number of messages with which both lists begin.
func commonPrefix(a, b []*task.Message, same func(x, y *task.Message) bool) int {
	for i := range min(len(a), len(b)) {
		if !same(a[i], b[i]) {
			return i
		}
	}
	return min(len(a), len(b))
}

// findBranch finds a branch by its name; nil for the head.
func findBranch(s *task.State, name string) (*task.Branch, error) {
	if name == "" || name == HeadBranch {
		return nil, nil
	}
	wrong := &BranchError{Given: name}
	for i := range slices.Backward(s.Branches) {
		if store.BranchName(s.Branches[i].Seq) == name {
			return &s.Branches[i], nil
		}
		wrong.Candidates = append(wrong.Candidates, store.BranchName(s.Branches[i].Seq))
	}
	return nil, wrong
}

// Switch makes a branch the head of both histories. What was the head stays as a branch. It returns the task's id, and
// finish, which writes Roo's files and must be called.
//
// Errors: *BranchError, *journal.BusyError, or those of store.Store.Own.
func Switch(ctx context.Context, s *store.Store, ref store.Ref, name string) (id string, finish func(context.Context) error, err error) {
	owned, err := s.OwnLean(ctx, ref)
	if err != nil {
		return "", nothingToFinish, err
	}
	t := owned.Task
	b, err := findBranch(t.State(), name)
	if err != nil || b == nil {
		return t.Ref.ID, nothingToFinish, errors.Join(err, t.Close(ctx))
	}
	if err := t.CommitDurably(ctx, "switch", task.Rewound{Why: "branch", Branch: b.Seq}); err != nil {
		return t.Ref.ID, nothingToFinish, errors.Join(err, t.Close(ctx))
	}
	return t.Ref.ID, t.Close, nil
}
