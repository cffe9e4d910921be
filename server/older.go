package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/service"
)

// This file is the older restart call. Its stream of flat JSON lines, its questions and its failures have shapes of their
// own; each corresponds to one of the other routes, and a job is a run. Before the stream begins, the server has checked
// the request, found the task, and stored the run.

// The two paths of the call, which do the same.
const (
	chatPath    = "/chat/stream"
	executePath = "/execute/stream"
)

func olderRoutes() []route {
	call := route{
		on: "POST " + chatPath, older: true, media: streamMedia, body: api.OlderRun{}, status: http.StatusOK,
		fails: []int{404, 409, 429, 504}, act: reads((*Server).olderRun),
	}
	other := call
	other.on = "POST " + executePath
	return []route{
		call, other,
		{on: "GET /api/questions", older: true, engine: true, answer: api.OlderQuestions{}, fails: []int{404},
			document: func(s *Server, a *asked) (any, error) {
				return s.olderQuestions(a, a.text["jobId"], a.text["state"])
			}},
		{on: "GET /api/questions/{qid}", older: true, engine: true, media: jsonMedia, fails: []int{404},
			document: (*Server).olderQuestion},
		{on: "POST /api/questions/{qid}/answer", older: true, body: api.OlderAnswer{}, answer: api.OlderAnswered{},
			fails: []int{404, 409}, act: reads((*Server).olderAnswer)},
	}
}

func (s *Server) olderRun(a *asked, b api.OlderRun) (*reply, error) {
	if err := service.CheckOlder(b); err != nil {
		return nil, err
	}
	leave, p := s.enter(a) // too many streams: refuse before the run starts
	if p != nil {
		return nil, p
	}
	leave()
	f, err := s.service.Older(a.Context(), a.call(), b) // if another process owns the task, the request goes there
	if err != nil {
		return nil, err
	}
	return &reply{head: aboutTask(f.Task, f.Run, ""), follow: f}, nil
}

// named returns the task that the body of the older call names; "" for every other request.
func (a *asked) named() string {
	if !a.route.older || a.route.body != any(api.OlderRun{}) {
		return ""
	}
	var b struct {
		Task string `json:"taskId"`
	}
	if json.Unmarshal(a.body, &b) != nil {
		return "" // reads refuses the body
	}
	return b.Task
}

// olderQuestions returns the open questions of a job and of its subtasks. It lists no answered ones: they are in the
// task.
func (s *Server) olderQuestions(a *asked, job, state string) (any, error) {
	out := api.OlderQuestions{Questions: []api.OlderQuestion{}, Timestamp: api.Stamp(s.opt.Now().UnixMilli())}
	if job == "" {
		return out, problem(http.StatusBadRequest, "bad_query", "Bad Request", "jobId is missing", "GET /api/questions?jobId=JOB")
	}
	open, err := s.service.QuestionsOfRun(a.Context(), job)
	if err != nil {
		return out, err
	}
	if state != "answered" {
		out.Questions = api.Each(open, func(q api.Question) api.OlderQuestion { return questionOf(q, job) })
	}
	out.Total = len(out.Questions)
	return out, nil
}

func questionOf(q api.Question, job string) api.OlderQuestion {
	return api.OlderQuestion{
		ID: q.ID, Job: cmp.Or(job, q.Run), Task: q.Task, Question: q.Text, Kind: q.Kind,
		Suggestions: service.OlderChoices(q.QuestionOpened), State: "pending", CreatedAt: q.At,
	}
}

// olderQuestion returns an open question, or the questions of a job: clients of the call use one address for both.
func (s *Server) olderQuestion(a *asked) (any, error) {
	name := a.PathValue("qid")
	if !strings.Contains(name, ".") {
		return s.olderQuestions(a, name, "")
	}
	q, err := s.service.OlderQuestion(a.Context(), name)
	return questionOf(q, ""), err
}

