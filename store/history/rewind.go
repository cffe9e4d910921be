// Package history changes which part of a task's history is in use: it rewinds both histories, switches between branches,
// and forks a task into a new one.
//
// Nothing is removed from the journal. A rewind is one commit that hides messages; what it hides stays as a branch, which
// Switch makes the head again and Fork can start from. A fork shares the stored bytes of the other task by hard links, so
// neither task needs the other one to exist.
//
// Rewind, undo and fork take a task over from its snapshot (store.OwnLean); the next full owner examines all commits.
//
// Each change is durable when its function returns. Roo's files follow when finish is called; a caller that is killed
// before that leaves files that the task's next owner writes.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// nothingToFinish is the finish function of a change that left Roo's files as they were.
func nothingToFinish(context.Context) error { return nil }

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
	ref = s.Latest(ctx, ref)
	v, err := s.ReadToContinue(ctx, ref)
	if err != nil {
		return api.RewindResult{}, err
	}
	r, _, err := PlanRewind(v.State, o, s.Now())
	r.ID, r.DryRun = ref.ID, true
	return r, errors.Join(err, v.Close())
}

// FindRewind returns the result of the rewind that is among the given commits, as Rewind returned it; see
// store.Store.CommitsBy. done is false when no commit is a rewind.
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
	ref = s.Latest(ctx, ref)
	log, err := s.Follow(ctx, ref)
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

// PlanRewind returns the events that a rewind commits, and a description of what they remove.
func PlanRewind(s *task.State, o RewindOptions, now int64) (api.RewindResult, []task.Event, error) {
	to, err := resolve(s, o.To)
	if err != nil {
		return api.RewindResult{}, nil, err
	}
	o.Keep = o.Keep && to.turns == 0 && !to.between // the other references name no message
	var e task.Rewound
	switch {
	case o.Remove && (to.turns > 0 || to.between):
		wrong := wrongReference(s, o.To, "name the message to remove, such as #12")
		wrong.Malformed = true
		return api.RewindResult{}, nil, wrong
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
		row := esjson.ObjectOf("ts", max(now, s.LastTS()), "type", "say", "say", "user_feedback", "text", o.Edit, "images", []byte("[]"))
		events = append(events, task.MessageAdded{History: task.UI, Message: s.NextMessage(), Body: task.Body{Raw: row}})
	}
	return r, events, nil
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
			r.To = new(rowAt(s, i))
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

// removedCalls returns the tool calls whose message or outcome a rewind removes.
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

// forgottenFiles returns the files that the model knows only from messages that a rewind removes.
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

// ReferenceError: a reference to a message is malformed, or matches no message or several.
type ReferenceError struct {
	Given      string
	Why        string
	Ambiguous  bool
	Malformed  bool
	Candidates []api.Row
}

func (e *ReferenceError) Error() string { return fmt.Sprintf("message %s: %s", e.Given, e.Why) }

// target is the place that a reference names: a row, or a number of turns back.
type target struct {
	row     int  // in the UI history, from 0
	turns   int  // 0: row counts
	between bool // the reference names the moment before the row, not the row
}

// maxCandidates bounds the messages that a ReferenceError suggests: they fit on a screen.
const maxCandidates = 5

// resolve reads a reference: #12 or 12, ~2 or -2, a checkpoint such as c3, or a ts. "" is one turn back.
func resolve(s *task.State, given string) (target, error) {
	text := strings.TrimSpace(given)
	if text == "" {
		return target{turns: 1}, nil
	}
	if text[0] == '~' || text[0] == '-' {
		n, err := strconv.Atoi(text[1:])
		if text == "~" { // short for ~1
			n, err = 1, nil
		}
		if err != nil || n < 1 {
			return target{}, &ReferenceError{Given: given, Malformed: true, Why: "want a number of turns such as ~2"}
		}
		return target{turns: n}, nil
	}
	if to, ok, err := resolveCheckpoint(s, text, given); ok {
		return to, err
	}
	digits, numbered := strings.CutPrefix(text, "#")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		wrong := wrongReference(s, given, "want a message's number such as #12, turns back such as ~2, a checkpoint such as c3, or a ts")
		wrong.Malformed = true
		return target{}, wrong
	}
	if numbered || n <= int64(len(s.UI())) {
		if n < 1 || n > int64(len(s.UI())) {
			return target{}, wrongReference(s, given, fmt.Sprintf("the task has the messages #1 to #%d", len(s.UI())))
		}
		return target{row: int(n) - 1}, nil
	}
	return resolveTS(s, n, given)
}

