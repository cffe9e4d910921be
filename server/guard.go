package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
)

// guard checks every request before a route gets it, the cheapest checks first: it looks up nothing for a client
// without the token. The request ends when its device is revoked, or its account's token.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	begun := s.opt.Now()
	r, leave, _ := s.opt.Devices.Enter(r, addressOf(r))
	defer leave()
	rec := &recorder{ResponseWriter: w}
	h := rec.Header()
	h.Set(requestID, idOf(r))
	r.Header.Set(requestID, h.Get(requestID)) // the same id in every log line
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	s.begin(w)
	if r.ContentLength != 0 {
		// The library reads the rest of a body before it uses the connection again, and would wait for it forever.
		h.Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opt.HeaderTimeout))
	}
	if s.cors(rec, r) {
		// This is a preflight request: the request of the page comes next.
	} else if p := s.refuse(r); p != nil {
		s.deny(rec, r, p)
	} else {
		if fromHere(r) && !s.page(r) && !s.fromGroup(r) {
			r = r.WithContext(service.FromHere(r.Context()))
		}
		if c, ok := accounts.Of(r.Context()); ok && c.Token != "" {
			ctx, left := s.opt.Accounts.Enter(r.Context(), c)
			defer left()
			r = r.WithContext(ctx)
		}
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

// refuse is the problem of a request that must not reach its route; nil if the request may.
func (s *Server) refuse(r *http.Request) *api.Problem {
	group := s.fromGroup(r)
	// A socket has no name, and no browser can reach it. A server of the group has this server's address from the database.
	if !s.known(r) && !isPeer(r) && !group {
		return problem(http.StatusForbidden, "host_denied", "The server does not answer to that name",
			"the request names the host "+report.Clip(r.Host), "use the address that roost serve printed", "roost serve --host NAME")
	}
	if !safe(r.Method) && foreign(r) && !s.page(r) {
		return problem(http.StatusForbidden, "origin_denied", "Another site may not send that request",
			"the request comes from the origin "+report.Clip(r.Header.Get("Origin")))
	}
	open := slices.Contains(openPaths, r.URL.Path) || s.opt.Pages != nil && safe(r.Method) && strings.HasPrefix(r.URL.Path, staticPath)
	if !open {
		var p *api.Problem
		ok, byCookie := false, false
		if s.opt.Accounts != nil {
			byCookie, p = s.identify(r)
		} else if ok, byCookie = s.knows(r); !ok && !group {
			p = unauthenticated()
		}
		switch {
		case p != nil:
			return p
		case byCookie && (r.Header.Get("Sec-Fetch-Site") == "cross-site" || s.page(r) && foreign(r)):
			return problem(http.StatusForbidden, "origin_denied", "Another site may not send that request",
				"a browser sent the request for another site")
		}
		shown(r)
	}
	if p := r.URL.Path; p == "" || p[0] != '/' || p != "/" && path.Clean(p) != p && r.RemoteAddr != client.LocalPeer {
		return problem(http.StatusBadRequest, "bad_path", "The path is malformed", "a path must not have empty parts, . or .. in it")
	}
	if safe(r.Method) && r.ContentLength != 0 {
		return problem(http.StatusRequestEntityTooLarge, "body_too_large", "The request must not have a body",
			"a request that changes nothing has no body: leave the body out")
	}
	if r.ContentLength > s.opt.MaxBody {
		return tooLarge(s.opt.MaxBody)
	}
	return nil
}

func unauthenticated() *api.Problem {
	return problem(http.StatusUnauthorized, "unauthenticated", "The token is missing or wrong",
		"send it as Authorization: Bearer TOKEN, or open the log-in link", "roost serve prints the path of the token")
}

// known reports whether a request names this server. Without this check, a browser would treat the server as part of any
// site whose name resolves to this address. In the local network, only names in the certificate for that network are known.
func (s *Server) known(r *http.Request) bool {
	name := hostName(r.Host)
	if s.opt.LAN != nil && r.Context().Value(lanKey{}) != nil {
		return name != "" && s.opt.LAN.Names(name)
	}
	return name != "" && (s.hosts[name] || s.opt.Cert != nil && s.opt.Cert.VerifyHostname(name) == nil)
}

// openPaths are the paths that need no log-in: their answers contain nothing of a task.
var openPaths = []string{"/healthz", "/readyz", "/login", "/ca.crt", "/trust"}

// hostName returns the name in a Host header, in lower case and without its port; "" when the port is malformed.
func hostName(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "" {
			return ""
		}
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// forwards are the headers in which a proxy names the client whose request it passes on.
var forwards = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", hopHeader}

// fromHere reports whether a request came directly from this machine: from this process, through the socket of its user,
// or from a loopback address to a loopback name, without headers that a proxy would add. The caller has checked the log-in.
// A port that ssh forwards here counts as this machine, because its user can log in here.
func fromHere(r *http.Request) bool {
	if r.RemoteAddr == client.LocalPeer || isPeer(r) {
		return true
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") {
			return false
		}
	}
	if slices.ContainsFunc(forwards, func(name string) bool { return r.Header.Get(name) != "" }) {
		return false
	}
	return Loopback(hostName(r.Host)) && Loopback(addressOf(r))
}

// Loopback reports whether only this machine reaches a host. It accepts no name but localhost: another name may
// resolve to any address.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
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

// idOf returns the id of a request: the client's own if it is valid.
func idOf(r *http.Request) string {
	given := r.Header.Get(requestID)
	if n := len(given); n > 0 && n <= 64 && strings.Trim(given, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") == "" {
		return given
	}
	return "r-" + devices.Secret(8)
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
	r.status = cmp.Or(r.status, status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

type peerKey struct{}

// lanKey marks the requests that came over the local network.
type lanKey struct{}

// isPeer reports whether the user who runs this process sent a request through the socket. That proves as much as the
// token, which is in a file of the same user.
func isPeer(r *http.Request) bool { return r.Context().Value(peerKey{}) != nil }

// entrance returns the door that a request came through: a socket, this process, the network.
func entrance(r *http.Request) string {
	switch {
	case isPeer(r):
		return "socket"
	case r.Header.Get("Authorization") != "":
		return "token"
	}
	return "browser"
}

// Pages of other origins may send requests only if the server's options name their origins. They need the token, as programs
// do. The cookie is not valid for them, so that the pages of a named origin cannot act for every logged-in user.

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, X-Request-Id"
	corsExposed = "ETag, Location, Retry-After, Roost-Task-Id, Roost-Run-Id, Idempotent-Replayed, X-Request-Id"
)

// page reports whether a request comes from a page of a named origin.
func (s *Server) page(r *http.Request) bool {
	return slices.Contains(s.opt.Origins, r.Header.Get("Origin")) // "" is never in the list
}

// cors sends the headers that allow a page of a named origin, and answers a preflight request.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	if !s.page(r) || !s.known(r) {
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

// TokenFile returns the path of a root's token. The file outlives the server, so that clients can continue after a
// restart.
func TokenFile(root string) string { return filepath.Join(root, "server", "token") }

// tokenBytes is the number of random bytes in a token.
const tokenBytes = 32

// Token returns the token of a root: 256 random bits in a file that only its owner may read. It makes a token if there is
// none or the caller wants a fresh one. It refuses a file that others may read, because that token is no longer secret.
func Token(root string, fresh bool) (string, error) {
	file := TokenFile(root)
	store := atomicfile.Write
	if !fresh {
		if token, err := readToken(file); !errors.Is(err, os.ErrNotExist) {
			return token, err
		}
		store = atomicfile.Create
	}
	token := devices.Secret(tokenBytes)
	err := storeToken(file, token, store)
	if errors.Is(err, os.ErrExist) {
		token, err = readToken(file) // two servers that start at once must use one token
	}
	return token, api.Failed(err, "make the token")
}

// KeepToken stores the token of a group of servers as the token of a root, so that programs on this machine find it.
func KeepToken(root, token string) error {
	return api.Failed(storeToken(TokenFile(root), token, atomicfile.Write), "keep the token")
}

func storeToken(file, token string, store func(string, []byte) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return store(file, []byte(token+"\n"))
}

// Place is the location of a root: it remembers whether a token was made there.
type Place interface {
	Root() string
	MadeToken(token string) bool
	NoteToken(token string) error
}

// OwnToken is Token for a server. It replaces a token that came with a copied, restored or unpacked root, because the owner
// of the original knows that token, and an empty or damaged token that a crash left. notice reports the replacement.
func OwnToken(p Place, fresh bool) (token, notice string, err error) {
	token, err = readToken(TokenFile(p.Root()))
	switch {
	case err == nil && !fresh && p.MadeToken(token):
		return token, "", nil
	case err == nil && !fresh:
		notice = "the server's token was made in another place, so the server made a new one: give that to each client with the old one"
	case errors.Is(err, errNoToken):
		notice = "the server's token was empty or damaged, so the server made a new one: give that to each client with the old one"
	case err != nil && !fresh && !errors.Is(err, os.ErrNotExist):
		return "", "", err
	}
	if token, err = Token(p.Root(), fresh || notice != ""); err != nil {
		return "", "", err
	}
	_ = p.NoteToken(token) // if that fails, the next server makes another token
	return token, notice, nil
}

var errNoToken = errors.New("the file holds no token")

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

// bearer returns the token in the Authorization header of a request; "" without one.
func bearer(r *http.Request) string {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(given)
}

// knows reports whether a request has the token or a log-in. byCookie: the browser added the log-in by itself,
// perhaps for a page of another site.
func (s *Server) knows(r *http.Request) (ok, byCookie bool) {
	if isPeer(r) {
		return true, false
	}
	if r.Header.Get("Authorization") != "" {
		return devices.Same(bearer(r), s.opt.Token), false
	}
	_, in, _ := s.opt.Devices.Knows(r)
	return in, in
}

// A gate bounds the open connections: one more waits until another ends. Strangers are connections that have not yet sent
// the token; they have a smaller bound. At that bound the gate closes the oldest silent stranger, so that a user without
// the token cannot fill the server with connections.
type gate struct {
	net.Listener
	room chan struct{}
	shut chan struct{}
	once sync.Once

	lan       bool // its connections come from the local network
	most      int
	left      chan struct{} // gets a value when a stranger closes its connection or sends the token
	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// strangerPatience is the time that a new stranger may be silent, even while others wait: a client under load needs a
// moment between connecting and sending.
const strangerPatience = 100 * time.Millisecond

// strangerAge bounds the time that a stranger may take to send a whole request in small pieces.
const strangerAge = time.Second

func limited(l net.Listener, most, strangers int) *gate {
	return &gate{Listener: l, room: make(chan struct{}, most), shut: make(chan struct{}), most: strangers, left: make(chan struct{}, 1)}
}

// Accept returns the next connection when there is room for it.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.room <- struct{}{}:
	case <-g.shut:
		return nil, net.ErrClosed
	}
	conn, err := g.next()
	if err != nil {
		<-g.room
		return nil, err
	}
	c := &guest{Conn: conn, gate: g, came: time.Now()}
	c.leave = sync.OnceFunc(func() { c.known(); <-g.room })
	if p, ok := conn.(*peer.Conn); !ok || !p.SameUser {
		g.mu.Lock()
		g.strangers = append(g.strangers, c)
		g.mu.Unlock()
	}
	return c, nil
}

func (g *gate) next() (net.Conn, error) {
	for {
		full, idle := g.crowd()
		if !full {
			return g.Listener.Accept()
		}
		if idle != nil {
			_ = idle.Close()
			continue
		}
		select {
		case <-g.left:
		case <-time.After(strangerPatience / 4):
		case <-g.shut:
			return nil, net.ErrClosed
		}
	}
}

// crowd reports whether there is no room for another stranger, and which stranger may be closed to make room.
func (g *gate) crowd() (full bool, idle *guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.strangers) < g.most {
		return false, nil
	}
	now := time.Now()
	for _, c := range g.strangers {
		since := c.silent.Load()
		if since != 0 && (now.UnixNano()-since >= int64(strangerPatience) || now.Sub(c.came) >= strangerAge) {
			return true, c
		}
	}
	return true, nil
}