func (s *Server) olderAnswer(a *asked, b api.OlderAnswer) (*reply, error) {
	done, err := s.service.OlderAnswer(a.Context(), a.call(), a.PathValue("qid"), b.Answer)
	return &reply{doc: api.OlderAnswered{
		Success: true, Message: "Answer accepted", Question: done.Question, Task: done.Task, Job: done.Run,
		Timestamp: api.Stamp(s.opt.Now().UnixMilli()),
	}}, err
}

// older answers with the stream of a run that the older call started.
func (s *Server) older(w http.ResponseWriter, a *asked, at service.Follow) *api.Problem {
	st := &olderStream{
		eventStream: eventStream{s: s, w: w, ctl: http.NewResponseController(w), shows: s.shows(a.Context())},
		follow:      at,
		shown:       map[uint64]bool{}, asked: map[string]bool{}, children: map[string]bool{},
	}
	if err := a.read(&st.call); err != nil {
		return s.problemFor(a, err)
	}
	leave, p := s.enter(a)
	if p != nil {
		return p.About(at.Task)
	}
	defer leave()
	if err := st.start(a.Context()); err != nil {
		return s.service.Problem(a.Context(), err, at.Task)
	}
	head(w)
	w.WriteHeader(http.StatusOK)
	if err := st.stream(a.Context()); err != nil && a.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", w.Header().Get(requestID), "error", err.Error())
	}
	return nil
}

// olderStream is one client of the call.
type olderStream struct {
	eventStream
	call   api.OlderRun   // the request
	follow service.Follow // the run that it started
	of     service.Task
	when   int64     // time of the event that is shown
	beaten time.Time // when the last keep-alive was sent

	usage    *service.Spent  // nil until the first request
	shown    map[uint64]bool // messages
	asked    map[string]bool // questions
	children map[string]bool // subtasks that work
}

// start reads the task and the run's start, and adds the first lines of the stream.
func (st *olderStream) start(ctx context.Context) (err error) {
	if st.of, err = st.s.service.Find(ctx, st.follow.Task); err != nil {
		return err
	}
	begun, err := st.s.service.OlderStart(ctx, st.follow)
	if err != nil {
		return err
	}
	message := "Task started"
	if st.call.Restart { // the line names the program that began the task
		message = "Continuing task"
		if origin, err := st.s.service.Origin(ctx, st.call.Task); err != nil {
			return err
		} else if origin != "" {
			message += " from " + origin + " context"
		}
	}
	st.when = begun.At
	st.tell("", api.OlderEvent{Type: "start", Message: message, Text: st.call.Text})
	if begun.Unknown != "" {
		st.tell("", api.OlderEvent{Type: "progress", Message: fmt.Sprintf("The task's profile %q is not known here; %s with "+
			"the model %s is used in its place", begun.Unknown, begun.Used.Provider, begun.Used.Model)})
	}
	return nil
}

// childPoll is how often the stream checks whether a subtask has an open question.
const childPoll = 2 * time.Second

// stream writes until the run has ended, the client disconnects, or the server stops. The end of a stream does not touch
// the run.
func (st *olderStream) stream(ctx context.Context) error {
	topic, release, err := st.of.Topic()
	if err != nil {
		return errors.Join(err, st.flush())
	}
	defer release()
	from, _ := events.ParseCursor(st.follow.From)
	st.subscriber, st.beaten = topic.Subscribe(from), time.Now()
	err = st.loop(ctx, min(childPoll, st.s.opt.Heartbeat), func(e events.Item) error {
		if shown, err := st.shows(e.Task, e.Type); !shown {
			return cmp.Or(err, errors.New("the task is not shared any more"))
		}
		if !e.Live && st.show(ctx, e.Event) {
			return errRunEnded
		}
		return nil
	}, func() error {
		st.askChildren(ctx)
		if now := time.Now(); now.Sub(st.beaten) >= st.s.opt.Heartbeat {
			st.buf, st.beaten = append(st.buf, ": keep-alive\n\n"...), now
		}
		return nil
	})
	switch {
	case errors.Is(err, errRunEnded):
		return st.flush()
	case errors.Is(err, events.ErrClosed):
		st.tell("", api.OlderEvent{Type: "stream_end", Message: "The server is stopping; the task continues, or can be " +
			"continued", Restart: st.command()})
		return st.flush()
	case ctx.Err() != nil:
		return ctx.Err()
	}
	message := "The task cannot be followed any more"
	if errors.Is(err, events.ErrGone) {
		message = "The task was deleted"
	}
	st.tell("", api.OlderEvent{Type: "error", Message: message, Error: message})
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "Stream ending"})
	return errors.Join(err, st.flush())
}

