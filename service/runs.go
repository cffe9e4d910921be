package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Follow is a run that a call started, for a client that wants its events. Answers that are kept for repeats hold it.
type Follow struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	From string `json:"from,omitempty"` // the id of the event before the first one; "" = the start
}

func followOf(task, run string, from events.Cursor) *Follow {
	f := &Follow{Task: task, Run: run}
	if !from.IsStart() {
		f.From = from.String()
	}
	return f
}

// Start makes a task, and starts its run if the document has a message. Without a message there is no run to follow.
func (s *Service) Start(ctx context.Context, c Call, n api.NewTask) (api.Started, *Follow, error) {
	sent, err := s.written(ctx, c, "", n.Message)
	if err != nil {
		return api.Started{}, nil, err
	}
	r, err := newTask(n, c)
	r, err = ordered(ctx, r), cmp.Or(err, mayLoosen(ctx, n.Settings, false))
	if err != nil {
		return api.Started{}, nil, err
	}
	if r.Text == "" && len(r.Images) == 0 {
		ref, err := s.engine.Create(keep(ctx), r)
		if err != nil {
			return api.Started{}, nil, err
		}
		doc, err := s.started(ctx, ref, nil)
		return doc, nil, err
	}
	t, err := s.engine.Submit(keep(ctx), r)
	if err != nil {
		return api.Started{}, nil, err
	}
	sent()
	run := report.RunOf(t.RunInfo)
	doc, err := s.started(ctx, t.Ref, &run)
	return doc, followOf(t.Ref.ID, t.ID, t.From), err
}

// started returns the document of a task that was just made.
func (s *Service) started(ctx context.Context, ref store.Ref, run *api.Run) (out api.Started, err error) {
	out = api.Started{Task: ref.ID, Run: run}
	if run != nil {
		out.RunID = run.ID
	}
	out.Summary, err = store.FromView(keep(ctx), s.store, ref, summaryOf)
	return out, err
}

// Continue starts a run of a task, or continues the run that waits.
func (s *Service) Continue(ctx context.Context, c Call, id string, n api.NewRun) (api.Run, *Follow, error) {
	sent, err := s.written(ctx, c, id, n.Message)
	if err != nil {
		return api.Run{}, nil, err
	}
	r, err := newRun(id, n)
	r, err = ordered(ctx, r), cmp.Or(err, mayLoosen(ctx, n.Settings, n.TrustSettings))
	if err == nil {
		err = s.mayRestart(ctx, c, id)
	}
	if err != nil {
		return api.Run{}, nil, err
	}
	t, err := s.submit(ctx, c, id, r)
	if err == nil {
		sent()
	}
	return report.RunOf(t.RunInfo), followOf(t.Ref.ID, t.ID, t.From), err
}

// ResumePlan shows how a run of a task would begin, and what the caller must decide first. The members of n are the
// decisions that the caller has made so far.
func (s *Service) ResumePlan(ctx context.Context, id string, n api.NewRun) (api.ResumePlan, error) {
	r, err := newRun(id, n)
	if err = cmp.Or(err, mayName(ctx, n.Workspace)); err != nil {
		return api.ResumePlan{}, err
	}
	ref, out, asks, err := s.engine.PlanResume(ctx, ordered(ctx, r))
	if err != nil {
		return api.ResumePlan{}, err
	}
	ref, sum, err := s.load(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return api.ResumePlan{}, err
	}
	out.Task, out.Title, out.Tool = ref.ID, sum.Title, sum.Tool
	out.Asks = api.Each(asks, func(ask error) *api.Problem { return s.Problem(ctx, ask, ref.ID) })
	runs, err := s.engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err == nil && len(runs) > 0 && !over(runs[0]) {
		out.Run = new(report.RunOf(runs[0]))
	}
	return out, err
}

