package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/roost-dev/roost/api"
)

// LoginTime is the time that a person has for the log-in in the browser.
const LoginTime = 10 * time.Minute

// ErrNoLogin means that a server answers without a log-in.
var ErrNoLogin = errors.New("the server wants no log-in")

// LoginPage is the page that a person must open.
type LoginPage struct {
	Server string // the address of the MCP server, safe to show
	Issuer string // the server that asks for the log-in
	URL    string // the page
	Scopes []string
}

// Login logs a person in to a server by OAuth: the authorization code grant with PKCE (S256), with metadata that the
// server and its authorization server publish, and with a client that is registered for this log-in. show presents
// the page to the person; the browser returns to a port of 127.0.0.1 that is open only during the log-in and accepts
// only the state of this log-in. Login stores the tokens in l. It refuses a server that is not allowed, and any
// address but https, or http on loopback.
func (l Logins) Login(ctx context.Context, s Server, workspace string, env func(string) string,
	show func(context.Context, LoginPage) error,
) error {
	plan, err := discover(ctx, s, workspace, env)
	if err != nil {
		return err
	}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("wait for the browser: %w", err)
	}
	plan.redirect = "http://" + back.Addr().String() + "/callback"
	if err := plan.register(ctx); err != nil {
		return errors.Join(err, back.Close())
	}
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	answers := make(chan callback, 1)
	web := &http.Server{ReadHeaderTimeout: stepTime, Handler: plan.callbackHandler(state, answers)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(back) // http.ErrServerClosed
	}()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if web.Shutdown(ctx) != nil { // the browser keeps its connection
			_ = web.Close()
		}
		<-served
	}()
	if err := show(ctx, LoginPage{Address(plan.resource), plan.server.Issuer, plan.page(state, verifier), plan.scopes}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, LoginTime, fmt.Errorf("the browser did not come back in %s", LoginTime))
	defer cancel()
	var got callback
	select {
	case got = <-answers:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if got.err != nil {
		return got.err
	}
	k := kept{
		Server: plan.resource, Endpoint: plan.server.TokenEndpoint, Client: plan.client, Secret: plan.secret,
		Basic: plan.basic, Resource: plan.audience,
	}
	if err := k.ask(ctx, newAuthClient(), url.Values{
		"grant_type": {"authorization_code"}, "code": {got.code}, "redirect_uri": {plan.redirect}, "code_verifier": {verifier},
	}); err != nil {
		return err
	}
	return l.keep(ctx, s, k)
}

// loginPlan holds what discover and register find out for a log-in.
type loginPlan struct {
	resource string // the server's address
	audience string // the name of the resource that a token is for, from the server's metadata
	server   *oauthex.AuthServerMeta
	scopes   []string
	redirect string

	client, secret string
	basic          bool // send the secret in a header
}

// discover finds the authorization server for an MCP server, and what it supports.
func discover(ctx context.Context, s Server, workspace string, env func(string) string) (*loginPlan, error) {
	full, err := s.expanded(workspace, env)
	switch {
	case err != nil:
		return nil, err
	case s.State != Allowed:
		return nil, fmt.Errorf("the server is %s", s.State)
	case s.Kind == Stdio:
		return nil, errors.New("it is a program on this machine; only servers on the web have a log-in")
	case full.authorized():
		return nil, errors.New("its definition has an Authorization header, which is used instead of a log-in")
	}
	at, err := url.Parse(full.URL)
	if err != nil || !secure(at, at) {
		return nil, errors.New("its address is neither https nor on this machine: a token would go over the network in the clear")
	}
	challenges, err := challenge(ctx, full)
	if err != nil {
		return nil, err
	}
	p := &loginPlan{resource: full.URL, audience: full.URL}
	issuer := origin(at)
	meta := metadata(ctx, at, challenges)
	if meta != nil {
		if len(meta.AuthorizationServers) == 0 {
			return nil, errors.New("its metadata names no log-in server")
		}
		issuer, p.audience, p.scopes = meta.AuthorizationServers[0], meta.Resource, meta.ScopesSupported
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["scope"] != "" {
			p.scopes = strings.Fields(c.Params["scope"])
		}
	}
	if u, err := url.Parse(issuer); err != nil || !secure(u, at) {
		return nil, errors.New("it names a log-in server whose address is not https")
	}
	if p.server, err = auth.GetAuthServerMetadata(ctx, issuer, newAuthClient()); err != nil {
		return nil, fmt.Errorf("ask %s how to log in: %s", issuer, shown(err.Error(), 300))
	}
	if p.server == nil {
		return nil, fmt.Errorf("%s publishes no OAuth metadata", issuer)
	}
	if !slices.Contains(p.server.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("%s does not support PKCE with S256", issuer)
	}
	ends := []string{p.server.AuthorizationEndpoint, p.server.TokenEndpoint}
	if p.server.RegistrationEndpoint != "" {
		ends = append(ends, p.server.RegistrationEndpoint)
	}
	for _, end := range ends {
		if u, err := url.Parse(end); err != nil || !secure(u, at) {
			return nil, fmt.Errorf("%s names an address that is not https", issuer)
		}
	}
	return p, nil
}