// Close ends the listener, and Accept when it waits for room.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.shut) })
	return g.Listener.Close()
}

// guest is an accepted connection.
type guest struct {
	net.Conn
	gate   *gate
	came   time.Time
	leave  func()
	silent atomic.Int64 // the time since which the server waits for its next bytes, in Unix nanoseconds; 0 = it does not wait
}

// Read waits for the next bytes.
func (c *guest) Read(p []byte) (int, error) {
	c.silent.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(p)
	c.silent.Store(0)
	return n, err
}

// Close ends the connection and makes room for another.
func (c *guest) Close() error {
	c.leave()
	return c.Conn.Close()
}

// known marks a connection whose client has sent the token.
func (c *guest) known() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.strangers, c); i >= 0 {
		g.strangers = slices.Delete(g.strangers, i, i+1)
		select {
		case g.left <- struct{}{}:
		default:
		}
	}
}

type guestKey struct{}

// ofConn puts the connection, and whether it is a peer's, into the context of its requests.
func ofConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	g, ok := c.(*guest)
	if !ok {
		return ctx
	}
	if g.gate.lan {
		ctx = context.WithValue(ctx, lanKey{}, true)
	}
	if p, ok := g.Conn.(*peer.Conn); ok && p.SameUser {
		ctx = context.WithValue(ctx, peerKey{}, true)
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// shown marks the connection of a request that has the token.
func shown(r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.known()
	}
}