// submit starts a run. The run's id is derived from the call's key, so that a repeated call starts no second run. A run that
// waits keeps its own id; there the message gets the call's key, so that it arrives once.
func (s *Service) submit(ctx context.Context, c Call, id string, r engine.Request) (engine.Ticket, error) {
	if c.Key == "" {
		return s.engine.Submit(keep(ctx), r)
	}
	ref, err := s.store.FindLatest(ctx, id)
	if err != nil {
		return engine.Ticket{}, err
	}
	runs, err := s.engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return engine.Ticket{}, err
	}
	name := c.runFor(ref.ID)
	started := slices.ContainsFunc(runs, func(i engine.RunInfo) bool { return i.ID == name })
	waits := len(runs) > 0 && runs[0].State == "waiting"
	switch words := r.Text != "" || len(r.Images) > 0; {
	case !started && words && (waits || c.Again):
		from, _, err := events.Newest(ctx, s.store, ref)
		if err != nil {
			return engine.Ticket{}, err
		}
		sent, err := s.engine.Send(keep(ctx), ref.Source+":"+ref.ID,
			engine.Message{ID: c.Key, Text: r.Text, Images: r.Images, By: c.Door, Request: r})
		if err != nil {
			return engine.Ticket{}, err
		}
		info, err := s.engine.RunByID(ctx, sent.Run)
		return engine.Ticket{RunInfo: info, From: from}, err
	case started || !waits:
		r.RunID = name
	}
	return s.engine.Submit(keep(ctx), r)
}

// Restart decides which tasks requests may restart. A restart begins another run of a task; input or an answer for a live
// run is no restart, and neither is the first run of a new task. New fills in the defaults of the zero value.
type Restart struct {
	Off         bool          // requests restart no task
	OwnOnly     bool          // only tasks that were made over the API
	MaxAttempts int           // consecutive restarts of a task without progress; 0 = 3, negative = no bound
	LoadTimeout time.Duration // to find and load a task; 0 = 10 s
	Workspace   string        // of new tasks; "" = the current folder of the process
}

// mayRestart refuses a request that would begin another run of its task against the settings.
func (s *Service) mayRestart(ctx context.Context, c Call, id string) error {
	o := s.opt.Restart
	if !o.Off && !o.OwnOnly && o.MaxAttempts < 0 || c.Again && s.taken(ctx, c, id) {
		return nil
	}
	ref, err := s.store.FindLatest(ctx, id)
	if err != nil {
		return err
	}
	runs, err := s.engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return err
	}
	if len(runs) == 0 && ref.Own || len(runs) > 0 && !over(runs[0]) {
		return nil
	}
	var sum api.Summary
	if o.OwnOnly {
		if _, sum, err = s.load(ctx, ref.Source+":"+ref.ID); err != nil {
			return err
		}
	}
	return o.refuses(ref, sum, runs, c.runFor(ref.ID))
}

// refuses returns the problem of a restart that the settings forbid; nil if they allow it. runs are newest first, and
// run is the one to begin: if an earlier attempt of the request began that run, nothing is refused.
func (r Restart) refuses(ref store.Ref, sum api.Summary, runs []engine.RunInfo, run string) error {
	if run != "" && slices.ContainsFunc(runs, func(i engine.RunInfo) bool { return i.ID == run }) {
		return nil
	}
	if r.Off {
		return restartsOff(ref.ID)
	}
	if made := sum.Origin == "api" || sum.Origin == "web"; r.OwnOnly && !(ref.Own && made) {
		return problem(http.StatusForbidden, "restart_denied", "That task was not made here",
			"the setting restart.cross_context allows restarts only of tasks that were made over the API", "roost resume "+api.ShellWord(ref.ID),
			"roost config set restart.cross_context true").About(ref.ID)
	}
	in := 0
	for i, one := range runs {
		if i == len(runs)-1 || one.OwnTurns > 0 || one.State != "failed" && one.State != "interrupted" {
			break // the first run is not a restart
		}
		in++
	}
	if most := r.MaxAttempts; most < 0 || in < most {
		return nil
	}
	return problem(http.StatusConflict, "too_many_restarts", "The task was restarted too often",
		fmt.Sprintf("its last %d restarts ended before the model replied; the setting restart.max_attempts allows %d", in, r.MaxAttempts),
		"roost show "+api.ShellWord(ref.ID), "roost resume "+api.ShellWord(ref.ID)+"  # is not bounded",
		"roost config set restart.max_attempts "+strconv.Itoa(r.MaxAttempts+3)).About(ref.ID)
}