// secure reports whether nobody can read what is sent to an address: it is https, or http on this machine for a
// server on this machine. A server elsewhere must not direct requests to programs of this machine.
func secure(u, server *url.URL) bool {
	here := func(u *url.URL) bool {
		ip := net.ParseIP(u.Hostname())
		return u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
	}
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || here(u) && here(server))
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// challenge sends a request without a token, and returns the server's reasons to refuse it.
func challenge(ctx context.Context, s Server) ([]oauthex.Challenge, error) {
	const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocol +
		`","capabilities":{},"clientInfo":{"name":"roost","version":"0"}}}`
	method, body := http.MethodPost, io.Reader(strings.NewReader(greeting))
	if s.Kind == SSE {
		method, body = http.MethodGet, nil
	}
	r, err := http.NewRequestWithContext(ctx, method, s.URL, body)
	if err != nil {
		return nil, errors.New("its url is no http or https address")
	}
	for name, value := range s.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := newAuthClient().Do(r)
	if err != nil {
		return nil, fmt.Errorf("it cannot be reached: %s", strings.ReplaceAll(err.Error(), s.URL, Address(s.URL)))
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode < 300:
		return nil, ErrNoLogin
	case res.StatusCode != http.StatusUnauthorized:
		return nil, fmt.Errorf("it answers %s and asks for no log-in", res.Status)
	}
	list, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	return list, api.Failed(err, "its refusal cannot be read")
}

// metadata returns what a server publishes about itself (RFC 9728); nil when it publishes nothing, or only about
// other servers.
func metadata(ctx context.Context, u *url.URL, challenges []oauthex.Challenge) *oauthex.ProtectedResourceMetadata {
	const wellKnown = "/.well-known/oauth-protected-resource"
	places := []string{origin(u) + wellKnown + strings.TrimRight("/"+strings.Trim(u.Path, "/"), "/"), origin(u) + wellKnown}
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append([]string{at}, places...)
		}
	}
	for _, place := range places {
		if at, err := url.Parse(place); err != nil || !secure(at, u) {
			continue
		}
		for _, resource := range []string{u.String(), origin(u), origin(u) + "/"} {
			if meta, err := oauthex.GetProtectedResourceMetadata(ctx, place, resource, newAuthClient()); err == nil {
				return meta
			}
		}
	}
	return nil
}

// register registers a client for this log-in.
func (p *loginPlan) register(ctx context.Context) error {
	if p.server.RegistrationEndpoint == "" {
		return fmt.Errorf("%s registers no clients by itself: put a token into a header of the definition instead", p.server.Issuer)
	}
	got, err := oauthex.RegisterClient(ctx, p.server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{p.redirect}, TokenEndpointAuthMethod: "none", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ClientName: "Roost", Scope: strings.Join(p.scopes, " "),
	}, newAuthClient())
	if err != nil {
		return fmt.Errorf("register with %s: %s", p.server.Issuer, shown(err.Error(), 300))
	}
	p.client, p.secret = got.ClientID, got.ClientSecret
	p.basic = p.secret != "" && cmp.Or(got.TokenEndpointAuthMethod, "client_secret_basic") == "client_secret_basic"
	return nil
}

// page returns the address of the page where the person logs in.
func (p *loginPlan) page(state, verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {p.client}, "redirect_uri": {p.redirect}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"resource": {p.audience},
	}
	if len(p.scopes) > 0 {
		q.Set("scope", strings.Join(p.scopes, " "))
	}
	sep := "?"
	if strings.Contains(p.server.AuthorizationEndpoint, "?") {
		sep = "&"
	}
	return p.server.AuthorizationEndpoint + sep + q.Encode()
}

// callback is the answer that the browser returns: a code or an error.
type callback struct {
	code string
	err  error
}

// callbackHandler accepts the first answer with the right state, and ignores others.
func (p *loginPlan) callbackHandler(state string, answers chan<- callback) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintln(w, "This is not the answer that Roost waits for.")
			return
		}
		got := callback{code: q.Get("code")}
		iss := q.Get("iss")
		switch {
		case q.Get("error") != "":
			got.err = fmt.Errorf("the log-in was refused: %s", shown(strings.TrimSpace(q.Get("error")+" "+q.Get("error_description")), 300))
		case iss != "" && iss != p.server.Issuer, iss == "" && p.server.AuthorizationResponseIssParameterSupported:
			got.err = errors.New("the answer comes from another server than the log-in was started with")
		case got.code == "":
			got.err = errors.New("the answer has no code")
		}
		if got.err != nil {
			fmt.Fprintln(w, "Roost was not logged in. The terminal shows why; you can close this page.")
		} else {
			fmt.Fprintln(w, "Roost got the answer. You can close this page and go back to the terminal.")
		}
		select {
		case answers <- got:
		default: // the first answer counts
		}
	})
}
