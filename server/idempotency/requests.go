// Package idempotency stores the answers to requests with an idempotency key, so that a repeated request gets the same
// answer and takes effect once.
//
// In a Folder, a request with a key has a file: first the intent, with a fingerprint of the request, then the answer. The
// intent is on disk before the work begins, and the answer before it is sent, so that a repeat finds both after any crash. A
// process that works on the request holds the lock of the file. The kernel releases the lock when the process ends, so that
// a killed process leaves an intent without a lock, and the repeat finishes the work under the same ids. An answer is kept
// for a day.
//
// One file for all keys was rejected: removing old keys would mean rewriting the file.
//
// In a database that several servers share (Shared), a request has a row, and the lease of the working server replaces the
// lock: a repeat at another server finishes the work once that lease has run out.
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

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
)

const (
	keptFor      = 24 * time.Hour        // how long a repeat gets the same answer
	flightWait   = 5 * time.Second       // how long a repeat waits for the first request before it gets 409
	flightPause  = 10 * time.Millisecond // between two checks of it
	cleanedEvery = time.Hour             // between two removals of old records
	recordMax    = 4 << 20               // bound of a file, in bytes
)

// Seal signs records and proves who signed them.
type Seal interface {
	// MAC signs data for a purpose. Without a key the id is "".
	MAC(purpose string, data ...[]byte) (id string, mac []byte)
	// Proves reports whether MAC made this id and mac from the same data.
	Proves(id string, mac []byte, purpose string, data ...[]byte) bool
}

// purpose is the purpose of the signatures of records.
const purpose = "idempotency"

// Requests stores the requests with keys that servers answered or work on. It is safe for concurrent use.
type Requests interface {
	// Begin takes a key for a request. It returns the answer of an earlier attempt, or a request on which the caller must
	// call Finish, Forget or Leave.
	Begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error)
}

// Folder are the requests of the processes of a root, in a folder.
type Folder struct {
	dir string
	now func() time.Time
	signer

	mu      sync.Mutex
	cleaned time.Time
}

// New stores requests in a folder, which the first request makes. seal gives the present seal of the root; nil: records are
// not signed.
func New(dir string, now func() time.Time, seal func() Seal) *Folder {
	return &Folder{dir: dir, now: now, signer: signer{seal}}
}

// signer signs the lines of records.
type signer struct {
	seal func() Seal // nil: records are not signed
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
	Follow *Followed         `json:"follow,omitempty"` // the run whose events a client gets if it wants a stream
	MAC    string            `json:"mac,omitempty"`    // of the rest; Finish makes it
}

// Followed is a run whose events a client wants instead of a document.
type Followed struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	From string `json:"from,omitempty"` // the id of the event before the first one; "" = the start
}

// signed returns the MAC of a line: over the line without it and the name of the file. It is "" without a key.
func (d signer) signed(name string, line any) (string, error) {
	if d.seal == nil {
		return "", nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return "", err
	}
	id, mac := d.seal().MAC(purpose, []byte(name+"\x00"), data)
	if id == "" {
		return "", nil
	}
	return id + "." + hex.EncodeToString(mac), nil
}

// proves reports whether this root wrote a line: a record that was copied with another root proves nothing here. It
// removes the MAC from the line. Without a key for MACs, every line is valid.
func (d signer) proves(name string, mac *string, line any) bool {
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
	return err == nil && d.seal().Proves(id, sum, purpose, []byte(name+"\x00"), data)
}

// Request is a request with a key on which this process works. One of Finish, Forget and Leave ends it.
type Request struct {
	Again bool // an earlier attempt began, and may have done its work

	taken
}

// taken is a key that a request has taken.
type taken interface {
	// Finish stores the answer and releases the key.
	Finish(done Answer) error
	// Forget releases a key whose request changed nothing: another request may use the key.
	Forget() error
	// Leave releases a key whose request may have changed something: a repeat finishes the work.
	Leave() error
}

// takenFile is the locked file of a key.
type takenFile struct {
	file *os.File
	of   *Folder
}

// Errors of Begin.
var (
	ErrInFlight = errors.New("the first request with this key is still being answered")
	ErrOther    = errors.New("another request was made with this key")
)

