package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// The older restart call starts a task or goes on with one, in a shape of its own: one
// POST whose answer is a stream of flat JSON. It is made of the same parts as the routes
// beside it: what is asked is checked, the task found (and never made), the run is on
// disk, and then the stream begins. The stream's end, whoever ends it, touches no run.

// Restart says what the older restart call may do. The zero value is the usual.
type Restart struct {
	Off         bool          // no task is gone on with
	OwnOnly     bool          // only tasks that were made over the API are
	MaxAttempts int           // restarts of a task in a row that brought nothing; 0 = 3, less = without bound
	LoadTimeout time.Duration // to find and load a task; 0 = 10 s
	Workspace   string        // of new tasks; "" = the folder that the process stands in
}

func (r Restart) attempts() int {
	if r.MaxAttempts == 0 {
		return 3
	}
	return r.MaxAttempts
}

func (r Restart) patience() time.Duration {
	if r.LoadTimeout <= 0 {
		return 10 * time.Second
	}
	return r.LoadTimeout
}

func olderRoutes() []route {
	call := route{method: http.MethodPost, summary: "The older restart call: start a task, or go on with one, and follow it", older: true, media: streamMedia,
		body: report.OlderRun{}, status: http.StatusOK, fails: []int{404, 409, 429}, act: (*Server).olderRun}
	other := call
	call.path, other.path = "/chat/stream", "/execute/stream"
	return []route{
		call, other,
		{path: "/api/questions", summary: "The open questions of a job of the older call", older: true, answer: report.OlderQuestions{}, fails: []int{400, 404},
			params: []param{
				{name: "jobId", kind: "text", doc: "the job, which is a run; it must be there"},
				{name: "state", kind: "word", words: []string{"pending", "answered"}, doc: "only these: the answered ones stand in the task"},
			}, document: (*Server).olderQuestions},
		{path: "/api/questions/{qid}", summary: "An open question of the older call, or those of a job", older: true, media: jsonMedia, fails: []int{400, 404}, document: (*Server).olderQuestion},
		{method: http.MethodPost, path: "/api/questions/{qid}/answer", summary: "Answer a question of the older call", older: true,
			body: report.OlderAnswer{}, answer: report.OlderAnswered{}, fails: []int{400, 404, 409}, act: (*Server).olderAnswer},
	}
}

const (
	leastIdle = 1000 // milliseconds, as the older call bounds them
	mostIdle  = 24 * 60 * 60 * 1000
)

func (s *Server) olderRun(a *asked) (*reply, error) {
	var b report.OlderRun
	if err := a.read(&b); err != nil {
		return nil, err
	}
	var w wrongs
	if strings.TrimSpace(b.Text) == "" {
		w.add("/task", "it says nothing")
	}
	switch {
	case b.Restart && b.Task == "":
		w.add("/taskId", "restartTask goes on with a task: name it")
	case !b.Restart && b.Task != "":
		w.add("/restartTask", "taskId names a task to go on with: say that with restartTask")
	case b.Task != "" && !validRef(b.Task):
		w.add("/taskId", "that can be no task's id")
	}
	if b.IdleMS != 0 && (b.IdleMS < leastIdle || b.IdleMS > mostIdle) {
		w.add("/slidingTimeoutMs", "want milliseconds from %d to %d; 0 is the usual", leastIdle, mostIdle)
	}
	if err := w.err(); err != nil {
		return nil, err
	}
	leave, ok := s.streams.enter(addressOf(a.Request)) // refused before anything is done
	if !ok {
		return nil, tooManyStreams()
	}
	leave()
	r := engine.Request{Text: b.Text, Mode: b.Mode, Interactive: true, Origin: "api"}
	if b.IdleMS > 0 {
		r.Limits = &task.Limits{IdleTimeoutMS: b.IdleMS}
	}
	var err error
	if b.Restart {
		err = s.restarts(a, b.Task, &r)
	} else {
		err = s.begins(a, &r)
	}
	if err != nil {
		return nil, err
	}
	t, err := s.opt.Engine.Submit(keep(a.Context()), r)
	if errors.Is(err, engine.ErrRunning) && b.Restart {
		return s.joins(a, r)
	}
	if err != nil {
		var busy *journal.BusyError
		if errors.As(err, &busy) {
			return nil, err // another process has the task, and is asked
		}
		return nil, s.olderProblem(a, b.Task, err)
	}
	return &reply{head: aboutTask(t.Ref.ID, t.ID), follow: followedOf(t.Ref.ID, t.ID, t.From)}, nil
}

// joins gives the words to a run that works on the task already, and follows it from here.
func (s *Server) joins(a *asked, r engine.Request) (*reply, error) {
	ref, err := s.opt.Store.Find(a.Context(), r.Task)
	if err != nil {
		return nil, s.olderProblem(a, r.Task, err)
	}
	from, _, err := engine.Newest(a.Context(), s.opt.Store, ref)
	if err != nil {
		return nil, s.olderProblem(a, ref.ID, err)
	}
	sent, err := s.opt.Engine.Send(keep(a.Context()), r.Task, engine.Message{ID: a.key(), Text: r.Text, By: "api", Request: r})
	if err != nil {
		return nil, s.olderProblem(a, ref.ID, err)
	}
	return &reply{head: aboutTask(ref.ID, sent.Run), follow: followedOf(ref.ID, sent.Run, from)}, nil
}

