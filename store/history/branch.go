package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

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
	for i, l := range lines {
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
	if len(part) > len(all) {
		return false
	}
	has := map[*task.Message]bool{}
	for _, m := range all {
		has[m] = true
	}
	return !slices.ContainsFunc(part, func(m *task.Message) bool { return !has[m] })
}

func branchRow(s *task.State, l branchLine, before []branchLine) api.BranchRow {
	row := api.BranchRow{Name: l.name, All: api.MessageCounts{UI: len(l.ui), API: len(l.api)}}
	if n := len(l.ui); n > 0 {
		last := newRow(s, l.ui[n-1], n)
		row.Last = &last
	}
	if l.branch == nil {
		return row
	}
	row.Left, row.Why, row.By = store.Timestamp(l.branch.At), l.branch.Why, l.branch.By
	shared := -1
	for _, p := range before {
		if n := commonPrefix(l.ui, p.ui); n > shared {
			shared, row.Parent = n, p.name
			row.Apart = api.MessageCounts{UI: len(l.ui) - n, API: len(l.api) - commonPrefix(l.api, p.api)}
		}
	}
	row.From = shared
	if shared < len(l.ui) {
		first := newRow(s, l.ui[shared], shared+1)
		row.First = &first
	}
	return row
}

// commonPrefix is the number of messages with which both lists begin.
func commonPrefix(a, b []*task.Message) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
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