// Begin implements Requests.
func (d *Folder) Begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	if err := d.ready(); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(d.dir, hash(key)+".jsonl")
	for end := time.Now().Add(flightWait); ; {
		f, err := filelock.TryOpen(name, filelock.Exclusive|filelock.FirstByte)
		if err != nil {
			return nil, nil, fmt.Errorf("store the request: %w", err)
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

// take reads the locked file of a key, and writes the intent if the file has none.
func (d *Folder) take(f *os.File, request, fingerprint string) (*Request, *Answer, error) {
	was, done, err := readFile(f)
	if err != nil {
		return nil, nil, err
	}
	now := d.now()
	was, done, err = d.judged(filepath.Base(f.Name()), was, done, func() bool { return now.Sub(time.UnixMilli(was.At)) > keptFor }, fingerprint)
	switch {
	case err != nil || done != nil:
		return nil, done, err
	case was != nil:
		return &Request{true, takenFile{f, d}}, nil, nil
	}
	err = f.Truncate(0)
	if err == nil {
		line := intent{Version: 1, At: now.UnixMilli(), Fingerprint: fingerprint, Request: request}
		if line.MAC, err = d.signed(filepath.Base(f.Name()), line); err == nil {
			err = put(f, 0, line)
		}
	}
	if err == nil {
		err = atomicfile.SyncDir(d.dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store the request: %w", errors.Join(err, f.Truncate(0)))
	}
	return &Request{false, takenFile{f, d}}, nil, nil
}

// judged returns the part of a record that is valid for a request: nothing if the record is old or another root wrote
// it, and an answer only together with its intent.
func (d signer) judged(name string, was *intent, done *Answer, old func() bool, fingerprint string) (*intent, *Answer, error) {
	if was == nil || !d.proves(name, &was.MAC, was) || old() {
		return nil, nil, nil
	}
	if was.Fingerprint != fingerprint {
		return nil, nil, ErrOther
	}
	if done != nil && !d.proves(name, &done.MAC, done) {
		done = nil
	}
	return was, done, nil
}

// readFile reads the file of a key. It ignores a line that a crash cut off: no caller relied on that line.
func readFile(f *os.File) (*intent, *Answer, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the stored request: %w", err)
	}
	data := make([]byte, min(info.Size(), recordMax))
	if _, err = f.ReadAt(data, 0); err != nil && len(data) > 0 {
		return nil, nil, fmt.Errorf("read the stored request: %w", err)
	}
	first, rest, whole := bytes.Cut(data, []byte("\n"))
	if !whole {
		return nil, nil, nil
	}
	second, _, whole := bytes.Cut(rest, []byte("\n"))
	if !whole {
		second = nil
	}
	was, done := parse(first, second)
	return was, done, nil
}

// parse reads the two lines of a record. A malformed line gives nil, and so does an answer without an intent.
func parse(first, second []byte) (*intent, *Answer) {
	var was intent
	if json.Unmarshal(first, &was) != nil || was.Version != 1 {
		return nil, nil
	}
	var done Answer
	if json.Unmarshal(second, &done) != nil || done.Status == 0 {
		return &was, nil
	}
	return &was, &done
}

// put writes a line at an offset, truncates the file after the line, and syncs.
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

// Finish implements taken.
func (o takenFile) Finish(done Answer) error {
	head := make([]byte, 4096)
	n, err := o.file.ReadAt(head, 0)
	end := bytes.IndexByte(head[:n], '\n')
	if end < 0 {
		err = errors.Join(err, errors.New("the stored intent of the request is missing"))
	} else if done.MAC, err = o.of.signed(filepath.Base(o.file.Name()), done); err == nil {
		err = put(o.file, int64(end)+1, done)
	}
	return api.Failed(errors.Join(err, filelock.Release(o.file)), "store the answer")
}

// Forget implements taken.
func (o takenFile) Forget() error {
	// The empty file stays, because some systems cannot remove an open file.
	return api.Failed(errors.Join(o.file.Truncate(0), filelock.Release(o.file)), "forget a key")
}

// Leave implements taken.
func (o takenFile) Leave() error { return filelock.Release(o.file) }

// ready makes the folder, and removes expired files from time to time.
func (d *Folder) ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.cleaned) < cleanedEvery {
		return nil
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("store the request: %w", err)
	}
	d.cleaned = d.now()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("store the request: %w", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && d.now().Sub(info.ModTime()) > keptFor {
			d.expire(filepath.Join(d.dir, e.Name()))
		}
	}
	return nil
}

// expire removes a file that no request holds. If that fails, a later call tries again.
func (d *Folder) expire(name string) {
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

// Identity returns a UUID that is derived from a key. If the key is a UUID of version 7, the identity has this
// version and the key's time; otherwise it has the version for custom ids.
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