// callRows are the kinds of rows that show a tool call.
var callRows = map[string]bool{"ask:tool": true, "say:tool": true, "ask:command": true, "ask:use_mcp_server": true}

// resolveCheckpoint reads a reference such as c3; ok is false when the text is no such reference. A checkpoint means the
// moment at which it was taken: a rewind removes what came after it. For a checkpoint that was taken before a change, it
// also removes the row that shows the change, with its outcome, so that histories and files are of the same moment.
func resolveCheckpoint(s *task.State, text, given string) (to target, ok bool, err error) {
	digits, named := strings.CutPrefix(text, "c")
	n, err := strconv.Atoi(digits)
	if !named || err != nil || n < 0 {
		return target{}, false, nil
	}
	ui := s.UI()
	c := s.Checkpoint(n)
	var why string
	switch {
	case len(s.Checkpoints) == 0:
		why = "the task has no checkpoints"
	case c == nil:
		why = fmt.Sprintf("the task has the checkpoints c1 to c%d", s.Checkpoints[len(s.Checkpoints)-1].Number)
	case s.RewoundCheckpoint(*c):
		why = fmt.Sprintf("%s was rewound with its messages; use roost checkpoint restore to restore the files alone", text)
	default:
		row, _ := slices.BinarySearchFunc(ui, c.Seq+1, func(m *task.Message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
		if c.Reason == task.ReasonBefore && row > 0 && callRows[ui[row-1].Kind()] {
			row--
		}
		if row < len(ui) {
			return target{row: row, between: true}, true, nil
		}
		why = fmt.Sprintf("no message follows %s", text)
	}
	return target{}, true, wrongReference(s, given, why)
}

// resolveTS finds the row with the time ts. Where no row has it, the candidates are the rows around that time: the
// time may be that of a message of the model's history, which the user does not see.
func resolveTS(s *task.State, ts int64, given string) (target, error) {
	var matches []int
	near := 0
	for i, m := range s.UI() {
		if m.TS() == ts {
			matches = append(matches, i)
		}
		if m.TS() <= ts {
			near = i
		}
	}
	switch len(matches) {
	case 1:
		return target{row: matches[0]}, nil
	case 0:
		around := candidatesBefore(s, near+maxCandidates/2+1)
		return target{}, &ReferenceError{Given: given, Why: "no message has that ts", Candidates: around}
	}
	some := api.Each(matches[:min(len(matches), maxCandidates)], func(i int) api.Row { return rowAt(s, i) })
	why := fmt.Sprintf("%d messages have that ts", len(matches))
	return target{}, &ReferenceError{Given: given, Ambiguous: true, Why: why, Candidates: some}
}

// tooManyTurns is the error for a reference to more turns than the task has.
func tooManyTurns(s *task.State, given string) error {
	return wrongReference(s, given, fmt.Sprintf("the model has replied %d times", s.Replies))
}

// wrongReference returns the error for a reference, with the task's last messages as candidates.
func wrongReference(s *task.State, given, why string) *ReferenceError {
	return &ReferenceError{Given: given, Why: why, Candidates: candidatesBefore(s, len(s.UI()))}
}

// candidatesBefore returns the last messages before a row.
func candidatesBefore(s *task.State, end int) []api.Row {
	end = min(end, len(s.UI()))
	var out []api.Row
	for i := max(0, end-maxCandidates); i < end; i++ {
		out = append(out, rowAt(s, i))
	}
	return out
}

func rowAt(s *task.State, i int) api.Row { return newRow(s, s.UI()[i], i+1) }

// newRow names a message. The text of a message whose bytes are lost is empty.
func newRow(s *task.State, m *task.Message, number int) api.Row {
	out := api.Row{Number: number, TS: m.TS(), Kind: m.Kind()}
	if raws, err := s.Raws([]*task.Message{m}); err == nil {
		out.Text = firstWords(plainText(esjson.TextOf(raws[0], "text")))
	}
	return out
}

// plainText returns a row's text for the user. A JSON text of a tool call or a request becomes the tool, question or
// command in it.
func plainText(text string) string {
	if !strings.HasPrefix(text, "{") || !esjson.Valid([]byte(text)) {
		return text
	}
	for _, key := range []string{"tool", "question", "command"} {
		if name, ok := esjson.GetString([]byte(text), key); ok {
			return strings.TrimSpace(name + " " + esjson.TextOf([]byte(text), "path"))
		}
	}
	return ""
}

// firstWords returns the beginning of a text on one line.
func firstWords(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const maxRunes = 80 // a terminal's width
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return text
}
