package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/report"
)

const requestID = "X-Request-Id"

// guard checks every request before a route gets it, the cheapest checks first: it looks up nothing for a client
// without the token.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	begun := s.opt.Now()
	rec := &recorder{ResponseWriter: w}
	h := rec.Header()
	h.Set(requestID, idOf(r))
	r.Header.Set(requestID, h.Get(requestID)) // the same id in every log line
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// The deadline for a client that does not read its answer. Streams set one for each write.
	ctl := http.NewResponseController(w)
	_ = ctl.SetWriteDeadline(time.Now().Add(3 * s.opt.WriteTimeout))
	if r.ContentLength != 0 {
		// The library reads the rest of a body before it uses the connection again, and would wait for it forever.
		h.Set("Connection", "close")
		_ = ctl.SetReadDeadline(time.Now().Add(s.opt.HeaderTimeout))
	}
	if s.cors(rec, r) {
		// This is a preflight request: the request of the page comes next.
	} else if p := s.refuse(r); p != nil {
		fail(rec, r, p)
	} else {
		s.mux.ServeHTTP(rec, r)
	}
	s.counted.Count(r, h, rec.status, s.opt.Now().Sub(begun))
	level := slog.LevelDebug
	if rec.status >= 500 && r.URL.Path != "/readyz" { // its 503 is an answer, not a failure
		level = slog.LevelWarn
	}
	// Neither query nor headers: both may hold secrets.
	s.opt.Log.Log(r.Context(), level, "request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "bytes", rec.bytes,
		"ms", s.opt.Now().Sub(begun).Milliseconds(), "request_id", h.Get(requestID), "from", addressOf(r))
}

// refuse is the problem of a request that must not reach its route; nil when it may.
func (s *Server) refuse(r *http.Request) *api.Problem {
	if !s.known(r.Host) && !isPeer(r) { // a socket has no name, and browsers do not reach it
		return problem(http.StatusForbidden, "host_denied", "The server is not known by that name",
			"the request names the host "+report.Clip(r.Host), "use the address that roost serve printed", "roost serve --host NAME")
	}
	if !safe(r.Method) && foreign(r) && !s.page(r) {
		return problem(http.StatusForbidden, "origin_denied", "Another site may not ask that",
			"the request comes from the origin "+report.Clip(r.Header.Get("Origin")))
	}
	open := r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/login"
	if !open {
		ok, byCookie := s.door.knows(r)
		switch {
		case !ok:
			return problem(http.StatusUnauthorized, "unauthenticated", "The token is missing or wrong",
				"send it as Authorization: Bearer TOKEN, or open the log-in link", "roost serve prints the path of the token")
		case byCookie && (r.Header.Get("Sec-Fetch-Site") == "cross-site" || s.page(r) && foreign(r)):
			return problem(http.StatusForbidden, "origin_denied", "Another site may not ask that",
				"a browser sent the request for another site")
		}
		shown(r)
	}
	if p := r.URL.Path; p == "" || p[0] != '/' || p != "/" && path.Clean(p) != p && r.RemoteAddr != client.LocalPeer {
		return problem(http.StatusBadRequest, "bad_path", "That path cannot be", "a path has no empty parts, no . and no .. in it")
	}
	if safe(r.Method) && r.ContentLength != 0 {
		return problem(http.StatusRequestEntityTooLarge, "body_too_large", "A body is not taken here",
			"who only asks sends none: leave the body out")
	}
	if r.ContentLength > s.opt.MaxBody {
		return tooLarge(s.opt.MaxBody)
	}
	return nil
}

// known reports whether a request names this server. Otherwise a foreign name that resolves to this address would let a
// browser treat the server as that site.
func (s *Server) known(host string) bool {
	name := hostName(host)
	return name != "" && (s.hosts[name] || s.opt.Cert != nil && s.opt.Cert.VerifyHostname(name) == nil)
}

// hostName is the name in a Host header, in lower case and without its port; "" when the port is malformed.
func hostName(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "" {
			return ""
		}
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// foreign reports whether a browser sent a request for another site.
func foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return site != "" && site != "same-origin" && site != "none"
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
}

