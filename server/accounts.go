package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

// Where several people share a store, this file identifies the caller of each request, gives the service a context that
// finds only the caller's tasks, and records the caller's acts in the audit trail. Without accounts it does nothing.

// tokenHeader names the token of the caller in a request that another server of the same user passed on.
const tokenHeader = "Roost-Account-Token"

// identify identifies the caller of a request, and puts the caller into the request's context. byCookie is as in
// knows.
func (s *Server) identify(r *http.Request) (byCookie bool, p *api.Problem) {
	c, byCookie, err := s.caller(r)
	switch {
	case errors.Is(err, accounts.ErrToken):
		return byCookie, unauthenticated()
	case err != nil:
		p := problem(http.StatusServiceUnavailable, "accounts_unreachable", "The caller cannot be identified now",
			"the database of the accounts does not answer").Because(err)
		return byCookie, p.Later("1")
	}
	*r = *r.WithContext(accounts.With(r.Context(), c))
	return byCookie, nil
}

func (s *Server) caller(r *http.Request) (c accounts.Caller, byCookie bool, err error) {
	operator := accounts.Caller{Name: "operator", Operator: true}
	if isPeer(r) || s.fromGroup(r) {
		if id := r.Header.Get(tokenHeader); id != "" {
			c, err = s.opt.Accounts.ByToken(r.Context(), id)
			return c, false, err
		}
		return operator, false, nil
	}
	if r.Header.Get("Authorization") != "" {
		given := bearer(r)
		if devices.Same(given, s.opt.Token) {
			return operator, false, nil
		}
		c, err = s.opt.Accounts.BySecret(r.Context(), given)
		return c, false, err
	}
	id, in, err := s.opt.Devices.Knows(r)
	switch {
	case err != nil:
		return c, false, err
	case !in:
		return c, false, accounts.ErrToken
	case id != "":
		c, err = s.opt.Accounts.ByToken(r.Context(), id)
		return c, true, err
	}
	return operator, true, nil
}

// needs returns the scope that a route needs, and the scope that its caller must have on the tasks it finds.
func (rt route) needs() (scope, tasks accounts.Scope) {
	both := func(s accounts.Scope) (accounts.Scope, accounts.Scope) { return s, s }
	switch rt.on {
	case "GET /v1/devices", "GET /v1/audit", "GET /v1/accounts/{account}/tokens", "GET /metrics":
		return both(accounts.Admin)
	case "POST /v1/server/logins":
		return both(accounts.Read)
	case "POST /v1/tasks/{id}/forks": // the fork is another task
		return accounts.Act, accounts.Read
	case "PUT /v1/tasks/{id}/access", "DELETE /v1/tasks/{id}", "POST /v1/trash/{name}/restore", "DELETE /v1/trash/{name}", "POST /v1/purges":
		return both(accounts.Own)
	}
	if rt.method == http.MethodGet {
		return both(accounts.Read)
	}
	acts := []string{"/v1/tasks", "/v1/runs/", "/v1/questions/", "/v1/draft", chatPath, executePath, "/api/questions/"}
	if slices.ContainsFunc(acts, func(beginning string) bool { return strings.HasPrefix(rt.path, beginning) }) {
		return both(accounts.Act)
	}
	return both(accounts.Admin) // also routes that are missing above
}

