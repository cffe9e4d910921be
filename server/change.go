package server

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/server/metrics"
	"github.com/roost-dev/roost/service"
)

const keyHeader = "Idempotency-Key"

var validKey = lazyregexp.New(`^[!-~]+$`)

// change answers a request that changes something. Before the route's own work it checks whether another process works on
// the task, the idempotency key, and If-Match.
func (s *Server) change(w http.ResponseWriter, a *asked) *api.Problem {
	if p := s.service.ReadOnly(); p != nil && !a.route.bare {
		return p
	}
	key, p := keyOf(a)
	if p != nil {
		return p
	}
	key = s.ownKey(a, key)
	// This server itself decides whether the older call may continue a task. It passes that call on later, if the task turns
	// out to be held by another process (refused).
	if (a.named() == "" || s.opt.Guest) && s.elsewhere(w, a) {
		return nil
	}
	if key != "" && a.RemoteAddr == client.LocalPeer {
		// A client of this process loses no answer of this server, so its requests are not stored. A repeated request may
		// have taken effect in another process, to which this server passed it on: the journal shows that.
		if a.again = a.Header.Get(client.AttemptHeader) != ""; a.again {
			a.identity = idempotency.Identity(key, a.body)
		}
		key = ""
	}
	for end := time.Now().Add(changeWait); ; time.Sleep(releasedPause) {
		a.released = false
		if key != "" {
			p = s.once(w, a, key)
		} else if out, err := s.act(a); err != nil {
			p = s.refused(w, a, err)
		} else {
			p = s.done(w, a, *out)
		}
		if !a.released || time.Now().After(end) || a.Context().Err() != nil {
			return p
		}
	}
}

// keyOf returns the idempotency key of a request; "" if the request has none or needs none.
func keyOf(a *asked) (string, *api.Problem) {
	given := a.Header.Values(keyHeader)
	if len(given) == 0 || !a.route.keyed() {
		return "", nil
	}
	key := given[0]
	if len(given) != 1 || len(key) > 255 || !validKey().MatchString(key) {
		p := problem(http.StatusBadRequest, "bad_header", "The idempotency key is malformed",
			"want one "+keyHeader+" of 1 to 255 visible ASCII characters")
		p.Errors = []api.Wrong{{Parameter: keyHeader, Detail: p.Detail}}
		return "", p
	}
	return key, nil
}

// once carries out a request with an idempotency key. A repeated request gets the answer of the first one.
func (s *Server) once(w http.ResponseWriter, a *asked, key string) *api.Problem {
	a.identity = idempotency.Identity(key, a.body)
	one, done, err := s.keyed.Begin(a.Context(), key, a.Method+" "+a.URL.Path, idempotency.Fingerprint(a.Request, a.body))
	switch {
	case errors.Is(err, idempotency.ErrInFlight):
		return problem(http.StatusConflict, "idempotency_in_flight", "The request is being carried out", idempotency.ErrInFlight.Error(),
			"ask again in a second, with the same key").Later("1").About(a.id)
	case errors.Is(err, idempotency.ErrOther):
		p := problem(http.StatusUnprocessableEntity, "idempotency_mismatch", "The key was used for another request",
			idempotency.ErrOther.Error()+": method, path, query or body differ", "use a new key")
		p.Errors, p.Task = []api.Wrong{{Parameter: keyHeader, Detail: idempotency.ErrOther.Error()}}, a.id
		return p
	case err != nil:
		return s.problemFor(a, err)
	case done != nil:
		w.Header().Set("Idempotent-Replayed", "true")
		return s.done(w, a, *done)
	}
	let := one.Leave // releases the key, also if the request panics
	defer func() {
		if let != nil {
			s.note(a, let())
		}
	}()
	a.again = one.Again
	out, err := s.act(a)
	if err != nil {
		// A first attempt that was refused changed nothing: its key is free again. One that failed may have, as when the disk
		// was full after the commit.
		if !one.Again && s.problemFor(a, err).Status < http.StatusInternalServerError {
			let = one.Forget
		}
		s.note(a, let())
		let = nil
		return s.refused(w, a, err)
	}
	let = nil
	if err := one.Finish(*out); err != nil {
		// The change has happened, and its ids are derived from the key, so that a repeat finds the change.
		s.note(a, err)
	}
	return s.done(w, a, *out)
}

// note logs an error that a client need not know.
func (s *Server) note(a *asked, err error) {
	if err != nil {
		s.opt.Log.Warn("idempotency key", "path", a.URL.Path, "error", err.Error())
	}
}

