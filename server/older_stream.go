package server

import (
	"bytes"
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

// older streams a run in the older shape: what its task's journal says, a line of flat
// JSON each, with the ids of the events that it is made of. Only what is durable is told.
func (s *Server) older(w http.ResponseWriter, a *asked, at followed) *api.Problem {
	var b api.OlderRun
	if err := a.read(&b); err != nil {
		return s.problemFor(a, err)
	}
	from, ok := events.ParseCursor(at.From)
	if at.From != "" && !ok {
		return s.problemFor(a, errors.New("the run's first event has no place: "+at.From))
	}
	t, err := s.service.Find(a.Context(), at.Task)
	if err != nil {
		return s.problemOf(a.Context(), err, at.Task)
	}
	leave, ok := s.streams.enter(addressOf(a.Request))
	if !ok {
		p := tooManyStreams()
		p.Task = at.Task
		return p
	}
	defer leave()
	begun, err := s.service.OlderStart(a.Context(), service.Follow{Task: at.Task, Run: at.Run, From: from})
	message := "Task started"
	if err == nil && b.Restart {
		message, err = s.continues(a.Context(), b.Task)
	}
	if err != nil {
		return s.problemOf(a.Context(), err, at.Task)
	}
	st := &olderStream{
		s: s, w: w, ctl: http.NewResponseController(w), task: t, run: at.Run, at: from, when: begun.At, verbose: b.Verbose,
		shown: map[uint64]bool{}, asked: map[string]bool{}, children: map[string]bool{},
	}
	h := w.Header()
	h.Set("Content-Type", streamMedia)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	st.tell("", api.OlderEvent{Type: "start", Message: message, Text: b.Text})
	if begun.Unknown != "" {
		st.tell("", api.OlderEvent{Type: "progress", Message: fmt.Sprintf("The task's profile %q is not known here; %s with "+
			"the model %s is used in its place", begun.Unknown, begun.Used.Provider, begun.Used.Model)})
	}
	// The end of a client is no failure, and touches nothing.
	if err := st.follow(a.Context()); err != nil && a.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
	}
	return nil
}

// olderStream is one client of the older call.
type olderStream struct {
	s    *Server
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  bytes.Buffer
	task service.Task
	run  string
	at   events.Cursor // the stream starts behind it
	when int64         // of the event that is shown

	verbose  bool
	usage    *service.Spent  // nil until the first request
	shown    map[uint64]bool // messages
	asked    map[string]bool // questions
	children map[string]bool // subtasks that are at work
}

// continues is the first line for a task that is continued: it names the program that began it.
func (s *Server) continues(ctx context.Context, id string) (string, error) {
	origin, err := s.service.Origin(ctx, id)
	if err != nil || origin == "" {
		return "Continuing task", err
	}
	return "Continuing task from " + origin + " context", nil
}

// count adds what a request spent to what the task had spent before it, and returns the sum.
func (st *olderStream) count(ctx context.Context, e events.Event) (sum api.Usage, err error) {
	if st.usage == nil {
		if st.usage, err = st.task.SpentBefore(ctx, e.Seq); err != nil {
			return sum, err
		}
	}
	return st.usage.Add(e.Data)
}

// olderPoll is how often the stream checks whether a subtask has an open question.
const olderPoll = 2 * time.Second

// follow writes until the run has ended, or the client or the server goes.
func (st *olderStream) follow(ctx context.Context) error {
	if err := st.flush(); err != nil {
		return err
	}
	topic, release, err := st.task.Topic()
	if err != nil {
		return err
	}
	defer release()
	sub := topic.Subscribe(st.at)
	beat, look := time.NewTicker(st.s.opt.Heartbeat), time.NewTicker(olderPoll)
	defer beat.Stop()
	defer look.Stop()
	for {
		err := sub.Read(ctx, func(e events.Item) error {
			if !e.Live && st.show(ctx, e.Event) {
				return errRunEnded
			}
			return nil
		})
		switch {
		case errors.Is(err, errRunEnded):
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
		case <-st.s.stop:
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
func (st *olderStream) stopping() error {
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "The server is stopping; the task goes on, or can be gone on " +
		"with", Restart: st.command()})
	return st.flush()
}

// cut ends a stream whose journal can be read no further.
func (st *olderStream) cut(err error) error {
	message := "The task cannot be followed any more"
	if errors.Is(err, events.ErrGone) {
		message = "The task was deleted"
	}
	st.tell("", api.OlderEvent{Type: "error", Message: message, Error: message})
	st.tell("", api.OlderEvent{Type: "stream_end", Message: "Stream ending"})
	return errors.Join(err, st.flush())
}

// olderData is what of an event is shown.
type olderData struct {
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
func (st *olderStream) show(ctx context.Context, e events.Event) (over bool) {
	var d olderData
	if json.Unmarshal(e.Data, &d) != nil {
		return false
	}
	st.when = e.At
	switch e.Type {
	case "run.queued":
		if d.Run == st.run {
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
		if d.Run == st.run && d.Child == "" {
			st.tell(e.ID, api.OlderEvent{Type: "progress", Message: "Saved until there is an answer", Restart: st.command()})
		}
	case "subtask.started":
		st.children[d.Child] = true
	case "subtask.ended":
		delete(st.children, d.Child)
	case "run.ended":
		if d.Run != st.run {
			return false
		}
		st.end(e.ID, d)
		return true
	}
	return false
}

// row sends a row of the user's history once it is complete.
func (st *olderStream) row(id string, d olderData) {
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
		text = olderTool(text)
	default: // thoughts, the output of commands, and what only some want
		if !st.verbose {
			return
		}
	}
	if row.Say == "text" && d.Message == 1 {
		return // the person's own words
	}
	st.shown[d.Message] = true
	st.tell(id, api.OlderEvent{Type: "progress", Message: text, Say: row.Ask + row.Say})
}

// olderTool describes a tool's row.
func olderTool(text string) string {
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
func (st *olderStream) end(id string, d olderData) {
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
func (st *olderStream) command() string { return olderCommand(st.task.ID()) }

func olderCommand(id string) string { return "roost run --stream --task " + id }

// tell adds a line to the answer.
func (st *olderStream) tell(id string, e api.OlderEvent) {
	if e.Job, e.Task = st.run, st.task.ID(); st.when == 0 {
		st.when = st.s.opt.Now().UnixMilli()
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
func (st *olderStream) flush() error {
	if st.buf.Len() == 0 {
		return nil
	}
	_ = st.ctl.SetWriteDeadline(time.Now().Add(st.s.opt.WriteTimeout)) // a recorder in tests has none
	_, err := st.w.Write(st.buf.Bytes())
	st.buf.Reset()
	if err == nil {
		err = st.ctl.Flush()
	}
	return err
}
