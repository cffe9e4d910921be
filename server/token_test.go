package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
)

// Folders are for their owner, and so is the token; servers that start at once share
// one, and it stays.
func TestRuleB26TheTokenIsPrivate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	var wait sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		wait.Go(func() {
			token, err := Token(root, false)
			if err != nil {
				t.Error(err)
			}
			got[i] = token
		})
	}
	wait.Wait()
	for _, token := range got {
		if token != got[0] || len(token) != 64 {
			t.Fatalf("%q and %q", got[0], token)
		}
	}
	for path, want := range map[string]os.FileMode{TokenFile(root): 0o600, filepath.Dir(TokenFile(root)): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s: got %v %v, want no error and (runtime.GOOS = \"windows\" or info.Mode() = %v)",
				path, info.Mode(), err, want)
		}
	}
	if left := fixture.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(TokenFile(root)))); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
	if fresh := fixture.Must[string](t)(Token(root, true)); fresh == got[0] || fresh != fixture.Must[string](t)(Token(root, false)) {
		t.Error("a new token")
	}
}

// A token that lay open is none, and neither is what is no token.
func TestTokensThatAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"others may read it": func(file string) error { return os.Chmod(file, 0o644) },
		"empty":              func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"too short":          func(file string) error { return os.WriteFile(file, []byte("abcd"), 0o600) },
		"no hex":             func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("x", 64)), 0o600) },
		"a link": func(file string) error {
			if err := os.Rename(file, file+"2"); err != nil {
				return err
			}
			return os.Symlink(file+"2", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("modes and links are not told there")
			}
			root := t.TempDir()
			fixture.Must[string](t)(Token(root, false))
			if err := spoil(TokenFile(root)); err != nil {
				t.Fatal(err)
			}
			if token, err := Token(root, false); err == nil || !strings.Contains(err.Error(), "--new-token") {
				t.Errorf("got %q, %v, want an error and strings.Contains(err.Error(), \"--new-token\")", token, err)
			}
			fixture.Must[string](t)(Token(root, true))
			fixture.Must[string](t)(Token(root, false))
		})
	}
}

// The link logs in once: looking ahead does not use it up, and using it twice does
// nothing. The log-in holds over a restart, ends after its days and with the token.
func TestLogIn(t *testing.T) {
	now := time.Now()
	g := newBench(t, func(o *testOptions) { o.Now = func() time.Time { return now } })
	link := fixture.Must[string](t)(g.srv.LoginPath(context.Background()))
	g.refused(401, "login_used", "GET", "/login", "Authorization: ")
	g.refused(401, "login_used", "GET", "/login?key="+strings.Repeat("0", 64), "Authorization: ")
	if resp := g.ask("HEAD", link, "Authorization: "); len(resp.Cookies()) != 0 {
		t.Error("a look ahead logs in")
	}
	resp := g.ask("GET", link, "Authorization: ")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" || len(resp.Cookies()) != 1 {
		t.Fatal(resp.Status, resp.Header)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Errorf("got %+v, want c.HttpOnly and c.SameSite = http.SameSiteStrictMode and c.Path = \"/\" and not c.Secure",
			c)
	}
	g.refused(401, "login_used", "GET", link, "Authorization: ")
	cookie := "Cookie: other=1; " + c.Name + "=" + c.Value
	g.get("/v1/tasks", "Authorization: ", cookie)
	g.refused(401, "unauthenticated", "GET", "/v1/tasks", cookie, "Authorization: Bearer wrong") // what is said counts
	again := func(token string, later time.Duration) bool {
		srv := fixture.Must[*Server](t)(New(Options{Service: service.New(g.store, nil, service.Options{}), Token: token, Now: func() time.Time { return now.Add(later) }}))
		defer srv.End()
		r := fixture.Must[*http.Request](t)(http.NewRequest("GET", "/", nil))
		r.AddCookie(c)
		ok, by := srv.knows(r)
		return ok && by
	}
	if !again(g.token, 0) || !again(g.token, 29*24*time.Hour) || again(g.token, 31*24*time.Hour) || again(strings.Repeat("0", 64), 0) {
		t.Error("when a log-in holds")
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a token")
	}
}

// placed is a root that remembers which token was made in its place.
type placed struct{ root, made string }

func (p *placed) Root() string                 { return p.root }
func (p *placed) MadeToken(token string) bool  { return token == p.made }
func (p *placed) NoteToken(token string) error { p.made = token; return nil }

// A server's token stays, but not one that came along with a copied root, or that a crash left
// empty: then there is a new one, and the server says so.
func TestAServersTokenBelongsToItsPlace(t *testing.T) {
	place := &placed{root: t.TempDir()}
	own := func() (string, string) {
		t.Helper()
		token, notice, err := OwnToken(place, false)
		if err != nil {
			t.Fatal(err)
		}
		if place.made != token {
			t.Error("the token was not noted")
		}
		return token, notice
	}
	first, notice := own()
	if again, more := own(); again != first || notice+more != "" {
		t.Errorf("the token does not stay, or %q", notice+more)
	}
	place.made = "" // as in a copy
	copied, notice := own()
	if copied == first || notice == "" {
		t.Errorf("a copy has the token of the original, and says %q", notice)
	}
	if err := os.WriteFile(TokenFile(place.root), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh, notice := own(); fresh == copied || notice == "" {
		t.Errorf("an empty token is %q, and it says %q", fresh, notice)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(TokenFile(place.root), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := OwnToken(place, false); err == nil {
			t.Error("a token that others may read was taken")
		}
	}
}
