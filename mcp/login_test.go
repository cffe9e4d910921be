package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// oauth is a server that wants a log-in, its definition, and a folder for its tokens.
func oauth(t *testing.T) (*mcptest.OAuth, Server, Logins) {
	t.Helper()
	server := mcptest.New("")
	o := mcptest.NewOAuth(server)
	t.Cleanup(func() { mcptest.Hangup(server); o.Close() }) // sessions of expired tokens are still open
	s := Server{Name: "web", Scope: Own, File: "/own/mcp.json", Kind: HTTP, URL: o.URL + "/mcp", State: Allowed, Timeout: 30 * time.Second}
	return o, s, Logins{Dir: filepath.Join(t.TempDir(), "logins")}
}

// browse opens a page as a browser does, redirects included.
func browse(_ context.Context, p LoginPage) error {
	client := newAuthClient()
	client.CheckRedirect = nil
	res, err := client.Get(p.URL) //nolint:noctx // a test's own server
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

func logIn(t *testing.T, l Logins, s Server) error {
	t.Helper()
	return l.Login(t.Context(), s, t.TempDir(), environ, browse)
}

// connected is a hub with the log-ins of a folder.
func connected(t *testing.T, l Logins, s Server) *Hub {
	t.Helper()
	h := hub(t, s)
	h.opt.Logins = l
	return h
}

func TestLoginAndCall(t *testing.T) {
	o, s, l := oauth(t)
	if failed := failing(t, connected(t, l, s), "web", "echo", `{}`); !strings.Contains(failed.Reason, "roost mcp login web") || failed.Unknown {
		t.Errorf("without a log-in: got %+v, want the command, and that nothing took effect", failed)
	}
	fixture.NoError(t, logIn(t, l, s))
	got := call(t, connected(t, l, s), "web", "echo", `{"text":"hello"}`)
	holds(t, got.Text, "echo: hello")
	o.With(func() {
		if len(o.Refused) > 0 {
			t.Errorf("got refusals %q, want none", o.Refused)
		}
	})
	files, err := os.ReadDir(l.Dir)
	fixture.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		fixture.NoError(t, err)
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", f.Name(), info.Mode())
		}
	}
}

// A token that has expired, by the clock or for the server alone, is renewed, and the next process has the new one.
func TestLoginIsRenewed(t *testing.T) {
	for name, seconds := range map[string]int{"by the clock": 1, "for the server": 0} {
		t.Run(name, func(t *testing.T) {
			o, s, l := oauth(t)
			o.Expires = seconds
			fixture.NoError(t, logIn(t, l, s))
			o.Expire(false)
			h := connected(t, l, s)
			holds(t, call(t, h, "web", "echo", `{"text":"again"}`).Text, "echo: again")
			o.With(func() { o.Expires = 3600 })
			o.Expire(false)
			holds(t, call(t, h, "web", "echo", `{"text":"in a session"}`).Text, "in a session")
			was := o.Renewed
			holds(t, call(t, connected(t, l, s), "web", "echo", `{"text":"later"}`).Text, "later")
			if o.Renewed != was || was == 0 || len(o.Refused) > 0 {
				t.Errorf("got %d renewals after %d, refused %q, want no more and no refusal", o.Renewed, was, o.Refused)
			}
			o.Expire(true)
			if failed := failing(t, connected(t, l, s), "web", "echo", `{}`); !strings.Contains(failed.Reason, "roost mcp login web") {
				t.Errorf("a log-in that ended: got %q, want the command", failed.Reason)
			}
		})
	}
}

func TestLoginRefuses(t *testing.T) {
	o, s, l := oauth(t)
	own := s
	own.Headers = map[string]string{"authorization": "Bearer x"}
	theirs := s
	theirs.Scope, theirs.State = Workspace, NotAllowed
	clear, local := s, stdio(t, "local", "")
	clear.URL = "http://example.invalid/mcp"
	greeted := mcptest.New("")
	open := httptest.NewServer(mcptest.Handler(greeted))
	t.Cleanup(func() { mcptest.Hangup(greeted); open.Close() })
	free := s
	free.URL = open.URL
	for want, server := range map[string]Server{
		"has an Authorization header": own, "is not allowed": theirs, "neither https": clear, "program on this machine": local,
		ErrNoLogin.Error(): free,
	} {
		err := l.Login(t.Context(), server, t.TempDir(), environ, func(context.Context, LoginPage) error {
			t.Errorf("%s: a page was shown, want none", want)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	o.Deny = true
	if err := logIn(t, l, s); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("a person who says no: got %v, want access_denied", err)
	}
	o.With(func() { o.Deny, o.Issuer = false, "https://evil.example" })
	if err := logIn(t, l, s); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("another issuer: got %v, want an error about another server", err)
	}
	if l.Has(s) {
		t.Error("tokens are kept, want none")
	}
}

// Only the answer with the log-in's own state counts; another one, which any page can send to the port, changes nothing.
func TestLoginChecksTheState(t *testing.T) {
	_, s, l := oauth(t)
	err := l.Login(t.Context(), s, t.TempDir(), environ, func(ctx context.Context, p LoginPage) error {
		page, err := url.Parse(p.URL)
		if err != nil {
			return err
		}
		back := page.Query().Get("redirect_uri")
		for _, q := range []string{"?code=stolen", "?code=stolen&state=guess", "?error=access_denied&state="} {
			res, err := newAuthClient().Get(back + q) //nolint:noctx // a test's own server
			if err != nil {
				return err
			}
			res.Body.Close()
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: got %s, want 400", q, res.Status)
			}
		}
		return browse(ctx, p)
	})
	fixture.NoError(t, err)
}