// idOf is the id of a request: the client's own if it is valid.
func idOf(r *http.Request) string {
	given := r.Header.Get(requestID)
	if n := len(given); n > 0 && n <= 64 && strings.Trim(given, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") == "" {
		return given
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "r-" + hex.EncodeToString(b)
}

func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// recorder records the status of an answer, for the log.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

type peerKey struct{}

// isPeer reports whether a request came through the socket from the user who runs this process: that is as good as
// the token, which is in a file of the same user.
func isPeer(r *http.Request) bool { return r.Context().Value(peerKey{}) != nil }

// door is the name of the front door that input came through.
func (a *asked) door() string {
	switch {
	case a.RemoteAddr == client.LocalPeer:
		return "terminal"
	case isPeer(a.Request):
		return "cli"
	}
	return "api"
}

// entrance is the door that a request came through: a socket, this process, the network.
func entrance(r *http.Request) string {
	switch {
	case isPeer(r):
		return "socket"
	case r.Header.Get("Authorization") != "":
		return "token"
	}
	return "browser"
}

// Pages of other origins may send requests only if the server was given their origins. They need the token, as programs
// do. The cookie does not count for them, so that naming an origin does not let its pages act for every logged-in
// user.

const (
	corsMethods = "GET, HEAD, POST, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, X-Request-Id"
	corsExposed = "ETag, Location, Retry-After, Roost-Task-Id, Roost-Run-Id, Idempotent-Replayed, X-Request-Id"
)

// page reports whether a request comes from a page of a named origin.
func (s *Server) page(r *http.Request) bool {
	return slices.Contains(s.opt.Origins, r.Header.Get("Origin")) // "" is never in the list
}

// cors sends the headers that allow a page of a named origin, and answers a preflight request.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	if !s.page(r) || !s.known(r.Host) {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// ValidOrigin reports whether a text is an origin as browsers send it: a scheme, a host and a port that is not the
// default one. A pattern is not an origin.
func ValidOrigin(text string) bool {
	scheme, host, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ToLower(text) != text {
		return false
	}
	return !strings.ContainsAny(host, "/*?#@ \t,") && !(scheme == "http" && strings.HasSuffix(host, ":80")) &&
		!(scheme == "https" && strings.HasSuffix(host, ":443"))
}

// TokenFile is the path of the token of a root. It outlives the server, so that clients can continue after a restart.
func TokenFile(root string) string { return filepath.Join(root, "server", "token") }

// tokenBytes is the number of random bytes in a token.
const tokenBytes = 32

// Token returns the token of a root, and makes one when there is none or the caller wants a fresh one: 256 random bits
// in a file that only its owner may read. It refuses a file that others may read: that token is no longer secret.
func Token(root string, fresh bool) (string, error) {
	file := TokenFile(root)
	if !fresh {
		switch token, err := readToken(file); {
		case err == nil:
			return token, nil
		case !errors.Is(err, os.ErrNotExist):
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("make the token: %w", err)
	}
	token, err := random()
	if err != nil {
		return "", err
	}
	if fresh {
		err = atomicfile.Write(file, []byte(token+"\n"))
	} else if err = atomicfile.Create(file, []byte(token+"\n")); errors.Is(err, os.ErrExist) {
		token, err = readToken(file) // two servers that start at once must use one token
	}
	if err != nil {
		return "", fmt.Errorf("make the token: %w", err)
	}
	return token, nil
}

// Place is the location of a root: it remembers whether a token was made there.
type Place interface {
	Root() string
	MadeToken(token string) bool
	NoteToken(token string) error
}

// OwnToken is Token for a server. The owner of the original knows a token that came with a copied, restored or unpacked
// root, and a crash may leave an empty or damaged one: OwnToken replaces both, and notice reports it.
func OwnToken(p Place, fresh bool) (token, notice string, err error) {
	token, err = readToken(TokenFile(p.Root()))
	switch {
	case err == nil && !fresh && p.MadeToken(token):
		return token, "", nil
	case err == nil && !fresh:
		notice = "the server's token was not made in this place: there is a new one, and whoever has the old one has to get it"
	case errors.Is(err, errNoToken):
		notice = "the server's token was empty or damaged: there is a new one, and whoever has the old one has to get it"
	case err != nil && !fresh && !errors.Is(err, os.ErrNotExist):
		return "", "", err
	}
	if token, err = Token(p.Root(), fresh || notice != ""); err != nil {
		return "", "", err
	}
	_ = p.NoteToken(token) // without keys the next server makes another one
	return token, notice, nil
}

var errNoToken = errors.New("it holds no token")

// readToken reads a token file that only its owner may read.
func readToken(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if !info.Mode().IsRegular() || os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the token in %s may be read by others (mode %04o): make a new one with roost serve "+
			"--new-token", file, info.Mode().Perm())
	}
	data, err := inputfile.Read(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("read %s: %w; make a new one with roost serve --new-token", file, errNoToken)
	}
	return token, nil
}

func random() (string, error) {
	b := make([]byte, tokenBytes)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// same compares secrets in constant time.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// cookieDays is how long a log-in lasts, in days.
const cookieDays = 30

// doorkeeper checks tokens and log-ins.
type doorkeeper struct {
	token string
	now   func() time.Time

	mu  sync.Mutex
	key string // of the log-in link; "" when it was used
}

// cookieName contains a digest of the token: browsers do not separate cookies by port, and two servers on one machine
// must not log each other out.
func (d *doorkeeper) cookieName() string {
	sum := sha256.Sum256([]byte("cookie name " + d.token))
	return "roost_" + hex.EncodeToString(sum[:4])
}

// cookie is a log-in: its end, with a proof made with the token. The server stores no log-ins, so that a restart keeps
// them and a new token ends all of them.
func (d *doorkeeper) cookie(secure bool) *http.Cookie {
	until := strconv.FormatInt(d.now().AddDate(0, 0, cookieDays).Unix(), 10)
	return &http.Cookie{ //nolint:gosec // without TLS, on loopback only, browsers drop a Secure cookie
		Name: d.cookieName(), Value: until + "." + d.proof(until), Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

func (d *doorkeeper) proof(until string) string {
	mac := hmac.New(sha256.New, []byte(d.token))
	mac.Write([]byte("log-in until " + until))
	return hex.EncodeToString(mac.Sum(nil))
}

// knows reports whether a request has the token or a log-in. byCookie: a browser sent the log-in by itself, perhaps for
// another site.
func (d *doorkeeper) knows(r *http.Request) (ok, byCookie bool) {
	if isPeer(r) {
		return true, false
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, given, _ := strings.Cut(header, " ")
		return strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(given), d.token), false
	}
	for _, c := range r.CookiesNamed(d.cookieName()) {
		until, proof, _ := strings.Cut(c.Value, ".")
		at, err := strconv.ParseInt(until, 10, 64)
		if same(proof, d.proof(until)) && err == nil && d.now().Unix() < at {
			return true, true
		}
	}
	return false, false
}

// use accepts the key of the log-in link, once.
func (d *doorkeeper) use(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == "" || !same(key, d.key) {
		return false
	}
	d.key = ""
	return true
}
