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

	"github.com/roost-dev/roost/internal/inputfile"
)

// TokenFile is where a root's token lies: it outlives the server, so that clients come
// back after a restart.
func TokenFile(root string) string { return filepath.Join(root, "server", "token") }

// tokenBytes is how random a token is.
const tokenBytes = 32

// Token gives the root's token, and makes one when there is none or a fresh one is
// wanted: 256 random bits in a file that only its owner may read. A file that others
// may read is refused: what lay open is no secret any more.
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
	temp, err := os.CreateTemp(filepath.Dir(file), ".token-*") // 0600
	if err != nil {
		return "", fmt.Errorf("make the token: %w", err)
	}
	_, err = temp.WriteString(token + "\n")
	err = errors.Join(err, temp.Sync(), temp.Close())
	switch {
	case err != nil:
	case fresh:
		err = os.Rename(temp.Name(), file)
	default:
		// Two servers that start at once must end with one token.
		if err = os.Link(temp.Name(), file); errors.Is(err, os.ErrExist) {
			token, err = readToken(file)
		} else if err != nil { // a file system without links
			err = os.Rename(temp.Name(), file)
		}
	}
	if gone := os.Remove(temp.Name()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return "", fmt.Errorf("make the token: %w", err)
	}
	return token, nil
}

// Place is where a root stands: it knows whether a token was made there.
type Place interface {
	Root() string
	MadeToken(token string) bool
	NoteToken(token string) error
}

// OwnToken is Token for a server. A token that came along with a root that was copied, restored or
// unpacked is known to whoever has the original, and one that a crash left empty or damaged is
// none: then a new one takes its place, and notice says so.
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

// readToken reads a token file that only its owner can read.
func readToken(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if !info.Mode().IsRegular() || os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the token in %s may be read by others (mode %04o): make a new one with roost serve --new-token", file, info.Mode().Perm())
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

// same compares secrets in a time that does not depend on where they differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// cookieDays is how long a log-in lasts.
const cookieDays = 30

// doorkeeper knows who may come in.
type doorkeeper struct {
	token string
	now   func() time.Time

	mu  sync.Mutex
	key string // of the log-in link, "" when it was used
}

// cookieName has something of the token: cookies are not kept apart by port, and two
// servers on one machine must not log each other out.
func (d *doorkeeper) cookieName() string {
	sum := sha256.Sum256([]byte("cookie name " + d.token))
	return "roost_" + hex.EncodeToString(sum[:4])
}

// cookie is a log-in: it says when it ends, and proves it with the token. The server
// keeps none, so that a restart logs nobody out, and a new token all.
func (d *doorkeeper) cookie(secure bool) *http.Cookie {
	until := strconv.FormatInt(d.now().AddDate(0, 0, cookieDays).Unix(), 10)
	return &http.Cookie{ //nolint:gosec // without TLS, which is only on loopback, a browser would keep none that is Secure
		Name: d.cookieName(), Value: until + "." + d.proof(until), Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

func (d *doorkeeper) proof(until string) string {
	mac := hmac.New(sha256.New, []byte(d.token))
	mac.Write([]byte("log-in until " + until))
	return hex.EncodeToString(mac.Sum(nil))
}

// knows reports whether a request brings the token or a log-in. byCookie: a browser
// sent it by itself, whoever made it ask.
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

// use takes the log-in link's key, once.
func (d *doorkeeper) use(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == "" || !same(key, d.key) {
		return false
	}
	d.key = ""
	return true
}
