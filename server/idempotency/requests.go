// Package idempotency keeps what requests with an idempotency key were answered, so that a repeat gets the same answer
// and does nothing twice.
//
// A request with a key has a file: first the intent, with a fingerprint of the request, then the answer. Both are on
// disk before they count, so that a repeat finds them after any crash. A process that works on the request holds the
// lock of the file. The kernel releases it when the process ends, so that a killed process leaves an intent without a
// lock, and the repeat does the rest under the same ids. An answer is kept for a day.
//
// One file for all keys was the alternative: it would have to be cleaned by rewriting.
package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
)

const (
	keptFor      = 24 * time.Hour        // how long a repeat gets the same answer
	flightWait   = 5 * time.Second       // how long a repeat waits for the first request before it gets 409
	flightPause  = 10 * time.Millisecond // between two checks of it
	cleanedEvery = time.Hour             //
	recordMax    = 4 << 20               // bound of a file, in bytes
)

// Seal signs records and proves who signed them.
type Seal interface {
	// MAC signs data for a purpose. Without a key it gives no id.
	MAC(purpose string, data ...[]byte) (id string, mac []byte)
	// Proves reports whether MAC made that of the same data.
	Proves(id string, mac []byte, purpose string, data ...[]byte) bool
}

// purpose is what records are signed for.
const purpose = "idempotency"

// Requests are the requests with keys that processes of a root answered or work on. It is safe for concurrent use.
type Requests struct {
	dir  string
	now  func() time.Time
	seal func() Seal // nil: records are not signed

	mu      sync.Mutex
	cleaned time.Time
}

// New keeps requests in a folder, which the first one makes. seal gives the seal of the root at the time; nil: records
// are not signed.
func New(dir string, now func() time.Time, seal func() Seal) *Requests {
	return &Requests{dir: dir, now: now, seal: seal}
}

// intent is the first line of a file.
type intent struct {
	Version     int    `json:"v"`
	At          int64  `json:"at"` // Unix milliseconds
	Fingerprint string `json:"fingerprint"`
	Request     string `json:"request"` // method and path, for people
	MAC         string `json:"mac,omitempty"`
}

// Answer is the second line of a file.
type Answer struct {
	Status int               `json:"status"`
	Head   map[string]string `json:"head,omitempty"`
	Body   string            `json:"body,omitempty"`
	Follow *Followed         `json:"follow,omitempty"` // the run whose events a client gets that wants a stream
	MAC    string            `json:"mac,omitempty"`    // of the rest; Finish makes it
}

// Followed is a run whose events a client wants instead of a document.
type Followed struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	From string `json:"from,omitempty"` // the id of the event that it begins behind; "" = the start
}

// signed is the MAC of a line: over the line without it and the name of the file. It is "" without a key.
func (d *Requests) signed(name string, line any) (string, error) {
	if d.seal == nil {
		return "", nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return "", err
	}
	id, mac := d.seal().MAC(purpose, []byte(filepath.Base(name)+"\x00"), data)
	if id == "" {
		return "", nil
	}
	return id + "." + hex.EncodeToString(mac), nil
}

// proves reports whether this root wrote a line: a record that came with a copied root is not an answer of this one. It
// takes the MAC out of the line. Without a key for MACs every line counts.
func (d *Requests) proves(name string, mac *string, line any) bool {
	id, text, _ := strings.Cut(*mac, ".")
	*mac = ""
	own, err := d.signed(name, line)
	if err != nil || own == "" {
		return err == nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return false
	}
	sum, err := hex.DecodeString(text)
	return err == nil && d.seal().Proves(id, sum, purpose, []byte(filepath.Base(name)+"\x00"), data)
}

// Request is a request with a key that is under way. One of Finish, Forget and Leave ends it.
type Request struct {
	Again bool // an earlier attempt began, and may have done its work

	file *os.File
	of   *Requests
}

// What Begin refuses.
var (
	ErrInFlight = errors.New("the first request with this key is still being answered")
	ErrOther    = errors.New("another request was made with this key")
)

// Begin takes a key for a request. It returns the answer of an earlier attempt, or a request that the caller must finish,
// Forget or leave.
func (d *Requests) Begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	if err := d.ready(); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(d.dir, hash(key)+".jsonl")
	for end := time.Now().Add(flightWait); ; {
		f, err := filelock.TryOpen(name, filelock.Exclusive|filelock.FirstByte)
		if err != nil {
			return nil, nil, fmt.Errorf("keep what was asked: %w", err)
		}
		if f != nil {
			one, done, err := d.take(f, request, fingerprint)
			if one == nil {
				err = errors.Join(err, filelock.Release(f))
			}
			return one, done, err
		}
		if time.Now().After(end) {
			return nil, nil, ErrInFlight
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(flightPause):
		}
	}
}