// answer answers a request of a route within the rights of its caller.
func (s *Server) answer(rt *route, w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := badName(rt, r); p != nil { // the audit trail could not store it
		return p
	}
	c, ok := accounts.Of(r.Context())
	if !ok {
		return s.answerAny(rt, w, r)
	}
	scope, tasks := rt.needs()
	denied := c.Denied(scope)
	noted := (rt.method != http.MethodGet || strings.HasSuffix(rt.path, "/export")) && !s.passedOn(r) // in the audit trail
	if !noted && denied == nil {
		return s.answerAny(rt, w, r.WithContext(service.As(r.Context(), c, tasks)))
	}
	task := cmp.Or(strings.TrimPrefix(r.PathValue("id"), api.OwnSource+":"), service.TaskOfQuestion(r.PathValue("qid")))
	named := &asked{Request: r.WithContext(service.As(r.Context(), c, accounts.Read)), id: r.PathValue("id"), route: rt}
	if t, found := s.subject(named); found { // the path may have a part of the id, or a run
		task = t.ID()
	}
	entry, err := s.opt.Accounts.Note(r.Context(), api.AuditEntry{
		Account: c.Account, Token: c.Token, Act: rt.on, Task: task, Address: addressOf(r), Request: idOf(r),
	})
	if err != nil { // an act that the trail lacks must not happen
		return problem(http.StatusServiceUnavailable, "audit_unwritable", "The request cannot be recorded",
			"the audit trail accepts no entry, so the request was not carried out").Because(err).Later("1")
	}
	status := http.StatusInternalServerError // of a request that panics
	defer func() {
		if err := s.opt.Accounts.Outcome(context.WithoutCancel(r.Context()), entry, status, w.Header().Get("Roost-Task-Id")); err != nil {
			s.opt.Log.Error("the audit trail lacks an outcome", "entry", entry, "status", status, "error", err.Error())
		}
	}()
	p := denied
	if p == nil {
		p = s.answerAny(rt, w, r.WithContext(service.As(r.Context(), c, tasks)))
	}
	status = http.StatusOK
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		status = rec.status
	}
	if p != nil {
		status = p.Status
	}
	return p
}

// ownKey returns the idempotency key that the server uses: the same key of two people becomes two keys, so that
// neither gets the other's answers. A server that passes a request on has replaced the key already.
func (s *Server) ownKey(a *asked, key string) string {
	person := accounts.Person(a.Context())
	if key == "" || person == "" || s.passedOn(a.Request) {
		return key
	}
	return idempotency.Identity(person+"/"+key, nil)
}

// passedOn reports whether another server passed a request on, which has recorded it and replaced its key.
func (s *Server) passedOn(r *http.Request) bool { return (isPeer(r) || s.fromGroup(r)) && hops(r) > 0 }

func accountRoutes() []route {
	return []route{
		{on: "GET /v1/me", answer: api.Me{}, document: (*Server).me},
		{on: "GET /v1/accounts", answer: api.Page[api.Account]{}, document: (*Server).accounts},
		{on: "POST /v1/accounts", body: api.NewAccount{}, answer: api.Account{}, status: http.StatusCreated, bare: true, act: reads((*Server).addAccount)},
		{on: "DELETE /v1/accounts/{account}", bare: true, act: (*Server).removeAccount},
		{on: "PUT /v1/accounts/{account}/members/{member}", bare: true, act: below((*accounts.Accounts).Join, "member")},
		{on: "DELETE /v1/accounts/{account}/members/{member}", bare: true, act: below((*accounts.Accounts).Leave, "member")},
		{on: "GET /v1/accounts/{account}/tokens", answer: api.Page[api.Token]{}, document: (*Server).tokens},
		// PUT, and not POST: the answers to POSTs are kept for repeats, and nothing may keep a secret.
		{on: "PUT /v1/accounts/{account}/tokens/{token}", body: api.NewToken{}, answer: api.IssuedToken{}, bare: true, act: reads((*Server).issueToken)},
		{on: "DELETE /v1/accounts/{account}/tokens/{token}", bare: true, act: below((*accounts.Accounts).Revoke, "token")},
		{on: "GET /v1/audit", answer: api.Page[api.AuditEntry]{}, document: (*Server).auditTrail},
		{on: "PUT /v1/tasks/{id}/access", body: api.Access{}, answer: api.Summary{}, act: reads((*Server).setAccess)},
	}
}

// noAccounts returns the problem of a server without accounts; nil if the server has accounts.
func (s *Server) noAccounts() error {
	if s.opt.Accounts != nil {
		return nil
	}
	return problem(http.StatusNotFound, "no_accounts", "The server has no accounts", "it serves one user",
		"roost serve --store URL  # several people, on a shared store")
}

// accountProblem is the problem of a change of accounts that failed.
func accountProblem(err error) error {
	switch {
	case errors.Is(err, accounts.ErrUnknown):
		return problem(http.StatusNotFound, "no_such_account", "There is no such account or token", err.Error(), "GET /v1/accounts")
	case errors.Is(err, accounts.ErrTaken):
		return problem(http.StatusConflict, "name_taken", "The name is taken", err.Error(), "GET /v1/accounts")
	case errors.Is(err, accounts.ErrInvalid):
		return problem(http.StatusUnprocessableEntity, "invalid_account", "The account or token is invalid", err.Error())
	}
	return err
}