// act carries out a request, if the task is in the state that If-Match requires.
func (s *Server) act(a *asked) (*idempotency.Answer, error) {
	unlock, err := s.guarded(a)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out, err := s.changes.inTurn(a.Context(), a.about, func() (*reply, error) { return a.route.act(s, a) })
	if err != nil {
		return nil, err
	}
	s.audit(a, out.doc)
	if out.then != nil {
		out.then()
	}
	done := idempotency.Answer{Status: a.route.success(), Head: map[string]string{}, Follow: out.follow}
	if a.route.also != 0 && madeNothing(out.doc) {
		done.Status = a.route.also
	}
	for _, head := range []http.Header{headOf(out.doc), out.head} {
		for name := range head {
			done.Head[name] = head.Get(name)
		}
	}
	if out.doc != nil {
		body, err := bytesOf(out.doc)
		if err != nil {
			return nil, err
		}
		done.Body = string(body)
		if tag, ok := out.doc.(tagged); ok {
			done.Head["ETag"] = tagOf(tag, body)
		}
	}
	return &done, nil
}

// guarded checks If-Match, and excludes other changes with If-Match until the caller calls unlock. Another process can
// still change the task in between, so the code that takes the task's lock compares again (service.Task.Expecting). A patch
// of labels compares those, too, because those of another tool's task are not in its journal: see service.Call.
func (s *Server) guarded(a *asked) (unlock func(), err error) {
	want := a.Header.Values("If-Match")
	if len(want) == 0 || a.id == "" {
		return func() {}, nil
	}
	t, err := s.service.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	free, err := s.guards.Lock(a.Context(), t.Name())
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, nil)
	if err == nil {
		var body []byte
		if body, err = bytesOf(doc); err == nil && !matchesStrongly(want, tagOf(doc, body)) {
			if t.ChangedBy(a.Context(), a.call()) { // an earlier attempt of this request changed the task
				return free, nil
			}
			err = report.MovedProblem(a.id)
		}
	}
	if err != nil {
		free()
		return nil, err
	}
	a.seen = &doc
	ctx, done := t.Expecting(a.Context(), doc.head)
	was := a.Request
	a.Request = a.WithContext(ctx)
	return func() {
		a.Request = was
		done()
		free()
	}, nil
}

// refused returns the problem for an error of act. If another process has just taken the task, or only another server
// has the task's workspace, refused passes the request on instead. If that process has released the task by now,
// refused sets a.released, and the caller tries again.
func (s *Server) refused(w http.ResponseWriter, a *asked, err error) *api.Problem {
	if service.HeldElsewhere(err) {
		if s.elsewhere(w, a) {
			return nil
		}
		if a.about != (service.Task{}) {
			_, _, held := a.about.Holder(a.Context())
			a.released = !held && !a.about.HeldHere(a.Context()) // inTurn has waited for this process
		}
	}
	if s.toWorkspace(w, a, err) {
		return nil
	}
	if s.opt.Guest && (errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrDraining)) {
		w.Header().Set(hopHeader, notHere) // this process is ending: the server that passed the request on carries it out
	}
	p := s.problemFor(a, err)
	p.Task = cmp.Or(p.Task, a.named())
	return p
}

// done answers with the outcome.
func (s *Server) done(w http.ResponseWriter, a *asked, out idempotency.Answer) *api.Problem {
	s.begin(w)
	h := w.Header()
	for name, value := range out.Head {
		h.Set(name, value)
	}
	if out.Follow != nil && a.route.older {
		return s.older(w, a, *out.Follow)
	}
	if out.Follow != nil && prefers(a.Header.Values("Accept"), streamMedia) {
		return s.followed(w, a, *out.Follow)
	}
	if out.Body == "" {
		w.WriteHeader(out.Status)
		return nil
	}
	send(w, a.Request, out.Status, jsonMedia, []byte(out.Body))
	return nil
}

// A task has one owner at a time. The change gate serialises the changes of one task in this process. A change also waits
// for a run that has ended but is still writing Roo's files, because a client may change the task as soon as it sees the
// run's end. A change waits on a channel and does not poll.

// changeWait is how long a change waits for other changes of its task; some of them wait for a model.
const changeWait = 3 * time.Second

// releasedPause is how long a request waits before it tries again because another process held the task for a moment.
const releasedPause = 20 * time.Millisecond

// changeGate holds the changes of each task that are under way in this process.
type changeGate struct {
	mu  sync.Mutex
	all map[string]*changing
}

type changing struct {
	users int
	ended chan struct{} // closed when a change ends, and then replaced by a new channel
}

