package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/inputfile"
)

var (
	errRefused = errors.New("the server refuses")
	errLogin   = errors.New("it wants a log-in")
)

// Bounds of a request to a server that gives tokens.
const (
	stepTime  = 30 * time.Second
	maxAnswer = 1 << 20 // bytes
)

// Logins is a folder with the tokens of log-ins to servers, one file each, for its owner alone. Tokens belong to one
// definition (file, name and address): a definition in another file, or with another address, does not get them.
type Logins struct {
	Dir string // "" = no log-ins
}

// kept is one log-in, as stored in its file.
type kept struct {
	File     string    `json:"file"` // of the definition
	Name     string    `json:"name"`
	Server   string    `json:"server"` // the address that the tokens are for
	Resource string    `json:"resource"`
	Endpoint string    `json:"token_endpoint"`
	Client   string    `json:"client_id"`
	Secret   string    `json:"client_secret,omitempty"`
	Basic    bool      `json:"basic,omitempty"`
	Access   string    `json:"access_token"`
	Refresh  string    `json:"refresh_token,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
}

func (l Logins) path(s Server) string { return s.fileIn(l.Dir) }

// Has reports whether there are tokens for a server, whatever its present address.
func (l Logins) Has(s Server) bool {
	_, err := os.Lstat(l.path(s))
	return l.Dir != "" && err == nil
}

// Forget deletes the tokens of a server; the error is fs.ErrNotExist when there are none. It waits for the end of a
// renewal, which would store tokens again.
func (l Logins) Forget(ctx context.Context, s Server) error {
	if !l.Has(s) {
		return fs.ErrNotExist
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return fmt.Errorf("delete the log-in to the MCP server %s: %w", s.Name, err)
	}
	defer unlock()
	return os.Remove(l.path(s))
}

// load reads the tokens for a server at an address. It refuses a file that others may open.
func (l Logins) load(s Server, address string) (k kept, err error) {
	if l.Dir == "" {
		return k, fs.ErrNotExist
	}
	path := l.path(s)
	info, err := os.Lstat(path)
	if err != nil {
		return k, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return k, fmt.Errorf("others than you may open %s (mode %04o), so its tokens are not used: chmod 600 it", path, mode)
	}
	data, err := inputfile.Read(path)
	if err != nil {
		return k, err
	}
	if json.Unmarshal(data, &k) != nil { // not quoted: it holds tokens
		return k, fmt.Errorf("%s cannot be read", path)
	}
	if k.File != s.File || k.Name != s.Name || k.Server != address {
		return k, fs.ErrNotExist
	}
	return k, nil
}

// keep is save for a new log-in. It waits for the end of a renewal of the old one, which would replace the new
// tokens.
func (l Logins) keep(ctx context.Context, s Server, k kept) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return fmt.Errorf("keep the log-in to the MCP server %s: %w", s.Name, err)
	}
	defer unlock()
	return l.save(s, k)
}

// save writes the tokens of a server. The caller holds the lock.
func (l Logins) save(s Server, k kept) error {
	k.File, k.Name = s.File, s.Name
	data, err := json.MarshalIndent(k, "", "  ") //nolint:gosec // the file is for its owner alone
	if err == nil {
		err = atomicfile.Write(l.path(s), append(data, '\n'))
	}
	return api.Failed(err, "keep the log-in to the MCP server %s", s.Name)
}

// login supplies the token for the requests of one connection.
type login struct {
	from    Logins
	server  Server
	address string

	mu   sync.Mutex
	seen map[string]bool // tokens that were used; hide masks them
}

// early is the time before its expiry at which a token is renewed.
const early = time.Minute

// token returns a token for the server, "" when there is no log-in. It renews a token that has expired, or that the
// server has refused: stale is the refused one.
func (l *login) token(ctx context.Context, stale string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	usable := func(k kept) bool {
		return k.Access != stale && (k.Expires.IsZero() || time.Until(k.Expires) > early)
	}
	k, err := l.from.load(l.server, l.address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case usable(k):
		return l.note(k), nil
	}
	renewed := make(chan error, 1)
	go func() { renewed <- l.renew(ctx, &k, usable) }()
	select {
	case err = <-renewed:
	case <-ctx.Done():
		_, _ = waitWithin(renewed, exitWait) // this process may be about to end
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	return l.note(k), nil
}

const waitSteps = 20 // steps of waitWithin

// waitWithin waits until done is closed or has a value, or until the limit has passed in steps in which this process
// ran. On a busy machine the process may be suspended for longer than the limit; a single timer would then expire
// although done is about to be closed.
func waitWithin[T any](done <-chan T, limit time.Duration) (got T, ok bool) {
	for range waitSteps {
		select {
		case got = <-done:
			return got, true
		case <-time.After(limit / waitSteps):
		}
	}
	return got, false
}

// renew renews the log-in k, unless another process has done so: usable reports that. The end of ctx does not stop a
// request for tokens, because its answer has the only refresh token that the server still takes.
func (l *login) renew(ctx context.Context, k *kept, usable func(kept) bool) error {
	unlock, err := l.from.lock(ctx)
	if err != nil {
		return fmt.Errorf("renew the log-in: %w", err)
	}
	defer unlock()
	if *k, err = l.from.load(l.server, l.address); err == nil && usable(*k) {
		return nil
	}
	if err != nil || k.Refresh == "" {
		return fmt.Errorf("%w: the last one has expired", errLogin)
	}
	err = k.ask(context.WithoutCancel(ctx), newAuthClient(), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}})
	switch {
	case errors.Is(err, errRefused):
		return fmt.Errorf("%w: the last one cannot be renewed: %w", errLogin, err)
	case err != nil:
		return fmt.Errorf("renew the log-in: %w", err)
	}
	return l.from.save(l.server, *k)
}

// lock keeps two processes from changing tokens at once: most servers accept a refresh token only once. A holder
// needs at most stepTime.
func (l Logins) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*stepTime)
	defer cancel()
	release, err := filelock.Hold(ctx, filepath.Join(l.Dir, "lock"), 20*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return func() { _ = release() }, nil // nothing was written to it
}

// note records a token for hide.
func (l *login) note(k kept) string {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[k.Access], l.seen[k.Refresh] = true, true
	return k.Access
}

// hide masks the tokens of the log-in in a server's text.
func (l *login) hide(text string) string {
	if l == nil {
		return text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for token := range l.seen {
		if len(token) >= 8 {
			text = strings.ReplaceAll(text, token, "[REDACTED:mcp-token]")
		}
	}
	return text
}

// newAuthClient returns a client that follows no redirect: a token or a code must not go to an unchecked address.
func newAuthClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:errorlint,forcetypeassert // the library documents this type
	t.DisableKeepAlives = true
	return &http.Client{Transport: t, Timeout: stepTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tokenAnswer is the answer of a token endpoint.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Refresh string `json:"refresh_token"`
	Expires any    `json:"expires_in"` // seconds; some servers write it as a text
	Error   string `json:"error"`
	About   string `json:"error_description"`
}

// ask requests tokens for a grant, and stores them in k. A refusal is errRefused.
func (k *kept) ask(ctx context.Context, client *http.Client, form url.Values) error {
	form.Set("client_id", k.Client)
	form.Set("resource", k.Resource)
	if k.Secret != "" && !k.Basic {
		form.Set("client_secret", k.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.Endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the address for tokens is no http address")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if k.Basic {
		r.SetBasicAuth(url.QueryEscape(k.Client), url.QueryEscape(k.Secret))
	}
	res, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	var got tokenAnswer
	wrong := json.Unmarshal(data, &got) // not quoted: it may hold a token
	switch {
	case res.StatusCode >= 400 && res.StatusCode < 500:
		why := cmp.Or(strings.TrimSpace(got.Error+" "+got.About), res.Status)
		return fmt.Errorf("%w: %s", errRefused, shown(why, 300))
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("ask for a token: the server answered %s", res.Status)
	case wrong != nil || got.Access == "" || !strings.EqualFold(got.Type, "Bearer"):
		return errors.New("ask for a token: the server's answer holds no bearer token")
	}
	k.Access, k.Refresh, k.Expires = got.Access, cmp.Or(got.Refresh, k.Refresh), time.Time{}
	var seconds float64
	if _, err := fmt.Sscan(fmt.Sprint(got.Expires), &seconds); err == nil && seconds > 0 {
		k.Expires = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	}
	return nil
}
