package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/metrics"
)

// serverRoutes returns the routes about the server itself.
func serverRoutes() []route {
	return []route{
		{on: "GET /healthz", open: true, answer: health{}, document: func(*Server, *asked) (any, error) { return health{"ok"}, nil }},
		{on: "GET /readyz", open: true, answer: readiness{}, serve: (*Server).readyz},
		{on: "GET /login", open: true, media: "text/plain", forms: []string{jsonMedia}, serve: (*Server).login},
		{on: "GET /ca.crt", open: true, media: "application/x-x509-ca-cert", fails: []int{404}, serve: (*Server).caFile},
		{on: "GET /openapi.json", media: jsonMedia, document: (*Server).describe},
		{on: "GET /v1/openapi.json", media: jsonMedia, document: (*Server).describe},
		{on: "GET /v1/version", answer: api.Version{},
			document: func(s *Server, _ *asked) (any, error) { return s.opt.Version, nil }},
		{on: "GET /metrics", media: "text/plain", forms: []string{"application/openmetrics-text"}, serve: (*Server).metrics},
		{on: "GET /v1/server", answer: api.Server{}, document: (*Server).described},
		{on: "POST /v1/server/logins", answer: api.Login{}, status: http.StatusCreated, bare: true, act: (*Server).newLogin},
		{on: "GET /v1/devices", answer: api.Page[api.Device]{}, document: (*Server).devices},
		{on: "PATCH /v1/devices/{device}", body: api.DevicePatch{}, answer: api.Device{}, bare: true, act: reads((*Server).renameDevice)},
		{on: "DELETE /v1/devices/{device}", answer: api.Device{}, bare: true, act: (*Server).revokeDevice},
		{on: "POST /v1/server/drain", answer: api.Server{}, act: (*Server).drain},
		{on: "DELETE /v1/server/drain", answer: api.Server{}, act: (*Server).admit},
		{on: "POST /v1/server/stop", answer: api.Server{}, status: http.StatusAccepted, body: api.Stop{}, act: reads((*Server).quit)},
	}
}

func (s *Server) state() api.Server {
	out := api.Server{
		PID: os.Getpid(), StartedAt: api.Stamp(s.begun.UnixMilli()), URL: s.opt.URL, Version: s.opt.Version.Version,
		Draining: s.service.Draining(), Stopping: s.ending.Load() || s.stopped(), Recovery: s.opt.Recovery.String(),
		Streams: s.streams.open(),
		Limits:  s.opt.Limits,
	}
	if s.opt.LAN != nil {
		out.LAN = &s.opt.LAN.LAN
	}
	out.Notifications = s.service.Notifications()
	out.Limits.MaxStreams, out.Limits.MaxBody = s.opt.MaxStreams, s.opt.MaxBody
	out.Runs.Running, out.Runs.Waiting, out.Runs.Queued = s.service.Load()
	return out
}

// described returns the state of the server, with the servers that share its database.
func (s *Server) described(a *asked) (any, error) {
	out := s.state()
	var err error
	out.Group, err = s.service.Servers(a.Context())
	return out, err
}

func (s *Server) drain(*asked) (*reply, error) {
	s.service.Drain()
	s.opt.Log.Info("draining")
	return &reply{doc: s.state()}, nil
}

func (s *Server) admit(*asked) (*reply, error) {
	if s.ending.Load() {
		return nil, problem(http.StatusConflict, "stopping", "The server is stopping", "it was asked to end and starts nothing more")
	}
	s.service.Undrain()
	s.opt.Log.Info("not draining any more")
	return &reply{doc: s.state()}, nil
}

// quit answers, and then asks the program to end the server.
func (s *Server) quit(a *asked, how api.Stop) (*reply, error) {
	if s.opt.Stop == nil {
		return nil, problem(http.StatusConflict, "not_a_server", "That process is not a server",
			"the process runs a task in a terminal, and ends with that task", "POST /v1/tasks/{id}/cancel")
	}
	s.Leave()
	return &reply{doc: s.state(), then: func() { s.opt.Stop(how.Now) }}, nil
}