// enter counts a change of a task until the caller calls leave.
func (b *changeGate) enter(task string) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[task]
	if one == nil {
		one = &changing{ended: make(chan struct{})}
		b.all[task] = one
	}
	one.users++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(one.ended)
		one.ended = make(chan struct{})
		if one.users--; one.users == 0 {
			delete(b.all, task)
		}
	}
}

// others returns a channel that is closed when another change of the task ends; nil if there is no other change. The
// caller has called enter for its own change.
func (b *changeGate) others(task string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.all[task]; one != nil && one.users > 1 {
		return one.ended
	}
	return nil
}

// inTurn makes a change of a task. If a change or run of this process holds the task and is about to release it,
// inTurn waits and tries again. With the zero task, the change concerns no task.
func (b *changeGate) inTurn(ctx context.Context, about service.Task, change func() (*reply, error)) (*reply, error) {
	if about == (service.Task{}) {
		return change()
	}
	task := about.Name()
	defer b.enter(task)()
	late := time.After(changeWait)
	for looked := false; ; {
		other := b.others(task) // before the try, so that an end during the try is not missed
		out, err := change()
		if err == nil || !busyHere(err) {
			return out, err
		}
		free, failed := about.WaitForRelease(ctx)
		switch {
		case failed != nil:
			return nil, err
		case free && !looked:
			looked = true
			continue
		case other == nil:
			return nil, err
		}
		select {
		case <-other:
			late = time.After(changeWait) // the other changes make progress
		case <-late:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// busyHere reports whether an error means that this process holds the task.
func busyHere(err error) bool {
	p := report.BusyProblem(err)
	var own *api.Problem
	return p != nil && p.Code == "task_busy" || errors.As(err, &own) && own.Code == "task_busy"
}

// audit logs a change, and the door and address that its request came from. It never logs text of users: of an answer it
// logs the decision.
func (s *Server) audit(a *asked, doc any) {
	about := []any{"method", a.Method, "route", a.route.path, "task", a.id}
	words := "changed"
	switch done := doc.(type) {
	case api.Answered:
		words = "answered"
		about = append(about[:len(about)-1], done.Task, "run", done.Run, "question", done.Question, "decision", metrics.Decision(done.Approve))
	case api.Sent:
		about = append(about, "run", done.Run, "delivered", done.Delivered)
		if done.Question != "" {
			words = "answered"
			about = append(about, "question", done.Question, "decision", "answered")
		}
	case api.Run:
		about = append(about[:len(about)-1], done.Task, "run", done.ID, "state", done.State)
	}
	about = append(about, "door", entrance(a.Request), "from", addressOf(a.Request), "request_id", idOf(a.Request))
	s.opt.Log.Info(words, about...)
}

func taskRoutes() []route {
	return []route{
		{on: "POST /v1/tasks", body: api.NewTask{}, answer: api.Started{}, status: http.StatusCreated, stream: true,
			act: reads((*Server).startTask)},
		{on: "PATCH /v1/tasks/{id}", body: api.TaskPatch{}, answer: api.Summary{}, act: reads((*Server).patchTask)},
		{on: "DELETE /v1/tasks/{id}", answer: api.Deleted{}, act: does(func(s *service.Service, a *asked) (any, error) {
			return s.Delete(a.Context(), a.id, a.text["subtasks"])
		})},
	}
}

func (s *Server) startTask(a *asked, n api.NewTask) (*reply, error) {
	doc, follow, err := s.service.Start(a.Context(), a.call(), n)
	return &reply{doc: doc, follow: follow}, err
}

func (s *Server) patchTask(a *asked, p api.TaskPatch) (*reply, error) {
	t, copies, err := s.service.Patch(a.Context(), a.call(), a.id, p)
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, copies)
	return &reply{doc: doc}, err
}

func trashRoutes() []route {
	return []route{
		{on: "GET /v1/trash", answer: api.Page[api.DeletedTask]{}, document: func(s *Server, a *asked) (any, error) {
			all, err := s.service.Trash(a.Context())
			return pageOf(a, all, err)
		}},
		{on: "GET /v1/trash/{name}", answer: api.DeletedTask{}, document: shows("name", (*service.Service).Trashed)},
		{on: "POST /v1/trash/{name}/restore", answer: api.Restored{}, act: acts("name", (*service.Service).Untrash)},
		{on: "POST /v1/purges", body: api.NewPurge{}, answer: api.Purged{}, act: makes((*service.Service).PurgeAll)},
		{on: "DELETE /v1/trash/{name}", answer: api.DeletedTask{}, act: ends("name", (*service.Service).Purge)},
	}
}

// storageRoutes returns the routes that import, check or collect for the whole store.
func storageRoutes() []route {
	return []route{
		{on: "POST /v1/imports", body: api.NewImport{}, answer: api.Import{}, bare: true, act: makes((*service.Service).Import)},
		{on: "POST /v1/checkups", body: api.NewCheckup{}, answer: api.Checkup{}, bare: true, act: makes((*service.Service).Check)},
		{on: "POST /v1/collections", body: api.NewCollection{}, answer: api.Collection{}, act: makes((*service.Service).Collect)},
	}
}

// waitMost bounds how long Prefer: wait delays an answer.
const waitMost = 600 * time.Second

func runRoutes() []route {
	return []route{
		{on: "GET /v1/tasks/{id}/runs", answer: api.Page[api.Run]{}, engine: true,
			document: lists("id", (*service.Service).RunsOf)},
		{on: "POST /v1/tasks/{id}/runs", body: api.NewRun{}, answer: api.Run{}, status: http.StatusAccepted, stream: true,
			act: reads((*Server).startRun)},
		{on: "GET /v1/runs", answer: api.Page[api.Run]{}, engine: true, document: (*Server).runs},
		{on: "GET /v1/runs/{rid}", answer: api.Run{}, engine: true, waits: true, serve: (*Server).run},
		{on: "POST /v1/runs/{rid}/cancel", answer: api.Run{}, act: acts("rid", (*service.Service).CancelRun)},
		{on: "POST /v1/tasks/{id}/cancel", answer: api.Run{}, act: ends("id", (*service.Service).Cancel)},
	}
}

func (s *Server) startRun(a *asked, n api.NewRun) (*reply, error) {
	doc, follow, err := s.service.Continue(a.Context(), a.call(), a.id, n)
	head := http.Header{"Location": {"/v1/runs/" + url.PathEscape(doc.ID)}}
	return &reply{head: head, doc: doc, follow: follow}, err
}

func (s *Server) runs(a *asked) (any, error) {
	if _, ok := countIn(a.text["cursor"]); !ok {
		return nil, service.BadCursor("list")
	}
	return s.service.Runs(a.Context(), service.RunFilter{State: a.text["state"], Limit: a.number["limit"], Cursor: a.text["cursor"]})
}

// run answers with a run. With Prefer: wait it answers when the run has ended or waits for the user.
func (s *Server) run(w http.ResponseWriter, a *asked) *api.Problem {
	patience, given, p := waitOf(a)
	if p != nil {
		return p
	}
	id := a.PathValue("rid")
	doc, err := s.service.Run(a.Context(), id, a.silent)
	if err == nil && given && a.silent == "" { // a silent process would report no end
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(patience/time.Second)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 3*s.opt.WriteTimeout))
		doc, err = s.service.Settled(a.Context(), id, patience, s.running.Done())
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	maps.Copy(w.Header(), headOf(doc))
	return s.problemFor(a, respond(w, a.Request, http.StatusOK, doc))
}

// waitOf reads Prefer: wait=N, in seconds. RFC 7240 lets a server ignore other preferences.
func waitOf(a *asked) (wait time.Duration, given bool, p *api.Problem) {
	for _, header := range a.Header.Values("Prefer") {
		for _, one := range strings.Split(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || n < 0 {
				return 0, false, problem(http.StatusBadRequest, "bad_header", "The preference cannot be read",
					"want Prefer: wait=N with N in seconds, up to 600")
			}
			return min(time.Duration(n), waitMost/time.Second) * time.Second, true, nil
		}
	}
	return 0, false, nil
}

func wordRoutes() []route {
	return []route{
		{on: "POST /v1/tasks/{id}/messages", body: api.Message{}, answer: api.Sent{}, status: http.StatusAccepted,
			act: changes("id", (*service.Service).Send)},
		{on: "GET /v1/tasks/{id}/queue", answer: api.Page[api.Queued]{}, engine: true,
			document: lists("id", (*service.Service).Queue)},
		{on: "PATCH /v1/tasks/{id}/queue/{input}", body: api.InputPatch{}, answer: api.Queued{},
			act: takes(func(s *service.Service, a *asked, p api.InputPatch) (any, error) {
				return s.EditInput(a.Context(), a.id, a.PathValue("input"), p)
			})},
		{on: "DELETE /v1/tasks/{id}/queue/{input}", act: does(func(s *service.Service, a *asked) (any, error) {
			return nil, s.DropInput(a.Context(), a.id, a.PathValue("input"))
		})},
	}
}

func questionRoutes() []route {
	return []route{
		{on: "GET /v1/questions", answer: api.Page[api.Question]{}, fails: []int{404}, engine: true,
			document: lists("task", (*service.Service).Questions)},
		{on: "GET /v1/questions/{qid}", answer: api.Question{}, engine: true, document: shows("qid", (*service.Service).Question)},
		{on: "POST /v1/questions/{qid}/answer", body: api.Answer{}, answer: api.Answered{},
			act: changes("qid", (*service.Service).Answer)},
	}
}

// editRoutes returns the routes that change histories and files of a task, and undo such changes.
func editRoutes() []route {
	return []route{
		{on: "POST /v1/tasks/{id}/rewinds", body: api.NewRewind{}, answer: api.Rewound{},
			act: changes("id", (*service.Service).Rewind)},
		{on: "GET /v1/tasks/{id}/undo", answer: api.TaskActions{}, document: shows("id", (*service.Service).Actions)},
		{on: "POST /v1/tasks/{id}/undo", body: api.NewUndo{}, answer: api.Undone{}, act: changes("id", (*service.Service).Undo)},
		{on: "POST /v1/tasks/{id}/redo", body: api.NewUndo{}, answer: api.Undone{}, act: changes("id", (*service.Service).Redo)},
		{on: "POST /v1/tasks/{id}/forks", body: api.NewFork{}, answer: api.ForkResult{}, status: http.StatusCreated,
			also: http.StatusOK, act: changes("id", (*service.Service).Fork)},
		{on: "POST /v1/tasks/{id}/condense", body: api.NewCondense{}, answer: api.Condensed{}, fails: []int{502}, act: reads((*Server).condense)},
		{on: "GET /v1/tasks/{id}/branches", answer: api.BranchTree{}, document: func(s *Server, a *asked) (any, error) {
			return service.Read(a.Context(), s.service, a.id, func(t service.View) (any, error) { return t.Branches(), nil })
		}},
		{on: "GET /v1/tasks/{id}/compare", answer: api.Comparison{}, engine: true,
			document: func(s *Server, a *asked) (any, error) { return s.service.Compare(a.Context(), a.id, a.text["with"]) }},
		{on: "POST /v1/tasks/{id}/head", body: api.NewHead{}, answer: api.Head{}, act: changes("id", (*service.Service).Switch)},
		{on: "GET /v1/tasks/{id}/checkpoints", answer: api.Checkpoints{}, engine: true,
			document: shows("id", (*service.Service).Checkpoints)},
		{on: "POST /v1/tasks/{id}/checkpoints", answer: api.SavedCheckpoint{}, status: http.StatusCreated, also: http.StatusOK,
			act: acts("id", (*service.Service).SaveCheckpoint)},
		{on: "GET /v1/tasks/{id}/checkpoints/{c}/diff", answer: api.Diff{}, engine: true, document: (*Server).diff},
		{on: "GET /v1/tasks/{id}/commit-message", answer: api.CommitMessage{}, engine: true,
			document: shows("id", (*service.Service).CommitMessage)},
		{on: "POST /v1/tasks/{id}/checkpoints/{c}/restore", body: api.NewRestore{}, answer: api.RestoreResult{},
			act: takes(func(s *service.Service, a *asked, n api.NewRestore) (any, error) {
				return s.Restore(a.Context(), a.call(), a.id, checkpointOf(a), n)
			})},
	}
}

func (s *Server) condense(a *asked, n api.NewCondense) (*reply, error) {
	ctx := a.Context()
	if a.RemoteAddr != client.LocalPeer {
		ctx = context.WithoutCancel(ctx) // a client of another process that disconnects interrupts nothing
	}
	until, end := s.untilStop(ctx) // the request to the model may take minutes
	defer end()
	doc, err := s.service.Condense(a.Context(), until, a.call(), a.id, n)
	return &reply{doc: doc}, err
}

func (s *Server) diff(a *asked) (any, error) {
	q := service.DiffQuery{From: checkpointOf(a), To: a.text["to"], Patch: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			q.Paths = append(q.Paths, path)
		}
	}
	return s.service.Diff(a.Context(), a.id, q)
}

// checkpointOf returns the checkpoint in the path of a request. The word newest in the path becomes "", the
// checkpoint before the newest change.
func checkpointOf(a *asked) string {
	if c := a.PathValue("c"); c != "newest" {
		return c
	}
	return ""
}