func restartsOff(id string) *api.Problem {
	return problem(http.StatusForbidden, "restart_disabled", "Tasks are not restarted here",
		"the setting restart.enabled is false", "roost resume "+api.ShellWord(id), "roost config set restart.enabled true").About(id)
}

// restarts finds and reads the task to continue, and refuses a task that may not continue. It changes nothing.
func (s *Service) restarts(caller context.Context, c Call, given string, r *engine.Request) error {
	o := s.opt.Restart
	if o.Off {
		return restartsOff(given)
	}
	ctx, stop := context.WithTimeout(caller, o.LoadTimeout)
	defer stop()
	ref, sum, err := s.load(ctx, given)
	if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
		return problem(http.StatusGatewayTimeout, "load_timeout", "The task took too long to load",
			"finding and reading the task took longer than "+o.LoadTimeout.String(), "ask again", "roost config set restart.load_timeout 60s").Later("").About(given)
	}
	if err != nil {
		return s.about(caller, given, err)
	}
	if len(sum.Damaged) > 0 {
		d := sum.Damaged[0]
		return problem(http.StatusUnprocessableEntity, "history_corrupt", "Task data is damaged", d.File+": "+d.Problem,
			"roost doctor "+api.ShellWord(ref.ID), "roost doctor --repair "+api.ShellWord(ref.ID), "roost resume "+api.ShellWord(ref.ID)+"  # continues with what is whole").About(ref.ID)
	}
	r.Task, r.RunID = ref.Source+":"+ref.ID, c.runFor(ref.ID)
	runs, err := s.engine.RunsOf(ctx, r.Task)
	if err != nil {
		return s.about(caller, ref.ID, err)
	}
	return o.refuses(ref, sum, runs, r.RunID)
}

// load finds a task and reads it.
func (s *Service) load(ctx context.Context, given string) (store.Ref, api.Summary, error) {
	ref, err := s.store.FindLatest(ctx, given)
	if err != nil {
		return ref, api.Summary{}, err
	}
	sum, err := store.FromView(ctx, s.store, ref, func(v *store.View) (api.Summary, error) { return v.Summary, v.Unread() })
	return ref, sum, errors.Join(err, ctx.Err())
}

func summaryOf(v *store.View) (api.Summary, error) { return v.Summary, nil }

// RunsOf returns the runs of a task, newest first.
func (s *Service) RunsOf(ctx context.Context, id string) ([]api.Run, error) {
	all, err := s.engine.RunsOf(ctx, id)
	return api.Each(all, report.RunOf), err
}

// RunFilter narrows a list of runs.
type RunFilter = engine.RunFilter

// Runs returns a page of the runs of all tasks: those that work or wait first, then newest first.
func (s *Service) Runs(ctx context.Context, f RunFilter) (api.Page[api.Run], error) {
	found, next, err := s.engine.AllRuns(ctx, f)
	return api.PageOf(api.Each(found, report.RunOf), next), err
}

// Run returns a run. silent names the process that works on the run and does not answer, "" = none; it is part of the
// document only if this process does not work on the run.
func (s *Service) Run(ctx context.Context, id, silent string) (api.Run, error) {
	info, err := s.engine.RunByID(ctx, id)
	doc := report.RunOf(info)
	if moving(info) && !info.Here {
		doc.Silent = silent
	}
	return doc, err
}

// moving reports whether a run may continue without the user.
func moving(r engine.RunInfo) bool { return slices.Contains([]string{"queued", "running"}, r.State) }

// over reports whether a run has ended.
func over(r engine.RunInfo) bool { return !moving(r) && r.State != "waiting" }

// settledPoll is how often Settled reads a run whose task has no new event: a run in a queue causes none, and neither does a
// process that died.
const settledPoll = 500 * time.Millisecond

