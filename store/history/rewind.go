package history

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
	"github.com/roost-dev/roost/usage"
)

// RewindOptions choose how far the histories go back. The zero value is one turn.
type RewindOptions struct {
	To     string // a message: #12, ~2 (turns), c3 (a checkpoint), or a ts; "" = ~1
	Keep   bool   // the message itself stays
	Edit   string // a text that replaces the message, for the next run
	Remove bool   // remove only this message and what belongs to it
	DryRun bool
}

// Rewind hides the end of both histories in one commit. What it hides stays as a branch. It returns when the commit is
// durable; finish writes Roo's files and must be called.
//
// Errors: *ReferenceError for a message that does not exist, rewind.ErrTurns, rewind.ErrNothingToCut, those of
// task.CutMessage, *journal.BusyError while the task runs, or those of store.Store.Find.
func Rewind(ctx context.Context, s *store.Store, ref store.Ref, o RewindOptions) (api.RewindResult, func(context.Context) error, error) {
	if o.DryRun {
		r, err := dryRewind(ctx, s, ref, o)
		return r, nothingToFinish, err
	}
	if !ref.Own {
		// A rewind that is impossible must not adopt, and write to, another tool's folder.
		if _, err := dryRewind(ctx, s, ref, o); err != nil {
			return api.RewindResult{}, nothingToFinish, err
		}
	}
	owned, err := s.OwnLean(ctx, ref)
	if err != nil {
		return api.RewindResult{}, nothingToFinish, err
	}
	t := owned.Task
	r, events, err := PlanRewind(t.State(), o, s.Now())
	r.ID, r.Forked = t.Ref.ID, owned.Forked
	if err == nil {
		err = t.CommitDurably(ctx, "rewind", events...)
	}
	if err != nil {
		return r, nothingToFinish, errors.Join(err, t.Close(ctx))
	}
	r.Branch = store.BranchName(t.State().Seq)
	return r, t.Close, nil
}

func dryRewind(ctx context.Context, s *store.Store, ref store.Ref, o RewindOptions) (api.RewindResult, error) {
	ref = s.Latest(ref)
	v, err := s.ReadToContinue(ctx, ref)
	if err != nil {
		return api.RewindResult{}, err
	}
	r, _, err := PlanRewind(v.State, o, s.Now())
	r.ID, r.DryRun = ref.ID, true
	return r, errors.Join(err, v.Close())
}

// FindRewind is the result of a rewind that is among the given commits, as Rewind returned it; see store.Store.CommitsBy.
// done is false when no commit is a rewind.
func FindRewind(
	ctx context.Context, s *store.Store, ref store.Ref, o RewindOptions, commits []journal.Commit,
) (r api.RewindResult, done bool, err error) {
	seq := uint64(0)
	for _, c := range commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil && e.EventType() == (task.Rewound{}).EventType() {
				seq = c.Seq
			}
		}
	}
	if seq == 0 {
		return api.RewindResult{}, false, nil
	}
	given := ref.ID
	ref = s.Latest(ref)
	log, err := s.Follow(ref)
	if err != nil {
		return api.RewindResult{}, false, err
	}
	state, err := fold.To(ctx, log, commits[0].Seq-1)
	if err == nil {
		r, _, err = PlanRewind(state, o, s.Now())
	}
	if r.ID, r.Branch = ref.ID, store.BranchName(seq); ref.ID != given {
		r.Forked = given
	}
	return r, true, errors.Join(err, log.Close())
}