// take reads the locked file of a key, and writes the intent when there is none.
func (d *Requests) take(f *os.File, request, fingerprint string) (*Request, *Answer, error) {
	was, done, err := readFile(f)
	if err != nil {
		return nil, nil, err
	}
	if was != nil && !d.proves(f.Name(), &was.MAC, was) {
		was, done = nil, nil
	}
	if done != nil && !d.proves(f.Name(), &done.MAC, done) {
		done = nil
	}
	now := d.now()
	if was != nil && now.Sub(time.UnixMilli(was.At)) > keptFor {
		was, done = nil, nil
	}
	switch {
	case was != nil && was.Fingerprint != fingerprint:
		return nil, nil, ErrOther
	case done != nil:
		return nil, done, nil
	case was != nil:
		return &Request{Again: true, file: f, of: d}, nil, nil
	}
	err = f.Truncate(0)
	if err == nil {
		line := intent{Version: 1, At: now.UnixMilli(), Fingerprint: fingerprint, Request: request}
		if line.MAC, err = d.signed(f.Name(), line); err == nil {
			err = put(f, 0, line)
		}
	}
	if err == nil {
		err = atomicfile.SyncDir(d.dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("keep what was asked: %w", errors.Join(err, f.Truncate(0)))
	}
	return &Request{file: f, of: d}, nil, nil
}

// readFile reads the file of a key. A line that a crash cut off was never acknowledged.
func readFile(f *os.File) (*intent, *Answer, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read what was asked: %w", err)
	}
	data := make([]byte, min(info.Size(), recordMax))
	if _, err = f.ReadAt(data, 0); err != nil && len(data) > 0 {
		return nil, nil, fmt.Errorf("read what was asked: %w", err)
	}
	first, rest, whole := bytes.Cut(data, []byte("\n"))
	var was intent
	if !whole || json.Unmarshal(first, &was) != nil || was.Version != 1 {
		return nil, nil, nil
	}
	second, _, whole := bytes.Cut(rest, []byte("\n"))
	var done Answer
	if !whole || json.Unmarshal(second, &done) != nil || done.Status == 0 {
		return &was, nil, nil
	}
	return &was, &done, nil
}

// put writes a line at an offset, cuts the file behind it, and syncs.
func put(f *os.File, at int64, line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if _, err = f.WriteAt(data, at); err == nil {
		err = f.Truncate(at + int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// Finish stores the answer and releases the key.
func (o *Request) Finish(done Answer) error {
	head := make([]byte, 4096)
	n, err := o.file.ReadAt(head, 0)
	end := bytes.IndexByte(head[:n], '\n')
	if end < 0 {
		err = errors.Join(err, errors.New("the intent is gone"))
	} else if done.MAC, err = o.of.signed(o.file.Name(), done); err == nil {
		err = put(o.file, int64(end)+1, done)
	}
	if err = errors.Join(err, filelock.Release(o.file)); err != nil {
		return fmt.Errorf("keep what was answered: %w", err)
	}
	return nil
}

// Forget releases a key whose request changed nothing: another request may use it.
func (o *Request) Forget() error {
	// The file stays, empty: some systems do not remove an open file.
	if err := errors.Join(o.file.Truncate(0), filelock.Release(o.file)); err != nil {
		return fmt.Errorf("forget a key: %w", err)
	}
	return nil
}

// Leave releases a key whose request may have changed something: the repeat does the rest.
func (o *Request) Leave() error { return filelock.Release(o.file) }

// ready makes the folder, and removes expired files from time to time.
func (d *Requests) ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.cleaned) < cleanedEvery {
		return nil
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("keep what was asked: %w", err)
	}
	d.cleaned = d.now()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("keep what was asked: %w", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && d.now().Sub(info.ModTime()) > keptFor {
			d.expire(filepath.Join(d.dir, e.Name()))
		}
	}
	return nil
}

// expire removes a file that no request holds. If that fails, a later call tries again.
func (d *Requests) expire(name string) {
	if f, err := filelock.TryOpen(name, filelock.Exclusive|filelock.FirstByte); err == nil && f != nil {
		_ = os.Remove(name)
		_ = filelock.Release(f)
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Fingerprint distinguishes requests with the same key.
func Fingerprint(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	return hash(r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n" + r.Header.Get("If-Match") + "\n" +
		hex.EncodeToString(sum[:]))
}

// Identity is the UUID that follows from a key: of a key that is a UUID of version 7 one of that version and time, of any
// other key one of the version for custom ids.
func Identity(key string) string {
	sum := sha256.Sum256([]byte("idempotency key " + key))
	id, _ := uuid.FromBytes(sum[:16])
	version := byte(0x80)
	if timed, err := uuid.Parse(key); err == nil && timed.Version() == 7 {
		copy(id[:6], timed[:6])
		version = 0x70
	}
	id[6], id[8] = id[6]&0x0f|version, id[8]&0x3f|0x80
	return id.String()
}
