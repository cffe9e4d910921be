// Package legacy speaks the older restart call, for programs that were written for it: one POST starts a task or
// continues one, and its answer is a stream of flat JSON; questions and answers have shapes of their own. Everything
// that the call does is done by the same service as all other routes: this package translates.
//
// The stream shows only durable events. Its end, whatever ends it, touches no run.
package legacy

import (
	"bytes"
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

// Options are a stream of the call.
type Options struct {
	Service *service.Service
	Call    api.OlderRun   // the request
	Follow  service.Follow // the run that it started
	Stop    <-chan struct{}
	Now     func() time.Time

	Heartbeat    time.Duration
	WriteTimeout time.Duration // for one write to the client
}

var errEnded = errors.New("the run has ended")

// Open finds what a stream needs. Serve then answers with the stream until the run has ended, the client goes or Stop is
// closed; none of these touches the run.
func Open(ctx context.Context, o Options) (serve func(context.Context, http.ResponseWriter) error, err error) {
	t, err := o.Service.Find(ctx, o.Follow.Task)
	if err != nil {
		return nil, err
	}
	begun, err := o.Service.OlderStart(ctx, o.Follow)
	message := "Task started"
	if err == nil && o.Call.Restart {
		message, err = continues(ctx, o.Service, o.Call.Task)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w http.ResponseWriter) error {
		st := &stream{
			Options: o, w: w, ctl: http.NewResponseController(w), task: t, when: begun.At,
			shown: map[uint64]bool{}, asked: map[string]bool{}, children: map[string]bool{},
		}
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store, no-transform")
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		st.tell("", api.OlderEvent{Type: "start", Message: message, Text: o.Call.Text})
		if begun.Unknown != "" {
			st.tell("", api.OlderEvent{Type: "progress", Message: fmt.Sprintf("The task's profile %q is not known here; %s with "+
				"the model %s is used in its place", begun.Unknown, begun.Used.Provider, begun.Used.Model)})
		}
		return st.follow(ctx)
	}, nil
}

// continues is the first line for a task that is continued: it names the program that began it.
func continues(ctx context.Context, s *service.Service, id string) (string, error) {
	origin, err := s.Origin(ctx, id)
	if err != nil || origin == "" {
		return "Continuing task", err
	}
	return "Continuing task from " + origin + " context", nil
}

// stream is one client of the call.
type stream struct {
	Options
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  bytes.Buffer
	task service.Task
	when int64 // of the event that is shown

	usage    *service.Spent  // nil until the first request
	shown    map[uint64]bool // messages
	asked    map[string]bool // questions
	children map[string]bool // subtasks that are at work
}

// count adds what a request spent to what the task had spent before it, and returns the sum.
func (st *stream) count(ctx context.Context, e events.Event) (sum api.Usage, err error) {
	if st.usage == nil {
		if st.usage, err = st.task.SpentBefore(ctx, e.Seq); err != nil {
			return sum, err
		}
	}
	return st.usage.Add(e.Data)
}

// childPoll is how often the stream checks whether a subtask has an open question.
const childPoll = 2 * time.Second

// follow writes until the run has ended, or the client or the server goes.
func (st *stream) follow(ctx context.Context) error {
	if err := st.flush(); err != nil {
		return err
	}
	topic, release, err := st.task.Topic()
	if err != nil {
		return err
	}
	defer release()
	sub := topic.Subscribe(st.Follow.From)
	beat, look := time.NewTicker(st.Heartbeat), time.NewTicker(childPoll)
	defer beat.Stop()
	defer look.Stop()
	for {
		err := sub.Read(ctx, func(e events.Item) error {
			if !e.Live && st.show(ctx, e.Event) {
				return errEnded
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnded):
			return st.flush()
		case errors.Is(err, events.ErrClosed):
			return st.stopping()
		case err != nil:
			return st.cut(err)
		}
		if err := st.flush(); err != nil {
			return err
		}
		select {
		case <-sub.Changed():
		case <-look.C:
			st.askChildren(ctx)
		case <-beat.C:
			st.buf.WriteString(": keep-alive\n\n")
		case <-st.Stop:
			return st.stopping()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := st.flush(); err != nil {
			return err
		}
	}
}

// stopping ends the stream of a server that stops.
func (st *stream) stopping() error {
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "The server is stopping; the task goes on, or can be gone on " +
		"with", Restart: st.command()})
	return st.flush()
}

// cut ends a stream whose journal can be read no further.
func (st *stream) cut(err error) error {
	message := "The task cannot be followed any more"
	if errors.Is(err, events.ErrGone) {
		message = "The task was deleted"
	}
	st.tell("", api.OlderEvent{Type: "error", Message: message, Error: message})
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "Stream ending"})
	return errors.Join(err, st.flush())
}

