package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

const (
	leastIdle = 1000 // milliseconds; the older call has these bounds
	mostIdle  = 24 * 60 * 60 * 1000
)

// CheckOlder checks a document of the older call.
func CheckOlder(n api.OlderRun) error {
	var w wrongs
	if strings.TrimSpace(n.Text) == "" {
		w.add("/task", "the message is empty")
	}
	switch {
	case n.Restart && n.Task == "":
		w.add("/taskId", "restartTask continues a task: give its id")
	case !n.Restart && n.Task != "":
		w.add("/restartTask", "taskId names a task to continue: set restartTask, too")
	case n.Task != "" && !ValidName(n.Task):
		w.add("/taskId", "no task can have that id")
	}
	if n.IdleMS != 0 && (n.IdleMS < leastIdle || n.IdleMS > mostIdle) {
		w.add("/slidingTimeoutMs", "want milliseconds from %d to %d; 0 is the default", leastIdle, mostIdle)
	}
	return w.err()
}

// Older carries out the older call: it starts a task, continues one, or sends the message to the run that works on
// it.
func (s *Service) Older(ctx context.Context, c Call, n api.OlderRun) (*Follow, error) {
	r := engine.Request{Text: n.Text, Choice: setup.Choice{Mode: n.Mode}, Interactive: true, Origin: "api"}
	if n.IdleMS > 0 {
		r.Limits = &api.RunLimits{IdleTimeoutMS: n.IdleMS}
	}
	var err error
	if n.Restart {
		r.Fallback = true // the call cannot name a model
		err = s.restarts(ctx, c, n.Task, &r)
	} else {
		err = s.begins(c, &r)
	}
	if err != nil {
		return nil, err
	}
	r = ordered(ctx, r)
	t, err := s.engine.Submit(keep(ctx), r)
	switch {
	case errors.Is(err, engine.ErrRunning) && n.Restart:
		return s.joins(ctx, c, r)
	case HeldElsewhere(err):
		return nil, err
	case err != nil:
		return nil, s.about(ctx, n.Task, err)
	}
	return followOf(t.Ref.ID, t.ID, t.From), nil
}

// HeldElsewhere reports whether an error means that another process works on the task.
func HeldElsewhere(err error) bool {
	_, busy := errors.AsType[*journal.BusyError](err)
	return busy
}

// joins sends the message to a run that works on the task already, and follows it from here.
func (s *Service) joins(ctx context.Context, c Call, r engine.Request) (*Follow, error) {
	ref, err := s.store.Find(ctx, r.Task)
	if err != nil {
		return nil, s.about(ctx, r.Task, err)
	}
	from, _, err := events.Newest(ctx, s.store, ref)
	if err != nil {
		return nil, s.about(ctx, ref.ID, err)
	}
	sent, err := s.engine.Send(keep(ctx), r.Task, engine.Message{ID: c.Key, Text: r.Text, By: "api", Request: r})
	if err != nil {
		return nil, s.about(ctx, ref.ID, err)
	}
	// Follow from after the whole commit: the next commit is the message, and its time is that of the message.
	return followOf(ref.ID, sent.Run, events.AfterCommit(from.Seq)), nil
}

// begins completes the request for a new task.
func (s *Service) begins(c Call, r *engine.Request) error {
	if r.Workspace = s.opt.Restart.Workspace; r.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the workspace of a new task: %w", err)
		}
		r.Workspace = dir
	}
	if r.NewTask = c.Key; r.NewTask != "" {
		r.RunID = c.runFor(r.NewTask)
	}
	return nil
}

// about is the problem of an error. If the problem names no task, about names the one that the caller asked for.
func (s *Service) about(ctx context.Context, id string, err error) error {
	p := s.Problem(ctx, err, id)
	p.Task = cmp.Or(p.Task, id)
	return p
}

// OlderStart holds what the older call's first event needs.
type OlderStart struct {
	At      int64  // Unix milliseconds of the first commit that the call led to
	Unknown string // a profile of the task that is not known here; "" = none
	Used    api.Run
}

// OlderStart finds when a call started its run, or joined one. A repeated call gets the same answer.
func (s *Service) OlderStart(ctx context.Context, f Follow) (out OlderStart, err error) {
	t, err := s.Find(ctx, f.Task)
	if err != nil {
		return out, err
	}
	info, err := s.engine.RunByID(ctx, f.Run)
	if err != nil {
		return out, err
	}
	out.Used.Provider, out.Used.Model = info.Settings.Provider, info.Settings.Model
	if name := info.Settings.Profile; name != "" && !s.engine.Config().HasProfile(name) {
		out.Unknown = name
	}
	log, err := s.store.Follow(ctx, t.ref)
	if err != nil {
		return out, err
	}
	from, _ := events.ParseCursor(f.From)
	first := from.Seq
	if from.IsWhole() {
		first++
	}
	for commit, err := range log.Read(ctx, first) {
		if err == nil {
			out.At = max(commit.At, cmp.Or(info.Queued, info.Started))
			break
		}
	}
	return out, log.Close()
}