func (s *Server) me(a *asked) (any, error) {
	c, ok := accounts.Of(a.Context())
	if !ok { // the only user
		c = accounts.Caller{Operator: true}
	}
	out := api.Me{Account: c.Account, Name: c.Name, Teams: append([]string{}, c.Teams...), Scopes: []string{}, Operator: c.Operator}
	out.Scopes = append(out.Scopes, api.Some(accounts.Scopes, func(scope accounts.Scope) (string, bool) {
		return string(scope), c.Can(scope)
	})...)
	return out, nil
}

func (s *Server) accounts(a *asked) (any, error) {
	if s.opt.Accounts == nil {
		return pageOf(a, []api.Account{}, nil)
	}
	all, err := s.opt.Accounts.List(a.Context())
	return pageOf(a, all, err)
}

func (s *Server) addAccount(a *asked, n api.NewAccount) (*reply, error) {
	return s.onAccounts(func() (any, error) { return s.opt.Accounts.Add(a.Context(), n) })
}

// onAccounts makes a change of accounts; nil as its document: the answer has no body.
func (s *Server) onAccounts(change func() (any, error)) (*reply, error) {
	if err := s.noAccounts(); err != nil {
		return nil, err
	}
	doc, err := change()
	return &reply{doc: doc}, accountProblem(err)
}

func (s *Server) removeAccount(a *asked) (*reply, error) {
	return s.onAccounts(func() (any, error) { return nil, s.opt.Accounts.Remove(a.Context(), a.PathValue("account")) })
}

// below makes the act of a route that changes what an account has: the member or token that the path names.
func below(change func(*accounts.Accounts, context.Context, string, string) error, place string) acting {
	return func(s *Server, a *asked) (*reply, error) {
		return s.onAccounts(func() (any, error) {
			return nil, change(s.opt.Accounts, a.Context(), a.PathValue("account"), a.PathValue(place))
		})
	}
}

func (s *Server) tokens(a *asked) (any, error) {
	if err := s.noAccounts(); err != nil {
		return nil, err
	}
	all, err := s.opt.Accounts.Tokens(a.Context(), a.PathValue("account"))
	return pageOf(a, all, err)
}

func (s *Server) issueToken(a *asked, n api.NewToken) (*reply, error) {
	return s.onAccounts(func() (any, error) {
		return s.opt.Accounts.Issue(a.Context(), a.PathValue("account"), a.PathValue("token"), n)
	})
}

func (s *Server) auditTrail(a *asked) (any, error) {
	if s.opt.Accounts == nil {
		return pageOf(a, []api.AuditEntry{}, nil)
	}
	before, ok := countIn(a.text["cursor"])
	if !ok {
		return nil, service.BadCursor("list")
	}
	limit := cmp.Or(a.number["limit"], auditMost)
	found, err := s.opt.Accounts.Audit(a.Context(), accounts.AuditFilter{
		Account: a.text["account"], Task: a.text["task"], Before: int64(before), Limit: limit + 1,
	})
	if err != nil {
		return nil, err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = strconv.FormatInt(found[limit-1].ID, 10)
	}
	return api.PageOf(found, next), nil
}

// auditMost bounds a page of the audit trail.
const auditMost = 1000

// setAccess shares a task. The accounts that it names must exist, see accounts.Known.
func (s *Server) setAccess(a *asked, n api.Access) (*reply, error) {
	if err := s.noAccounts(); err != nil {
		return nil, err
	}
	known, err := s.opt.Accounts.Known(a.Context(), n)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, accountProblem(accounts.ErrUnknown)
	}
	doc, err := s.service.SetAccess(a.Context(), a.call(), a.id, n)
	return &reply{doc: doc}, err
}

// shows decides which events of a stream its caller may see. The right to see a task can change while the stream is open;
// then an event of the task makes shows decide again.
func (s *Server) shows(ctx context.Context) func(taskID, kind string) (bool, error) {
	known := map[string]bool{}
	return func(taskID, kind string) (may bool, err error) {
		may, ok := known[taskID]
		if ok && kind != "task.changed" && kind != "task.created" {
			return may, nil
		}
		if may, err = s.service.Shows(ctx, taskID); err == nil {
			if len(known) > mostKnown {
				clear(known)
			}
			known[taskID] = may
		}
		return may, err
	}
}

// mostKnown bounds the tasks that a stream remembers.
const mostKnown = 10000