// Settled waits until a run has ended or waits for the user, until patience is over, or until stop is closed. It
// reads the run again at each event of the task.
func (s *Service) Settled(ctx context.Context, id string, patience time.Duration, stop <-chan struct{}) (api.Run, error) {
	info, err := s.engine.RunByID(ctx, id)
	if err != nil || !moving(info) {
		return report.RunOf(info), err
	}
	topic, leave, err := s.pipe.Task(info.Ref)
	if err != nil {
		return report.RunOf(info), nil //nolint:nilerr // the pipe is closing: the state that is known is the answer
	}
	defer leave()
	late := time.After(patience)
	tick := time.NewTicker(settledPoll)
	defer tick.Stop()
	for {
		change := topic.Changed()
		if info, err = s.engine.RunByID(ctx, id); err != nil || !moving(info) {
			return report.RunOf(info), err
		}
		select {
		case <-change:
			continue
		case <-tick.C:
			continue
		case <-late:
		case <-stop:
		case <-ctx.Done():
		}
		return report.RunOf(info), ctx.Err()
	}
}

// Cancel stops the run of a task that works or waits in the queue. The task keeps everything up to then.
func (s *Service) Cancel(ctx context.Context, id string) (api.Run, error) {
	info, err := s.engine.CancelTask(ctx, id, "")
	if errors.Is(err, engine.ErrNoRun) {
		return api.Run{}, problem(http.StatusConflict, "run_not_active", "Nothing works on the task",
			"the task neither runs nor waits in the queue", "GET /v1/tasks/"+url.PathEscape(id)+"/runs")
	}
	return report.RunOf(info), err
}

