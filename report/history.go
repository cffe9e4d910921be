package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Effective returns the messages of the model's history that would be sent: without hidden messages, and repaired
// where no provider would accept them, by the code that builds requests. notes describe the repairs, those of one kind at
// the first of them, and whether nothing would be sent.
func Effective(v *store.View) (messages []json.RawMessage, notes []string, err error) {
	stored, at, o, err := sendable(v)
	if err != nil {
		return nil, nil, err
	}
	built, mended, err := contextwindow.Build(stored, o)
	if err != nil { // it can only be empty
		return nil, []string{"nothing would be sent: the model's history holds no message"}, nil //nolint:nilerr // see above
	}
	messages = make([]json.RawMessage, len(built))
	for i, m := range built {
		messages[i] = esjson.ObjectOf("role", m.Role, "content", m.Content,
			"reasoning_details", m.ReasoningDetails, "reasoning_content", m.ReasoningContent)
	}
	times := map[string]int{}
	for _, n := range mended {
		times[n.Text]++
	}
	for _, n := range mended {
		more := times[n.Text] - 1
		if times[n.Text] = 0; more < 0 {
			continue
		}
		if n.Index >= 0 {
			n.Text = fmt.Sprintf("stored message %d: %s", at[n.Index]+1, n.Text)
		}
		if more > 0 {
			n.Text += fmt.Sprintf(" (and %d more like it)", more)
		}
		notes = append(notes, n.Text)
	}
	return messages, notes, nil
}

// sendable returns the parts of a task's next request: the stored messages with their places in the model's history, and
// the options for the task's model.
func sendable(v *store.View) (stored [][]byte, at []int, o contextwindow.Options, err error) {
	if stored, at, err = v.Sent(); err != nil {
		return nil, nil, o, fmt.Errorf("read the history of task %s: %w", v.Ref.ID, err)
	}
	provider := cmp.Or(v.State.Settings.Provider, "anthropic") // other tools do not record it; their blocks have this shape
	o = contextwindow.ForModel(provider, v.State.Settings.Model)
	o.KeepReasoningContent = slices.ContainsFunc(v.State.ReasoningTo, func(server string) bool {
		return strings.HasPrefix(server, v.State.Settings.Model+" at ")
	})
	return stored, at, o, nil
}

// StandIn reconstructs a history of a task from the other one, when its own is lost (see roofmt.Document.Lost). why
// explains this to people; "" = the history is shown as it is.
func StandIn(v *store.View, h task.History) (made []json.RawMessage, why string, err error) {
	if v.Folder == nil {
		return nil, "", nil
	}
	gone, own, other := v.Folder.UI, v.State.UI(), v.State.API()
	from, rebuild := "the model's history", view.UIFromAPI
	if h == task.API {
		gone, own, other = v.Folder.API, v.State.API(), v.State.UI()
		from, rebuild = "what the user saw", view.APIFromUI
	}
	if len(own) > 0 || len(other) == 0 || !gone.Lost() {
		return nil, "", nil
	}
	raws, err := v.State.Raws(slices.DeleteFunc(slices.Clone(other), func(m *task.Message) bool { return m.Missing }))
	if err != nil {
		return nil, "", fmt.Errorf("make a history of task %s from %s: %w", v.Ref.ID, from, err)
	}
	for _, raw := range rebuild(api.Each(raws, func(raw json.RawMessage) []byte { return raw })) {
		made = append(made, raw)
	}
	return made, fmt.Sprintf("reconstructed from %s, as far as possible: %s is %s", from, gone.Name, gone.State), nil
}