// The server that gives tokens refuses a code with another verifier or redirect: what PKCE is for.
func TestStolenCodeIsWorthNothing(t *testing.T) {
	o, s, _ := oauth(t)
	plan, err := discover(t.Context(), s, t.TempDir(), environ)
	fixture.NoError(t, err)
	plan.redirect = "http://127.0.0.1:1/callback"
	fixture.NoError(t, plan.register(t.Context()))
	for name, form := range map[string]url.Values{
		"wrong verifier":   {"redirect_uri": {plan.redirect}, "code_verifier": {"guess"}},
		"another redirect": {"redirect_uri": {"http://127.0.0.1:2/callback"}, "code_verifier": {"right"}},
	} {
		res, err := newAuthClient().Get(plan.page("state", "right")) //nolint:noctx // a test's own server
		fixture.NoError(t, err)
		res.Body.Close()
		to, err := res.Location()
		fixture.NoError(t, err)
		form.Set("grant_type", "authorization_code")
		form.Set("code", to.Query().Get("code"))
		k := kept{Endpoint: plan.server.TokenEndpoint, Client: plan.client, Resource: plan.audience}
		if err := k.ask(t.Context(), newAuthClient(), form); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), name) || k.Access != "" {
			t.Errorf("got %v, token %q, want a refusal with %q", err, k.Access, name)
		}
	}
	if len(o.Refused) != 2 {
		t.Errorf("got %q, want 2 refusals", o.Refused)
	}
}