// Leave marks the server as ending: /readyz reports it, and the server refuses new runs. It answers requests until
// Serve returns.
func (s *Server) Leave() {
	s.ending.Store(true)
	s.service.Drain()
}

// Recovery is the state of the recovery of runs that an earlier process left.
type Recovery struct{ state atomic.Pointer[string] }

// Set sets the state: going_on, done, failed.
func (r *Recovery) Set(state string) { r.state.Store(&state) }

func (r *Recovery) String() string {
	if r != nil {
		if state := r.state.Load(); state != nil {
			return *state
		}
	}
	return "none"
}

type health struct {
	Status string `json:"status"`
}

// readiness is the result of the checks, without paths: the route needs no token.
type readiness struct {
	Status string            `json:"status"` // ready, not ready
	Checks map[string]string `json:"checks"`
}

// readyz checks whether tasks can be read and kept, and whether the server is stopping. It reports the recovery of an
// earlier server's runs and does not wait for it.
func (s *Server) readyz(w http.ResponseWriter, a *asked) *api.Problem {
	out := readiness{"ready", map[string]string{"store": "ok", "server": "ok", "recovery": s.opt.Recovery.String()}}
	if why := s.room(); why != "" {
		out.Status, out.Checks["store"] = "not ready", why
	}
	ctx, cancel := context.WithTimeout(a.Context(), databaseWait)
	defer cancel()
	if s.service.Database(ctx) != nil { // the error may name addresses, and the route needs no token
		out.Status, out.Checks["store"] = "not ready", "its database does not answer"
	}
	switch {
	case s.stopped(), s.ending.Load():
		out.Status, out.Checks["server"] = "not ready", "it is stopping"
	case s.service.Draining():
		out.Status, out.Checks["server"] = "not ready", "it starts no more runs"
	}
	status := http.StatusOK
	if out.Status != "ready" {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	return s.problemFor(a, respond(w, a.Request, status, out))
}

// databaseWait is how long /readyz waits for the database: a load balancer asks again soon.
const databaseWait = time.Second

// leastRoom is the free space that a disk must have, in bytes: with less it cannot store a turn.
const leastRoom = 1 << 20

// room returns why tasks of the root cannot be read or stored, without paths; "" if they can. It writes nothing. A
// root that does not exist yet is fine, because the first task makes it. A root that existed before and is gone is
// lost with all tasks.
func (s *Server) room() string {
	root := s.service.Root()
	for _, dir := range []string{root, filepath.Join(root, "tasks")} {
		f, err := os.Open(dir)
		if err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			s.rooted.Store(true)
		case errors.Is(err, fs.ErrNotExist) && dir == root && s.rooted.Load():
			return "it is missing"
		case errors.Is(err, fs.ErrNotExist) && dir == root:
			return ""
		case errors.Is(err, fs.ErrNotExist): // no task yet
		case errors.Is(err, fs.ErrPermission):
			return "it may not be read"
		default:
			return "it cannot be read"
		}
	}
	return kept(root, leastRoom)
}

func (s *Server) describe(*asked) (any, error) {
	doc, err := s.document()
	return raw(doc), err
}