// ShortNames returns for each task in items, by SOURCE:ID, the shortest name that identifies it among all tasks: the
// end of its id or, where that is no longer, the beginning, with its source if several sources have the id. A name
// never looks like a flag.
func ShortNames(all []store.Ref, items []api.Summary) map[string]string {
	ids := map[string]int{}
	for _, t := range items { // a task that was made since then is listed, too
		ids[t.ID] = 0
	}
	copies := map[string]bool{} // a copy goes by the name of its task
	for _, t := range items {
		for _, path := range t.Copies {
			copies[path] = true
		}
	}
	for _, r := range all {
		if !copies[r.Dir] {
			ids[r.ID]++
		}
	}
	names, open := map[string]string{}, slices.Clone(items)
	for n := shortest; len(open) > 0; n++ {
		uses := map[string]int{} // of a name of that length: how many ids begin or end with it
		for id := range ids {
			begin, end := ends(id, n)
			if uses[begin]++; end != begin {
				uses[end]++
			}
		}
		open = slices.DeleteFunc(open, func(t api.Summary) bool {
			begin, name := ends(t.ID, n)
			switch {
			case uses[name] == 1 && name[0] != '-':
			case uses[begin] == 1:
				name = begin
			case n < len(t.ID):
				return false
			}
			if ids[t.ID] > 1 || name[0] == '-' || strings.Contains(name, ":") {
				name = t.Key()
			}
			names[t.Key()] = name
			return true
		})
	}
	return names
}

// shortest is the smallest length of a shortened id: with shorter ones, the next new tasks would make names
// ambiguous.
const shortest = 6

// ends returns the first and the last n bytes of an id.
func ends(id string, n int) (begin, end string) {
	n = min(n, len(id))
	return id[:n], id[len(id)-n:]
}

// RunOf returns a run's document.
func RunOf(r engine.RunInfo) api.Run {
	out := api.Run{
		ID: r.ID, Task: r.Ref.ID, State: r.State, Outcome: r.Outcome, Code: r.Code, Reason: r.Reason, Question: r.Question,
		Position: r.Position, Here: r.Here, Turns: r.OwnTurns,
		Lost:     r.State == "interrupted" && !r.Rewound && (r.Outcome == "" || r.Outcome == "interrupted" && r.Code == "") && r.Ref.InDatabase(),
		QueuedAt: api.Date(r.Queued), StartedAt: api.Date(r.Started), EndedAt: api.Date(r.Ended),
		Mode: r.Settings.Mode, Provider: r.Settings.Provider, Model: r.Settings.Model, Limits: LimitsOf(r.Settings.Limits),
		Resume: "roost resume " + api.ShellWord(r.Ref.ID),
	}
	if !r.CostUnknown {
		out.Cost = new(money.USD(r.OwnCostMicros))
	}
	return out
}

// LimitsOf returns the limits that end a run. It leaves out limits at which the run only asks.
func LimitsOf(l api.RunLimits) api.Limits {
	l.AskRequests, l.AskCostMicros = 0, 0
	return l.Given()
}

// QuestionOf returns an open question's document.
func QuestionOf(q engine.Asked) api.Question {
	out := api.Question{
		ID: q.ID, Task: q.Ref.ID, Title: q.Task.Title, Run: q.Run, Event: q.From.String(), Here: q.Here, QuestionOpened: q.QuestionOpened,
	}
	if at := api.Date(q.At); at != nil {
		out.At = *at
	}
	return out
}

// UndoneOf returns the document of engine.Undo's result.
func UndoneOf(action api.Action, task api.TaskActions, files *api.RestoreResult, o actions.Options) api.Undone {
	out := api.Undone{TaskActions: task, DryRun: o.DryRun, Restore: files}
	if out.Undone = &action; o.Redo {
		out.Undone, out.Redone = nil, &action
	}
	return out
}

// CommitsOf returns all commits of a task's journal, the oldest first. journal.ErrNotFound: the task has no journal.
func CommitsOf(ctx context.Context, v *store.View) ([]api.Commit, error) {
	if v.Log == nil {
		return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, journal.ErrNotFound)
	}
	var all []api.Commit
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			all = append(all, api.Commit{Seq: lost.Seq, Damage: lost.Reason})
		case err != nil:
			return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		default:
			all = append(all, api.Commit{Seq: c.Seq, Epoch: c.Epoch, At: api.Stamp(c.At), By: c.By, Events: c.Events})
		}
	}
	return all, nil
}
