package history

import (
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Side is one side of a comparison: the head of a task, or one of its branches.
type Side struct {
	View   *store.View
	Branch string
	ui     []*task.Message
	api    []*task.Message
	common struct{ ui, api int }
}

// SideOf returns the side with a branch's name; "" is the head. The error is *BranchError.
func SideOf(v *store.View, branch string) (*Side, error) {
	b, err := findBranch(v.State, branch)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return &Side{View: v, Branch: HeadBranch, ui: v.State.UI(), api: v.State.API()}, nil
	}
	return &Side{View: v, Branch: branch, ui: v.State.History(b.Leaf, task.UI), api: v.State.History(b.Leaf, task.API)}, nil
}

// Compare finds the messages with which both sides begin. Messages of two tasks are the same when their kinds and
// times are equal: a fork copies both.
func Compare(a, b *Side) {
	same := func(x, y *task.Message) bool { return x == y || x.TS() == y.TS() && x.Kind() == y.Kind() }
	a.common.ui, a.common.api = commonPrefix(a.ui, b.ui, same), commonPrefix(a.api, b.api, same)
	b.common = a.common
}

// Common returns the last row that both sides show; nil without one.
func (s *Side) Common() *api.Row {
	n := s.common.ui
	if n == 0 {
		return nil
	}
	return new(newRow(s.View.State, s.ui[n-1], n))
}

// Counts returns the number of messages behind the common ones.
func (s *Side) Counts() api.MessageCounts {
	return api.MessageCounts{UI: len(s.ui) - s.common.ui, API: len(s.api) - s.common.api}
}

// bookkeeping are the kinds of rows that hold no words and no act of the user or the model.
var bookkeeping = []string{"say:api_req_started", "say:api_req_finished", "say:api_req_retried", "say:checkpoint_saved", "ask:completion_result",
	"ask:resume_task", "ask:resume_completed_task"}

// Rows returns the newest rows behind the common ones, at most most of them, in order; left is the number of older
// ones. It leaves out rows of bookkeeping.
func (s *Side) Rows(most int) (out []api.Row, left int) {
	kept := []int{}
	for i := s.common.ui; i < len(s.ui); i++ {
		if !slices.Contains(bookkeeping, s.ui[i].Kind()) {
			kept = append(kept, i)
		}
	}
	left = max(len(kept)-most, 0)
	return api.Each(kept[left:], func(i int) api.Row { return newRow(s.View.State, s.ui[i], i+1) }), left
}

// Ends returns two messages of the model's history: the last one that both sides have, and the side's last one; 0 =
// none.
func (s *Side) Ends() (common, last uint64) {
	if n := s.common.api; n > 0 {
		common = s.api[n-1].ID
	}
	if n := len(s.api); n > 0 {
		last = s.api[n-1].ID
	}
	return common, last
}