// count adds what a request spent to what the task had spent before it, and returns the sum.
func (st *olderStream) count(ctx context.Context, e events.Event) (sum api.Usage, err error) {
	if st.usage == nil {
		if st.usage, err = st.of.SpentBefore(ctx, e.Seq); err != nil {
			return sum, err
		}
	}
	return st.usage.Add(e.Data)
}

// olderEventData are the members of an event that the stream shows.
type olderEventData struct {
	Run      string `json:"run"`
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Code     string `json:"code"`
	Child    string `json:"child"`
	History  string `json:"history"`
	Message  uint64 `json:"message"`
	Question string `json:"question"`
	By       string `json:"by"`
	Content  json.RawMessage
}

// show sends an event; over is true for the run's end.
func (st *olderStream) show(ctx context.Context, e events.Event) (over bool) {
	var d olderEventData
	if json.Unmarshal(e.Data, &d) != nil {
		return false
	}
	st.when = e.At
	switch e.Type {
	case "run.queued":
		if d.Run == st.follow.Run {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Waiting until another task makes room"})
		}
	case "message.added", "message.changed":
		st.row(e.ID, d)
	case "usage.changed":
		sum, err := st.count(ctx, e)
		if err != nil {
			return false // a missing sum is better than a wrong one; the next request counts again
		}
		u := &api.OlderUsage{In: sum.TokensIn, Out: sum.TokensOut, CacheWrites: sum.CacheWrites, CacheReads: sum.CacheReads}
		if sum.Cost != nil {
			u.Cost = new(float64(*sum.Cost) / 1e6)
		}
		st.tell(e.ID, api.OlderEvent{Type: "token_usage", Usage: u})
	case "question.opened":
		var q api.QuestionOpened
		if json.Unmarshal(e.Data, &q) == nil {
			st.ask(e.ID, st.of.ID(), q)
		}
	case "question.closed":
		if d.Reason == "" {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Continuing after the answer by " + d.By})
		}
	case "run.waiting":
		if d.Run == st.follow.Run && d.Child == "" {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Saved until there is an answer", Restart: st.command()})
		}
	case "subtask.started":
		st.children[d.Child] = true
	case "subtask.ended":
		delete(st.children, d.Child)
	case "run.ended":
		if d.Run != st.follow.Run {
			return false
		}
		st.ended(e.ID, d)
		return true
	}
	return false
}

// row sends a row of the user's history once it is complete.
func (st *olderStream) row(id string, d olderEventData) {
	var row struct {
		Ask     string `json:"ask"`
		Say     string `json:"say"`
		Text    string `json:"text"`
		Partial bool   `json:"partial"`
	}
	if d.History != api.UI || st.shown[d.Message] || json.Unmarshal(d.Content, &row) != nil || row.Partial ||
		strings.TrimSpace(row.Text) == "" {
		return
	}
	text := row.Text
	switch row.Ask + row.Say {
	case "text", "completion_result", "error", "condense_context":
	case "user_feedback", "user_feedback_diff", "api_req_started", "followup", "resume_task", "resume_completed_task":
		return
	case "command":
		text = "$ " + text
	case "tool", "use_mcp_server":
		text = toolText(text)
	default: // reasoning, the output of commands, and other rows that only verbose clients want
		if !st.call.Verbose {
			return
		}
	}
	if row.Say == "text" && d.Message == 1 {
		return // the user's own text
	}
	st.shown[d.Message] = true
	st.tell(id, api.OlderEvent{Type: "progress", Message: text, Say: row.Ask + row.Say})
}