// Tokens go to the server that they were made for: not to another definition or address, and not along a redirect.
func TestTokensStayWithTheirServer(t *testing.T) {
	o, s, l := oauth(t)
	fixture.NoError(t, logIn(t, l, s))
	other, seen := s, make(chan string, 100)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(evil.Close)
	other.URL = evil.URL + "/mcp"
	failing(t, connected(t, l, other), "web", "echo", `{}`)
	named := s
	named.File = "/repository/.roo/mcp.json"
	failing(t, connected(t, l, named), "web", "echo", `{}`)
	away := httptest.NewServer(http.RedirectHandler(evil.URL+"/mcp", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	moved := s
	moved.URL = away.URL + "/mcp"
	k, err := l.load(s, s.URL)
	fixture.NoError(t, err)
	k.Server = moved.URL
	fixture.NoError(t, l.save(moved, k))
	failing(t, connected(t, l, moved), "web", "echo", `{}`)
	close(seen)
	for header := range seen {
		if header != "" {
			t.Error("another server got a token")
		}
	}
	o.With(func() {
		for _, header := range o.Seen[1:] {
			if header != "" {
				t.Error("a definition of another file used the token")
			}
		}
	})
}

// A server that repeats a token in an answer does not bring it into a history.
func TestTokensAreMaskedInAnswers(t *testing.T) {
	_, s, l := oauth(t)
	fixture.NoError(t, logIn(t, l, s))
	k, err := l.load(s, s.URL)
	fixture.NoError(t, err)
	got := call(t, connected(t, l, s), "web", "echo", `{"text":"`+k.Access+`"}`)
	if strings.Contains(got.Text, k.Access) || !strings.Contains(got.Text, "[REDACTED:mcp-token]") {
		t.Errorf("got %q, want a mask", got.Text)
	}
}

func TestForgetALogin(t *testing.T) {
	_, s, l := oauth(t)
	if err := l.Forget(t.Context(), s); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	fixture.NoError(t, logIn(t, l, s))
	if runtime.GOOS != "windows" {
		fixture.NoError(t, os.Chmod(l.path(s), 0o644))
		if failed := failing(t, connected(t, l, s), "web", "echo", `{}`); !strings.Contains(failed.Reason, "chmod 600") {
			t.Errorf("a file that others may read: got %q, want chmod 600", failed.Reason)
		}
	}
	fixture.NoError(t, l.Forget(t.Context(), s))
	if l.Has(s) {
		t.Error("tokens are kept, want none")
	}
}

// A server elsewhere cannot lead a log-in to programs of this machine, nor a token over a connection that others read.
func TestSecureAddresses(t *testing.T) {
	for _, c := range []struct {
		to, server string
		want       bool
	}{
		{"https://login.example/token", "https://mcp.example/mcp", true},
		{"https://login.example/token", "http://127.0.0.1:8080/mcp", true},
		{"http://127.0.0.1:9/token", "http://localhost:8080/mcp", true},
		{"http://[::1]:9/token", "http://127.0.0.1:8080/mcp", true},
		{"http://127.0.0.1:9/token", "https://mcp.example/mcp", false},
		{"http://login.example/token", "https://mcp.example/mcp", false},
		{"http://login.example/token", "http://127.0.0.1:8080/mcp", false},
		{"http://127.0.0.1.evil.example/token", "http://127.0.0.1:8080/mcp", false},
		{"https://name:password@login.example/", "https://mcp.example/mcp", false},
		{"file:///etc/passwd", "https://mcp.example/mcp", false},
		{"javascript:alert(1)", "https://mcp.example/mcp", false},
	} {
		to, err := url.Parse(c.to)
		fixture.NoError(t, err)
		server, err := url.Parse(c.server)
		fixture.NoError(t, err)
		if got := secure(to, server); got != c.want {
			t.Errorf("%s for %s: got %v, want %v", c.to, c.server, got, c.want)
		}
	}
}

// While a process renews a log-in, another one neither deletes nor replaces it: the renewal would undo that.
func TestALoginChangesAfterItsRenewal(t *testing.T) {
	arrived, answers := make(chan struct{}), make(chan struct{})
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-answers
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"renewed","token_type":"Bearer"}`)
	}))
	t.Cleanup(issuer.Close)
	s := Server{Name: "web", File: "/own/mcp.json", URL: "http://mcp.example/mcp"}
	l := Logins{Dir: filepath.Join(t.TempDir(), "logins")}
	old := kept{Server: s.URL, Endpoint: issuer.URL, Client: "c", Access: "old", Refresh: "r", Expires: time.Now().Add(-time.Hour)}
	fixture.NoError(t, l.keep(t.Context(), s, old))
	renewed := make(chan error, 1)
	go func() {
		token, err := (&login{from: l, server: s, address: s.URL}).token(t.Context(), "")
		if token != "renewed" && err == nil {
			err = fmt.Errorf("got the token %q, want the renewed one", token)
		}
		renewed <- err
	}()
	<-arrived
	stopped, stop := context.WithCancel(t.Context())
	stop()
	fresh := old
	fresh.Access, fresh.Expires = "fresh", time.Now().Add(time.Hour)
	for what, change := range map[string]func(context.Context) error{
		"delete":  func(ctx context.Context) error { return l.Forget(ctx, s) },
		"replace": func(ctx context.Context) error { return l.keep(ctx, s, fresh) },
	} {
		if err := change(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that it waits for the renewal until its context ends", what, err)
		}
	}
	close(answers)
	fixture.NoError(t, <-renewed)
	fixture.NoError(t, l.keep(t.Context(), s, fresh))
	if k, err := l.load(s, s.URL); k.Access != "fresh" || err != nil {
		t.Errorf("got the token %q, %v, want that of the newest log-in", k.Access, err)
	}
	fixture.NoError(t, l.Forget(t.Context(), s))
	if l.Has(s) {
		t.Error("tokens are kept, want none")
	}
}

// A call that is cancelled while its log-in is renewed does not lose the new tokens: the server takes the old refresh
// token no more.
func TestARenewalOutlivesItsCall(t *testing.T) {
	for name, late := range map[string]bool{"soon": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, answers := make(chan struct{}), make(chan struct{})
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm() // with the body unread, the server would not notice the client's end
				close(arrived)
				<-answers
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token":"renewed","token_type":"Bearer","refresh_token":"second"}`)
			}))
			t.Cleanup(issuer.Close)
			s := Server{Name: "web", File: "/own/mcp.json", URL: "http://mcp.example/mcp"}
			l := Logins{Dir: filepath.Join(t.TempDir(), "logins")}
			fixture.NoError(t, l.keep(t.Context(), s, kept{Server: s.URL, Endpoint: issuer.URL, Client: "c", Access: "old",
				Refresh: "first", Expires: time.Now().Add(-time.Hour)}))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := (&login{from: l, server: s, address: s.URL}).token(ctx, "")
				ended <- err
			}()
			<-arrived
			cancel()
			if !late {
				close(answers)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if late {
				close(answers)
			}
			unlock, err := l.lock(t.Context())
			fixture.NoError(t, err)
			defer unlock()
			if k, err := l.load(s, s.URL); k.Access != "renewed" || k.Refresh != "second" || err != nil {
				t.Errorf("got the tokens %q and %q, %v, want the renewed ones", k.Access, k.Refresh, err)
			}
		})
	}
}