// PlanRewind is the events that a rewind commits, and what they remove.
func PlanRewind(s *task.State, o RewindOptions, now int64) (api.RewindResult, []task.Event, error) {
	to, err := resolve(s, o.To)
	if err != nil {
		return api.RewindResult{}, nil, err
	}
	var e task.Rewound
	switch {
	case o.Remove && (to.turns > 0 || to.between):
		return api.RewindResult{}, nil, &ReferenceError{
			Given:      o.To,
			Malformed:  true,
			Why:        "name the message to remove, such as #12",
			Candidates: candidatesBefore(s, len(s.UI())),
		}
	case o.Remove:
		e, err = rewind.Message(s, to.row)
	case to.turns > 0:
		e, err = rewind.Turns(s, to.turns)
	default:
		e, err = rewind.At(s, to.row, o.Keep)
	}
	if errors.Is(err, rewind.ErrTurns) {
		return api.RewindResult{}, nil, tooManyTurns(s, o.To)
	}
	if err != nil {
		return api.RewindResult{}, nil, err
	}
	if o.Edit == "" {
		return describeRewind(s, e, o.Keep), []task.Event{e}, nil
	}
	e.Why = "edit"
	r := describeRewind(s, e, o.Keep)
	events := []task.Event{e, task.InputQueued{Input: uuid.NewString(), Text: o.Edit}}
	if r.Left.UI > 0 { // otherwise the next run shows the text as the task's first message
		row := feedbackRow(max(now, s.LastTS()), o.Edit)
		events = append(events, task.MessageAdded{History: task.UI, Message: s.NextMessage(), Body: task.Body{Raw: row}})
	}
	return r, events, nil
}

// feedbackRow is a row of Roo's that shows what the user wrote.
func feedbackRow(ts int64, text string) []byte {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "user_feedback")
	o.String("text", text)
	o.Raw("images", []byte("[]"))
	return o.Bytes()
}

// describeRewind lists what a rewind removes.
func describeRewind(s *task.State, e task.Rewound, keep bool) api.RewindResult {
	removed := map[uint64]bool{}
	for _, run := range e.Hide {
		for id := run[0]; id <= run[1] && id < s.NextMessage(); id++ {
			removed[id] = true
		}
	}
	r := api.RewindResult{
		Kind:      e.Why,
		Kept:      keep,
		Calls:     removedCalls(s, e, removed),
		Files:     forgottenFiles(s, e),
		Asked:     len(e.Questions),
		Queued:    len(e.Inputs),
		Restored:  rewind.Lifts(s, e),
		Unmatched: e.Unmatched,
	}
	var spent usage.Tokens
	for i, m := range s.UI() {
		if !removed[m.ID] {
			r.Left.UI++
			continue
		}
		r.Gone.UI++
		if m.ID == e.To {
			row := rowAt(s, i)
			r.To = &row
		}
		if tokens, ok := m.Spent(); ok {
			tokens.AddTo(&spent)
		}
	}
	for _, m := range s.API() {
		if !removed[m.ID] {
			r.Left.API++
			continue
		}
		r.Gone.API++
		if m.Kind() == "assistant" {
			r.Turns++
		}
	}
	sum, price := cost.Round(spent)
	r.Spent, r.Spent.Cost = sum, &price
	return r
}

// removedCalls are the tool calls of which a rewind removes the message or the outcome.
func removedCalls(s *task.State, e task.Rewound, removed map[uint64]bool) []api.RemovedCall {
	out := []api.RemovedCall{}
	for _, c := range s.Calls() {
		stays := slices.Contains(e.Calls, c.ID) && s.Call(c.ID) == c
		if m := s.Message(c.Message); !stays && (m == nil || m.Hidden != "" || !removed[c.Message]) {
			continue
		}
		call := api.RemovedCall{ID: c.ID, Name: c.Name, Outcome: string(c.Outcome()), Stays: stays}
		if c.Finished != nil {
			call.Outcome = c.Finished.Outcome
		}
		out = append(out, call)
	}
	return out
}

// forgottenFiles are the files that the model knows only from what a rewind removes.
func forgottenFiles(s *task.State, e task.Rewound) []string {
	known := map[string]bool{}
	for _, f := range s.Files {
		if e.Files == 0 || f.Seq < e.Files {
			known[f.Path] = true
		}
	}
	out := []string{}
	for _, f := range s.Files {
		if !known[f.Path] {
			known[f.Path] = true
			out = append(out, f.Path)
		}
	}
	return out
}