// toolText describes a tool's row.
func toolText(text string) string {
	var t struct{ Tool, ToolName, Path, ServerName string }
	if json.Unmarshal([]byte(text), &t) != nil {
		return text
	}
	return strings.TrimSpace(strings.Join(strings.Fields(t.Tool+" "+t.ServerName+" "+t.ToolName+" "+t.Path), " "))
}

// ask sends a question, once.
func (st *olderStream) ask(id, asker string, q api.QuestionOpened) {
	name := asker + "." + q.Question
	if st.asked[name] {
		return
	}
	st.asked[name] = true
	choices := service.OlderChoices(q)
	st.tell(id, api.OlderEvent{Type: "question_ask", Question: name, Message: q.Text, Kind: q.Kind, Suggestions: &choices})
}

// askChildren sends the questions of subtasks, which have journals of their own.
func (st *olderStream) askChildren(ctx context.Context) {
	for child := range st.children {
		list, err := st.s.service.Questions(ctx, child)
		if err != nil {
			continue // the next check finds the question
		}
		for _, q := range list {
			st.when = cmp.Or(api.Millis(&q.At), st.when)
			st.ask("", q.Task, q.QuestionOpened)
		}
	}
}

// ended sends how the run ended.
func (st *olderStream) ended(id string, d olderEventData) {
	e := api.OlderEvent{Type: "completion", Message: d.Reason, Outcome: d.Outcome, Restart: st.command()}
	if d.Outcome != "completed" {
		e.Type = "error"
		e.Error, e.Message = cmp.Or(d.Code, d.Outcome), cmp.Or(d.Reason, "The run ended: "+d.Outcome)
	}
	st.tell(id, e)
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "Stream ending"})
}

// command returns the command that continues the task.
func (st *olderStream) command() string { return "roost run --stream --task " + st.of.ID() }

// tell adds a line to the answer's stream.
func (st *olderStream) tell(id string, e api.OlderEvent) {
	if e.Job, e.Task = st.follow.Run, st.of.ID(); st.when == 0 {
		st.when = st.s.opt.Now().UnixMilli()
	}
	e.Timestamp = api.Stamp(st.when)
	if id != "" {
		st.buf = append(st.buf, "id: "+id+"\n"...)
	}
	line, _ := api.Encode(e) // texts and numbers; with the end of the line
	st.buf = append(st.buf, "data: "+string(line)+"\n"...)
}

// lament writes a problem in the shape of the older call, and logs its cause if there is one.
func (s *Server) lament(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.Cause != nil && r.Context().Err() == nil {
		s.opt.Log.Warn("failed", "path", r.URL.Path, "request_id", w.Header().Get(requestID), "error", p.Cause.Error())
	}
	if path := r.URL.Path; path == chatPath || path == executePath || strings.HasPrefix(path, "/api/") {
		failOlder(w, r, p, s.opt.Now())
		return
	}
	s.deny(w, r, p)
}

// failOlder answers with a problem in the shape of the call.
func failOlder(w http.ResponseWriter, r *http.Request, p *api.Problem, now time.Time) {
	out := api.OlderFailure{Error: p.Title, Message: p.Detail, Code: p.Code,
		Suggestions: append([]string{}, p.Suggestions...), Timestamp: api.Stamp(now.UnixMilli())}
	if p.Code == "task_not_found" {
		out.Error = "Task not found"
	}
	if p.Task != "" {
		out.Task = &p.Task
	}
	if p.After != "" {
		w.Header().Set("Retry-After", p.After)
	}
	body, _ := api.Encode(out) // texts
	send(w, r, p.Status, jsonMedia, body)
}