// eventData is what of an event is shown.
type eventData struct {
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

// show sends an event; over is true behind the run's end.
func (st *stream) show(ctx context.Context, e events.Event) (over bool) {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		return false
	}
	st.when = e.At
	switch e.Type {
	case "run.queued":
		if d.Run == st.Follow.Run {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Waiting until another task makes room"})
		}
	case "message.added", "message.changed":
		st.row(e.ID, d)
	case "usage.changed":
		sum, err := st.count(ctx, e)
		if err != nil {
			return false // no sum is better than a wrong one; the next request counts again
		}
		u := &api.OlderUsage{In: sum.TokensIn, Out: sum.TokensOut, CacheWrites: sum.CacheWrites, CacheReads: sum.CacheReads}
		if sum.Cost != nil {
			cost := float64(*sum.Cost) / 1e6
			u.Cost = &cost
		}
		st.tell(e.ID, api.OlderEvent{Type: "token_usage", Usage: u})
	case "question.opened":
		var q api.QuestionOpened
		if json.Unmarshal(e.Data, &q) == nil {
			st.ask(e.ID, st.task.ID(), q)
		}
	case "question.closed":
		if d.Reason == "" {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Continuing after the answer by " + d.By})
		}
	case "run.waiting":
		if d.Run == st.Follow.Run && d.Child == "" {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Saved until there is an answer", Restart: st.command()})
		}
	case "subtask.started":
		st.children[d.Child] = true
	case "subtask.ended":
		delete(st.children, d.Child)
	case "run.ended":
		if d.Run != st.Follow.Run {
			return false
		}
		st.end(e.ID, d)
		return true
	}
	return false
}

// row sends a row of the user's history once it is complete.
func (st *stream) row(id string, d eventData) {
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
	switch kind := row.Ask + row.Say; kind {
	case "text", "completion_result", "error", "condense_context":
	case "user_feedback", "user_feedback_diff", "api_req_started", "followup", "resume_task", "resume_completed_task":
		return
	case "command":
		text = "$ " + text
	case "tool", "use_mcp_server":
		text = toolText(text)
	default: // thoughts, the output of commands, and what only some want
		if !st.Call.Verbose {
			return
		}
	}
	if row.Say == "text" && d.Message == 1 {
		return // the person's own words
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
func (st *stream) ask(id, asker string, q api.QuestionOpened) {
	name := asker + "." + q.Question
	if st.asked[name] {
		return
	}
	st.asked[name] = true
	choices := service.OlderChoices(q)
	st.tell(id, api.OlderEvent{Type: "question_ask", Question: name, Message: q.Text, Kind: q.Kind, Suggestions: &choices})
}

// askChildren sends the questions of subtasks, which have journals of their own.
func (st *stream) askChildren(ctx context.Context) {
	for child := range st.children {
		list, err := st.Service.Questions(ctx, child)
		if err != nil {
			continue // the next look finds it
		}
		for _, q := range list {
			if at, err := time.Parse(time.RFC3339, q.At); err == nil {
				st.when = at.UnixMilli()
			}
			st.ask("", q.Task, q.QuestionOpened)
		}
	}
}

// end sends how the run ended.
func (st *stream) end(id string, d eventData) {
	e := api.OlderEvent{Type: "completion", Message: d.Reason, Outcome: d.Outcome, Restart: st.command()}
	if d.Outcome != "completed" {
		e.Type, e.Error = "error", d.Outcome
		if d.Code != "" {
			e.Error = d.Code
		}
		if e.Message == "" {
			e.Message = "The run ended: " + d.Outcome
		}
	}
	st.tell(id, e)
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "Stream ending"})
}