// named is the task that the body of the older call names; "" for every other request.
func (a *asked) named() string {
	if !a.route.older || a.route.body != any(report.OlderRun{}) {
		return ""
	}
	var b struct {
		Task string `json:"taskId"`
	}
	if json.Unmarshal(a.body, &b) != nil {
		return "" // it is refused
	}
	return b.Task
}

// begins fills in what a new task needs.
func (s *Server) begins(a *asked, r *engine.Request) error {
	if r.Workspace = s.opt.Restart.Workspace; r.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the workspace of a new task: %w", err)
		}
		r.Workspace = dir
	}
	r.Preset, r.NewTask = true, a.key()
	if r.NewTask != "" {
		r.RunID = a.runFor(r.NewTask)
	}
	return nil
}

// restarts finds the task to go on with, reads it, and says why it is not gone on with.
// Nothing is made or changed.
func (s *Server) restarts(a *asked, given string, r *engine.Request) error {
	o := s.opt.Restart
	if o.Off {
		p := problem(http.StatusForbidden, "restart_disabled", "Tasks are not restarted here", "the setting restart.enabled says so", "roost resume "+given, "roost config set restart.enabled true")
		p.Task = given
		return p
	}
	ctx, stop := context.WithTimeout(a.Context(), o.patience())
	defer stop()
	ref, sum, err := s.load(ctx, given)
	if errors.Is(err, context.DeadlineExceeded) && a.Context().Err() == nil {
		p := problem(http.StatusGatewayTimeout, "load_timeout", "The task took too long to load", "it was not found and read within "+o.patience().String(), "ask again", "roost config set restart.load_timeout 60s")
		p.Task, p.Retryable = given, true
		return p
	}
	if err != nil {
		return s.olderProblem(a, given, err)
	}
	if len(sum.Damaged) > 0 {
		d := sum.Damaged[0]
		p := problem(http.StatusUnprocessableEntity, "history_corrupt", "Task data is damaged", d.File+": "+d.Problem, "roost doctor "+ref.ID, "roost doctor --repair "+ref.ID, "roost resume "+ref.ID+"  # goes on with what is whole")
		p.Task = ref.ID
		return p
	}
	if made := sum.Origin == "api" || sum.Origin == "web"; o.OwnOnly && !(ref.Own && made) {
		p := problem(http.StatusForbidden, "restart_denied", "That task was not made here", "the setting restart.cross_context lets only tasks go on that were made over the API", "roost resume "+ref.ID, "roost config set restart.cross_context true")
		p.Task = ref.ID
		return p
	}
	r.Task, r.RunID = ref.Source+":"+ref.ID, a.runFor(ref.ID)
	return s.bounded(ctx, a, ref, r.RunID)
}

// load finds a task and reads what is known of it.
func (s *Server) load(ctx context.Context, given string) (store.Ref, store.Summary, error) {
	ref, err := s.opt.Store.Find(ctx, given)
	if err != nil {
		return ref, store.Summary{}, err
	}
	if next, ok := s.opt.Store.Continued(ref); ok {
		ref = next
	}
	v, err := s.opt.Store.Read(ctx, ref)
	if err != nil {
		return ref, store.Summary{}, err
	}
	return ref, v.Summary, errors.Join(v.Unread(), v.Close(), ctx.Err())
}

// bounded refuses a task that was restarted too often without getting anywhere: its last
// runs failed, or were killed, before the model replied.
func (s *Server) bounded(ctx context.Context, a *asked, ref store.Ref, run string) error {
	most := s.opt.Restart.attempts()
	if most < 0 {
		return nil
	}
	runs, err := s.opt.Engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return s.olderProblem(a, ref.ID, err)
	}
	in := 0
	for i, r := range runs {
		if r.ID == run && run != "" {
			return nil // this very request, again
		}
		if i == len(runs)-1 || r.Turns > 0 || r.State != "failed" && r.State != "interrupted" {
			break // the first run is no restart
		}
		in++
	}
	if in < most {
		return nil
	}
	p := problem(http.StatusConflict, "too_many_restarts", "The task was restarted too often", fmt.Sprintf("its last %d restarts ended before the model replied; the setting restart.max_attempts allows %d", in, most),
		"roost show "+ref.ID, "roost resume "+ref.ID+"  # is not bounded", "roost config set restart.max_attempts "+strconv.Itoa(most+3))
	p.Task = ref.ID
	return p
}

// olderProblem is a problem that names the task which the body named.
func (s *Server) olderProblem(a *asked, id string, err error) error {
	p := s.problemOf(a.Context(), err, id)
	if p.Task == "" {
		p.Task = id
	}
	return p
}

// olderPath reports whether a path is of the older call.
func olderPath(path string) bool {
	return path == "/chat/stream" || path == "/execute/stream" || strings.HasPrefix(path, "/api/")
}

// olderFail writes a problem in the older shape.
func (s *Server) olderFail(w http.ResponseWriter, r *http.Request, p *Problem) {
	out := report.OlderFailure{Error: p.Title, Message: p.Detail, Code: p.Code, Suggestions: p.Suggestions, Timestamp: report.Stamp(s.opt.Now().UnixMilli())}
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
	h.Set("Content-Type", jsonMedia)
	if p.after != "" {
		h.Set("Retry-After", p.after)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // the client is gone: nobody is left to tell
	}
}

func tooManyStreams() *Problem {
	p := problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open", "close some, or follow fewer tasks at a time")
	p.Retryable, p.after = true, "5"
	return p
}