// Origin returns the front door that a task came from; "" = unknown.
func (s *Service) Origin(ctx context.Context, id string) (string, error) {
	return read(ctx, s, id, func(v *store.View) (string, error) { return v.Summary.Origin, nil })
}

// Spent sums what a task spends, event by event.
type Spent struct{ tally cost.Tally }

// SpentBefore returns what the task had spent before a commit.
func (t Task) SpentBefore(ctx context.Context, seq uint64) (*Spent, error) {
	log, err := t.of.store.Follow(ctx, t.ref)
	if err != nil {
		return nil, err
	}
	state, err := fold.To(ctx, log, seq-1)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &Spent{cost.TallyOf(state)}, log.Close()
}

// Add adds the data of an event usage.changed, and returns the sum.
func (s *Spent) Add(data []byte) (api.Usage, error) {
	var e task.UsageChanged
	if err := json.Unmarshal(data, &e); err != nil {
		return api.Usage{}, fmt.Errorf("read an event usage.changed: %w", err)
	}
	s.tally.Own.Add(e)
	return s.tally.Usage(), nil
}

// QuestionsOfRun returns the open questions of a run and of its subtasks, which have runs of their own.
func (s *Service) QuestionsOfRun(ctx context.Context, run string) ([]api.Question, error) {
	t, _, err := s.RunTask(ctx, run)
	if err != nil {
		return nil, err
	}
	all, err := s.engine.Questions(ctx, "")
	var out []api.Question
	for _, q := range all {
		own := q.Ref.ID == t.ref.ID && (q.Run == run || q.Run == "")
		if own || cmp.Or(q.Task.RootID, q.Task.ID) == t.ref.ID {
			out = append(out, report.QuestionOf(q))
		}
	}
	return out, err
}

// OlderQuestion finds an open question by its whole id, or by the ids of its task and of the question.
func (s *Service) OlderQuestion(ctx context.Context, name string) (api.Question, error) {
	q, err := s.olderQuestion(ctx, name)
	return report.QuestionOf(q), err
}

// olderQuestion is openQuestion with the words of the older call.
func (s *Service) olderQuestion(ctx context.Context, name string) (engine.Asked, error) {
	q, err := s.openQuestion(ctx, name)
	if p, is := errors.AsType[*api.Problem](err); is && p.Code == "question_not_found" {
		return q, problem(p.Status, p.Code, "Question not found", "no such question is open: "+report.Clip(name), p.Suggestions...)
	}
	if err != nil {
		err = s.about(ctx, TaskOfQuestion(name), err)
	}
	return q, err
}

// OlderChoices returns the suggestions of a question in the older call; a question for a decision without choices
// gets yes and no.
func OlderChoices(q api.QuestionOpened) []api.OlderChoice {
	out := api.Each(q.Choices, func(c string) api.OlderChoice { return api.OlderChoice{Answer: c} })
	if decides := q.Kind == "approval" || q.Kind == "damage" || q.Kind == "limit"; len(out) == 0 && decides {
		out = append(out, api.OlderChoice{Answer: "yes"}, api.OlderChoice{Answer: "no"})
	}
	return out
}

// OlderAnswer answers a question with a text, which may be a suggestion's text or number.
func (s *Service) OlderAnswer(ctx context.Context, c Call, name, text string) (api.Answered, error) {
	if strings.TrimSpace(text) == "" {
		return api.Answered{}, problem(http.StatusBadRequest, "empty_answer", "Bad Request", "the answer is empty")
	}
	r := engine.Reply{ID: c.Key, Text: text, By: "api", Request: ordered(ctx, engine.Request{Interactive: true})}
	q, err := s.olderQuestion(ctx, name)
	if err == nil {
		name = q.ID
		if i := chosen(strings.TrimSpace(text), OlderChoices(q.QuestionOpened)); i > 0 {
			if r.Choice, r.Text = i, ""; len(q.Choices) == 0 { // yes or no
				yes := i == 1
				r.Choice, r.Approve = 0, &yes
			}
		}
	}
	// A question that is not open may have been answered: Reply then returns that answer.
	done, failed := s.engine.Reply(keep(ctx), name, r)
	if failed != nil {
		if err != nil && s.Problem(ctx, failed, "").Status != http.StatusConflict {
			return api.Answered{}, err
		}
		return api.Answered{}, failed
	}
	done.Question = name
	return done, nil
}

// chosen returns the number of the suggestion that an answer names by text or number; 0 = the answer is a text of its
// own. The number must be the whole answer: "2 files" names no suggestion.
func chosen(text string, choices []api.OlderChoice) int {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i, c := range choices {
			if same(strings.TrimSpace(c.Answer), text) {
				return i + 1
			}
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) && strconv.Itoa(n) == text {
		return n
	}
	return 0
}