// CancelRun stops a run. The task keeps everything up to then.
func (s *Service) CancelRun(ctx context.Context, c Call, id string) (api.Run, error) {
	info, err := s.engine.RunByID(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	if c.Again && info.State == "cancelled" { // the first attempt cancelled the run
		return report.RunOf(info), nil
	}
	if over(info) {
		return api.Run{}, problem(http.StatusConflict, "run_not_active", "The run has ended", "its state is "+info.State,
			"GET /v1/runs/"+url.PathEscape(info.ID)).About(info.Ref.ID)
	}
	done, err := s.engine.CancelTask(ctx, info.Ref.Source+":"+info.Ref.ID, info.ID)
	return report.RunOf(done), err
}

// RunTask returns the task of a run, and the run.
func (s *Service) RunTask(ctx context.Context, run string) (Task, api.Run, error) {
	info, err := s.engine.RunByID(ctx, run)
	return Task{s, info.Ref}, report.RunOf(info), err
}

// RunOver reports whether a run has ended, also one that was killed. A run that waits for the user has not ended.
func (s *Service) RunOver(ctx context.Context, run string) bool {
	info, err := s.engine.RunByID(ctx, run)
	return err == nil && over(info)
}

// EndsRun reports whether an event ends a run.
func EndsRun(run string, i events.Item) bool { return i.Type == "run.ended" && i.Run == run }

// SawEnd reports whether the event of a cursor is the end of a run, or follows it.
func (t Task) SawEnd(ctx context.Context, run api.Run, at events.Cursor) (bool, error) {
	if run.EndedAt == nil {
		return false, nil
	}
	more := false
	err := events.ReadJournal(ctx, t.of.store, t.ref, at, func(i events.Item) error {
		more = more || EndsRun(run.ID, i)
		return nil
	})
	return !more, err
}

// Load counts the runs of this process.
func (s *Service) Load() (running, waiting, queued int) {
	if s.engine == nil {
		return 0, 0, 0
	}
	return s.engine.Load()
}

// Notifications counts the calls of the user's command or webhook; nil if the settings have neither.
func (s *Service) Notifications() *api.Notifications {
	if s.engine == nil {
		return nil
	}
	return s.engine.Notifications()
}

// Drain stops the service from starting runs. Runs that work continue, and queued runs stay queued.
func (s *Service) Drain() {
	if s.engine != nil {
		s.engine.Refuse()
	}
}

// Undrain lets the service start runs again, the queued ones first.
func (s *Service) Undrain() { s.engine.Admit() }

// Draining reports whether the service starts no more runs.
func (s *Service) Draining() bool { return s.engine != nil && s.engine.Draining() }

// deliveries are the values of a message's member delivery.
var deliveries = []string{"auto", "queue", "interrupt"}

// Send sends a message to a task. The message answers the open question, waits until the run takes it, or starts a run.
func (s *Service) Send(ctx context.Context, c Call, id string, m api.Message) (api.Sent, error) {
	words := api.Words{Text: m.Text, Images: m.Images, Draft: m.Draft}
	done, err := s.written(ctx, c, id, &words)
	if err != nil {
		return api.Sent{}, err
	}
	var w wrongs
	checkWords(words.Text, words.Images, "", &w)
	if m.Delivery != "" && !slices.Contains(deliveries, m.Delivery) {
		w.add("/delivery", "want one of auto, queue, interrupt")
	}
	if err = w.err(); err == nil {
		err = s.mayRestart(ctx, c, id)
	}
	if err != nil {
		return api.Sent{}, err
	}
	sent, err := s.engine.Send(keep(ctx), id, engine.Message{
		ID:       c.Key,
		Text:     words.Text,
		Images:   words.Images,
		Delivery: m.Delivery,
		By:       c.Door,
		Request:  ordered(ctx, engine.Request{Interactive: true}),
	})
	if err == nil {
		done()
	}
	return sent, err
}

// Queue returns the input that waits until a run of the task takes it.
func (s *Service) Queue(ctx context.Context, id string) ([]api.Queued, error) {
	all, err := s.engine.Inputs(ctx, id)
	return api.Each(all, queued), err
}

// queued returns the document of input that waits.
func queued(q task.InputQueued) api.Queued {
	return api.Queued{ID: q.Input, Text: q.Text, Images: append([]string{}, q.Images...)}
}

// EditInput replaces the text of input that waits.
func (s *Service) EditInput(ctx context.Context, id, input string, p api.InputPatch) (api.Queued, error) {
	var w wrongs
	checkWords(p.Text, nil, "", &w)
	err := w.err()
	if err == nil {
		err = s.engine.EditInput(ctx, id, input, &p.Text)
	}
	if err != nil {
		return api.Queued{}, err
	}
	all, err := s.engine.Inputs(ctx, id)
	if err != nil {
		return api.Queued{}, err
	}
	if i := slices.IndexFunc(all, func(q task.InputQueued) bool { return q.Input == input }); i >= 0 {
		return queued(all[i]), nil
	}
	return api.Queued{ID: input, Text: p.Text, Images: []string{}}, nil // the run has taken the input since
}

// DropInput removes input that waits.
func (s *Service) DropInput(ctx context.Context, id, input string) error {
	return s.engine.EditInput(ctx, id, input, nil)
}

// ValidName reports whether a text can name a task: an id, or a source and an id.
func ValidName(text string) bool {
	source, id, named := strings.Cut(text, ":")
	if !named {
		source, id = "", text
	}
	return api.ValidTaskID(id) && (!named || api.ValidTaskID(source))
}

// Questions returns the open questions and approvals of a task, or of all tasks when id is "", the oldest first.
func (s *Service) Questions(ctx context.Context, id string) ([]api.Question, error) {
	if id != "" && !ValidName(id) {
		return nil, api.Invalid(api.Wrong{Parameter: "task", Detail: "want a task's id"})
	}
	all, err := s.engine.Questions(ctx, id)
	return api.Each(all, report.QuestionOf), err
}

// Question returns an open question.
func (s *Service) Question(ctx context.Context, id string) (api.Question, error) {
	q, err := s.openQuestion(ctx, id)
	return report.QuestionOf(q), err
}

// TaskOfQuestion returns the task that a question's id names; "" if the id names none.
func TaskOfQuestion(id string) string {
	if dot := strings.LastIndexByte(id, '.'); dot > 0 && ValidName(id[:dot]) {
		return id[:dot]
	}
	return ""
}

// openQuestion finds an open question by its whole id, or by a name of its task and its own id.
func (s *Service) openQuestion(ctx context.Context, id string) (engine.Asked, error) {
	none := problem(http.StatusNotFound, "question_not_found", "No such question is open",
		"no open question has the id "+report.Clip(id), "GET /v1/questions")
	of := TaskOfQuestion(id)
	if of == "" {
		return engine.Asked{}, none
	}
	all, err := s.engine.Questions(ctx, of)
	if err != nil {
		return engine.Asked{}, err
	}
	if i := slices.IndexFunc(all, func(q engine.Asked) bool { return q.ID == id || q.Question == id[len(of)+1:] }); i >= 0 {
		return all[i], nil
	}
	return engine.Asked{}, none.About(of)
}

// Answer answers a question. The first answer wins: a later one gets a problem that names the first.
func (s *Service) Answer(ctx context.Context, c Call, id string, n api.Answer) (api.Answered, error) {
	q, err := s.openQuestion(ctx, id)
	open := err == nil
	var p *api.Problem
	if err != nil && !(errors.As(err, &p) && p.Code == "question_not_found") {
		return api.Answered{}, err
	}
	r, err := replyOf(n, q, open)
	if err != nil {
		return api.Answered{}, err
	}
	r.ID, r.By, r.Request = c.Key, c.Door, ordered(ctx, engine.Request{Interactive: true})
	done, err := s.engine.Reply(keep(ctx), id, r)
	if late, is := errors.AsType[*engine.AnsweredError](err); is {
		return api.Answered{}, report.AnsweredProblem(late)
	}
	return done, err
}

// replyOf reads an answer. If its question is open, it refuses an answer that does not fit the question.
func replyOf(n api.Answer, q engine.Asked, open bool) (r engine.Reply, err error) {
	var w wrongs
	r = engine.Reply{Text: n.Text, Approve: n.Approve, Always: n.Always}
	if n.Seen != "" {
		at, ok := events.ParseCursor(n.Seen)
		if !ok || at.IsWhole() {
			w.add("/seen", "want the id of an event, such as 1.7-0")
		}
		r.Seen = &at
	}
	approval := q.Kind == "approval"
	switch {
	case n.Choice == nil && n.Approve == nil && strings.TrimSpace(n.Text) == "":
		w.add("", "the answer is empty: want choice, text or approve")
	case n.Choice != nil && (n.Approve != nil || n.Text != ""):
		w.add("/choice", "choice excludes text and approve: give one of them")
	case open && approval && n.Approve == nil:
		w.add("/approve", "the question asks for an approval: want true or false; a text with it is for the model")
	case open && n.Always && (n.Approve == nil || !*n.Approve):
		w.add("/always", "always also allows later calls: it needs approve true")
	}
	if n.Choice != nil {
		r.Choice = choiceOf(*n.Choice, q, open, &w)
	}
	return r, w.err()
}

// choiceOf reads a choice, given as its number from 1 or as its text.
func choiceOf(raw json.RawMessage, q engine.Asked, open bool, w *wrongs) int {
	var n int
	var words string
	switch {
	case json.Unmarshal(raw, &n) == nil:
		if n < 1 || open && n > len(q.Choices) {
			w.add("/choice", "%s", choicesText(q))
		}
		return n
	case json.Unmarshal(raw, &words) != nil:
		w.add("/choice", "want a choice's number from 1, or its text")
		return 0
	}
	if i := slices.Index(q.Choices, words); i >= 0 {
		return i + 1
	}
	if open {
		w.add("/choice", "%s", choicesText(q))
	}
	return 1 // the question is closed, so the choice does not matter
}

func choicesText(q engine.Asked) string {
	if len(q.Choices) == 0 {
		return "the question has no choices: answer with text"
	}
	return fmt.Sprintf("there is no such choice; there are %d: %s", len(q.Choices), strings.Join(q.Choices, " | "))
}
