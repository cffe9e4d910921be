package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

// TokenFile is the path of the token of a root. It outlives the server, so that clients can continue after a restart.
func TokenFile(root string) string { return filepath.Join(root, "server", "token") }

// tokenBytes is the number of random bytes in a token.
const tokenBytes = 32

// Token returns the token of a root, and makes one when there is none or the caller wants a fresh one: 256 random bits in
// a file that only its owner may read. It refuses a file that others may read: that token is no longer secret.
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

// cookieName contains a digest of the token: browsers do not separate cookies by port, and two servers on one machine must
// not log each other out.
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
