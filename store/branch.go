package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/task"
)

// HeadBranch is what the branch that a task goes on with is called.
const HeadBranch = "head"

// BranchRow is one branch of a task: its head, or one that was left.
type BranchRow struct {
	Name   string        `json:"name"`   // head, or as undo, fork and resume take it
	Parent string        `json:"parent"` // the branch that it shares most with; "" for the head
	From   int           `json:"from"`   // the last row that the two share, by its number; 0 = none
	Left   *string       `json:"left"`   // when it was left; RFC 3339
	Why    string        `json:"why"`    // what left it: rewind, edit, remove, branch
	By     string        `json:"by,omitempty"`
	All    MessageCounts `json:"messages"`
	Apart  MessageCounts `json:"apart"` // of those that the parent has not
	First  *Row          `json:"first"` // the first row that the parent has not
	Last   *Row          `json:"last"`  // the newest row
}

// ForkedFrom is the task that one began as a fork of.
type ForkedFrom struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	At     int    `json:"at"`     // the last row that it took over, by its number
	Branch string `json:"branch"` // that it started from
}

// Branches are a task's branches: the head, and what was left and holds something that
// is shown on no other, the newest first.
type Branches struct {
	ID     string      `json:"id"`
	Forked *ForkedFrom `json:"forked_from"`
	Items  []BranchRow `json:"items"`
}

// branchLine is a branch while the tree is made.
type branchLine struct {
	name    string
	branch  *task.Branch
	ui, api []*task.Message
}

// Branches draws the tree of a task's branches.
func (v *View) Branches() Branches {
	s := v.State
	out := Branches{ID: v.Ref.ID}
	if f := s.Fork; f != nil {
		out.Forked = &ForkedFrom{ID: f.From, Source: f.Source, At: f.At, Branch: HeadBranch}
		if f.Branch != 0 {
			out.Forked.Branch = BranchName(f.Branch)
		}
	}
	head := branchLine{name: HeadBranch, ui: s.UI(), api: s.API()}
	lines := []branchLine{head}
	for i := range slices.Backward(s.Branches) {
		b := &s.Branches[i]
		l := branchLine{name: BranchName(b.Seq), branch: b, ui: s.History(b.Leaf, task.UI), api: s.History(b.Leaf, task.API)}
		if !slices.ContainsFunc(lines, func(o branchLine) bool { return allIn(l.ui, o.ui) && allIn(l.api, o.api) }) {
			lines = append(lines, l)
		}
	}
	for i, l := range lines {
		out.Items = append(out.Items, rowOfBranch(s, l, lines[:i]))
	}
	return out
}

// allIn reports whether all messages of one list stand in another.
func allIn(list, in []*task.Message) bool {
	if len(list) > len(in) {
		return false
	}
	has := map[*task.Message]bool{}
	for _, m := range in {
		has[m] = true
	}
	return !slices.ContainsFunc(list, func(m *task.Message) bool { return !has[m] })
}

func rowOfBranch(s *task.State, l branchLine, before []branchLine) BranchRow {
	row := BranchRow{Name: l.name, All: MessageCounts{UI: len(l.ui), API: len(l.api)}}
	if n := len(l.ui); n > 0 {
		last := namedRow(s, l.ui[n-1], n)
		row.Last = &last
	}
	if l.branch == nil {
		return row
	}
	row.Left, row.Why, row.By = Timestamp(l.branch.At), l.branch.Why, l.branch.By
	best := -1
	for _, p := range before {
		if n := common(l.ui, p.ui); n > best {
			best, row.Parent = n, p.name
			row.Apart = MessageCounts{UI: len(l.ui) - n, API: len(l.api) - common(l.api, p.api)}
		}
	}
	row.From = best
	if best < len(l.ui) {
		first := namedRow(s, l.ui[best], best+1)
		row.First = &first
	}
	return row
}

// common is how many messages two lists begin with together.
func common(a, b []*task.Message) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// BranchError: no branch goes by that name.
type BranchError struct {
	Given      string
	Candidates []string
}

func (e *BranchError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("there is no branch %q; nothing of the task was rewound", e.Given)
	}
	return fmt.Sprintf("there is no branch %q; there are %s", e.Given, strings.Join(e.Candidates, ", "))
}

// branchOf finds a branch by its name; nil for the head.
func branchOf(s *task.State, name string) (*task.Branch, error) {
	if name == "" || name == HeadBranch {
		return nil, nil
	}
	wrong := &BranchError{Given: name}
	for i := range slices.Backward(s.Branches) {
		if BranchName(s.Branches[i].Seq) == name {
			return &s.Branches[i], nil
		}
		wrong.Candidates = append(wrong.Candidates, BranchName(s.Branches[i].Seq))
	}
	return nil, wrong
}

// Switch makes a branch the head of the histories. What was the head stays, as a branch.
// finish writes Roo's files, and must be called. Errors: *BranchError, *journal.BusyError.
func (s *Store) Switch(ctx context.Context, ref Ref, name string) (string, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	owned, err := s.ownLean(ctx, ref)
	if err != nil {
		return "", none, err
	}
	t := owned.Task
	b, err := branchOf(t.state, name)
	if err != nil || b == nil {
		return t.Ref.ID, none, errors.Join(err, t.Close(ctx))
	}
	if err := t.CommitDurably(ctx, "switch", task.Rewound{Why: "branch", Branch: b.Seq}); err != nil {
		return t.Ref.ID, none, errors.Join(err, t.Close(ctx))
	}
	return t.Ref.ID, t.Close, nil
}