// login exchanges the key of the link for a cookie. The HEAD request of a prefetching browser does not use up the key.
func (s *Server) login(w http.ResponseWriter, a *asked) *api.Problem {
	if a.Method != http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	cookie, other, err := s.opt.Devices.LogIn(a.Request, a.text["key"], addressOf(a.Request))
	if err != nil {
		return s.problemFor(a, err)
	}
	if other { // the browser must not save unsent words of the account before as those of this one
		w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	}
	_, in := s.knows(a.Request)
	switch {
	case cookie != nil:
		http.SetCookie(w, cookie)
		s.opt.Log.Info("browser logged in", "from", addressOf(a.Request))
	case !in: // a logged-in browser may use an old link
		return problem(http.StatusUnauthorized, "login_used", "The log-in link does not work",
			"the link was used, is older than "+strconv.Itoa(int(devices.LinkLife.Minutes()))+" minutes, or belongs to another start of the server",
			"roost open  # opens the page, logged in", "roost devices add  # a link for another device")
	}
	if strings.Contains(strings.Join(a.Header.Values("Accept"), ","), jsonMedia) { // a program, which needs no redirect
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	to := a.text["to"]
	if !inside(to) {
		to = "/"
	}
	http.Redirect(w, a.Request, to, http.StatusSeeOther)
	return nil
}

// inside reports whether an address is a path of this server. Two slashes would begin the name of another host, and browsers
// read some other characters as slashes.
func inside(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") &&
		!strings.ContainsAny(to, "\\\t\r\n")
}

// newLogin makes a log-in link for the caller.
func (s *Server) newLogin(a *asked) (*reply, error) {
	if s.opt.URL == "" {
		return nil, problem(http.StatusConflict, "not_a_server", "That process is not a server",
			"no browser can reach the process", "roost serve")
	}
	c, _ := accounts.Of(a.Context())
	path, err := s.opt.Devices.LinkFor(a.Context(), c.Token)
	if err != nil {
		return nil, err
	}
	s.opt.Log.Info("log-in link made", "from", addressOf(a.Request), "by", entrance(a.Request))
	out := api.Login{URL: s.opt.URL + path}
	if s.opt.LAN != nil {
		out.LAN = s.opt.LAN.URL + path
	}
	return &reply{doc: out}, nil
}

// caFile answers with the certificate that devices of the local network install.
func (s *Server) caFile(w http.ResponseWriter, a *asked) *api.Problem {
	if s.opt.LAN == nil {
		return problem(http.StatusNotFound, "no_lan", "There is no such certificate", "the server does not serve the local network",
			"roost serve --lan")
	}
	// The media type makes an iPhone install the certificate; as an attachment it would become a file.
	send(w, a.Request, http.StatusOK, a.route.media, s.opt.LAN.CAFile)
	return nil
}

// devices lists the browsers that are logged in.
func (s *Server) devices(a *asked) (any, error) {
	all, err := s.opt.Devices.List(a.Context())
	return pageOf(a, all, err)
}

func (s *Server) renameDevice(a *asked, patch api.DevicePatch) (*reply, error) {
	doc, err := s.opt.Devices.Rename(a.Context(), a.PathValue("device"), patch.Name)
	return &reply{doc: doc}, deviceProblem(err)
}

func (s *Server) revokeDevice(a *asked) (*reply, error) {
	doc, err := s.opt.Devices.Revoke(a.Context(), a.PathValue("device"))
	if err == nil {
		s.opt.Log.Info("device revoked", "device", doc.ID, "from", addressOf(a.Request), "by", entrance(a.Request))
	}
	return &reply{doc: doc}, deviceProblem(err)
}

// deviceProblem is the problem of a change of a device that failed.
func deviceProblem(err error) error {
	switch {
	case errors.Is(err, devices.ErrUnknown):
		return problem(http.StatusNotFound, "no_such_device", "No device has that id", "the device's log-in ended, or was revoked",
			"roost devices", "GET /v1/devices")
	case errors.Is(err, devices.ErrName):
		return api.Invalid(api.Wrong{Parameter: "/name", Detail: err.Error()})
	}
	return err
}

// metrics answers with all metrics.
func (s *Server) metrics(w http.ResponseWriter, a *asked) *api.Problem {
	var b metrics.Text
	b.Build(s.opt.Version.Version, s.opt.Version.Go)
	if s.service.ReadOnly() == nil {
		running, waiting, queued := s.service.Load()
		b.Gauges("roost_runs", "Runs of this process by state.", "state",
			map[string]float64{"running": float64(running), "waiting": float64(waiting), "queued": float64(queued)})
		if open, err := s.service.Questions(a.Context(), ""); err == nil { // if that fails, the metric is left out
			b.Gauge("roost_questions_open", "Open questions and approvals of all tasks.", float64(len(open)))
		}
	}
	draining := 0.0
	if s.service.Draining() {
		draining = 1
	}
	b.Gauge("roost_draining", "1 while no new runs are started.", draining)
	b.Gauge("roost_stream_followers", "Event streams that are open.", float64(s.streams.open()))
	s.counted.Write(&b)
	if s.opt.Watch != nil {
		s.opt.Watch.Write(&b)
	}
	b.Process()
	send(w, a.Request, http.StatusOK, metrics.Media, []byte(b.String()))
	return nil
}