// command is the command that continues the task.
func (st *stream) command() string { return resumeCommand(st.task.ID()) }

func resumeCommand(id string) string { return "roost run --stream --task " + id }

// tell adds a line to the answer.
func (st *stream) tell(id string, e api.OlderEvent) {
	if e.Job, e.Task = st.Follow.Run, st.task.ID(); st.when == 0 {
		st.when = st.Now().UnixMilli()
	}
	e.Timestamp = api.Stamp(st.when)
	if id != "" {
		st.buf.WriteString("id: " + id + "\n")
	}
	st.buf.WriteString("data: ")
	enc := json.NewEncoder(&st.buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // only strings and numbers; it ends the line
	st.buf.WriteString("\n")
}

// flush sends what was added. A client that does not take it in time is cut off.
func (st *stream) flush() error {
	if st.buf.Len() == 0 {
		return nil
	}
	_ = st.ctl.SetWriteDeadline(time.Now().Add(st.WriteTimeout)) // a recorder in tests has none
	_, err := st.w.Write(st.buf.Bytes())
	st.buf.Reset()
	if err == nil {
		err = st.ctl.Flush()
	}
	return err
}

// The questions of the call are those of every other route; a job is a run.

// Questions are the open questions of a job and of its subtasks; none of those in the state answered, which the task has.
func Questions(ctx context.Context, s *service.Service, job, state string, now time.Time) (api.OlderQuestions, error) {
	out := api.OlderQuestions{Questions: []api.OlderQuestion{}, Timestamp: api.Stamp(now.UnixMilli())}
	if job == "" {
		return out, api.NewProblem(http.StatusBadRequest, "bad_query", "Bad Request", "jobId is missing",
			"GET /api/questions?jobId=JOB")
	}
	open, err := s.QuestionsOfRun(ctx, job)
	if err != nil {
		return out, err
	}
	for _, q := range open {
		if state != "answered" {
			out.Questions = append(out.Questions, questionOf(q, job))
		}
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

// Question is an open question, or the questions of a job: clients of the call ask for both at one address.
func Question(ctx context.Context, s *service.Service, name string, now time.Time) (any, error) {
	if !strings.Contains(name, ".") {
		return Questions(ctx, s, name, "", now)
	}
	q, err := s.OlderQuestion(ctx, name)
	if err != nil {
		return nil, err
	}
	return questionOf(q, ""), nil
}

// The paths of the call. Both do the same.
const (
	ChatPath    = "/chat/stream"
	ExecutePath = "/execute/stream"
)

// IsPath reports whether a path is of the call.
func IsPath(path string) bool {
	return path == ChatPath || path == ExecutePath || strings.HasPrefix(path, "/api/")
}

// Fail answers with a problem in the shape of the call.
func Fail(w http.ResponseWriter, r *http.Request, p *api.Problem, now time.Time) {
	out := api.OlderFailure{Error: p.Title, Message: p.Detail, Code: p.Code, Suggestions: p.Suggestions,
		Timestamp: api.Stamp(now.UnixMilli())}
	if p.Code == "task_not_found" {
		out.Error = "Task not found"
	}
	if p.Task != "" {
		out.Task = &p.Task
	}
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if p.After != "" {
		h.Set("Retry-After", p.After)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // it fails when the client has disconnected
	}
}
