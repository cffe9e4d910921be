// Package idempotency stores the answers to requests with an idempotency key, so that a repeated request gets the same
// answer and takes effect once.
//
// In a folder, a request with a key has a file: first the intent, with a fingerprint of the request, then the answer. The
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
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/service"
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
type Requests struct {
	place place
	now   func() time.Time
	seal  func() Seal // the present one of the root; nil: records are not signed

	mu      sync.Mutex
	cleaned time.Time
}

// place is where records are: a folder, or a database.
type place interface {
	// clean removes old records.
	clean(ctx context.Context) error
	// try takes a key. It returns the answer of an earlier attempt, or the taken key; again: an earlier attempt took it, too.
	// ErrInFlight: another request has it; pause is the time until the next try.
	try(ctx context.Context, a asking) (key taken, again bool, done *Answer, err error)
	pause() time.Duration
}

// asking is a request that takes a key.
type asking struct {
	of          *Requests
	key         [sha256.Size]byte // digest of the key
	name        string            // of the record, in its signatures; also of its file
	fingerprint string
	intent      []byte // the line of an intent
}

// New stores requests in a folder, which the first request makes.
func New(dir string, now func() time.Time, seal func() Seal) *Requests {
	return &Requests{place: folder{dir, now}, now: now, seal: seal}
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
	Follow *service.Follow   `json:"follow,omitempty"` // the run whose events a client gets if it wants a stream
	MAC    string            `json:"mac,omitempty"`    // of the rest; Finish makes it
}

// line returns a line of a record as JSON, and sets its MAC: over the line without it and the name of the record. The MAC is
// "" without a key.
func (d *Requests) line(name string, mac *string, line any) ([]byte, error) {
	data, err := json.Marshal(line)
	if err != nil || d.seal == nil {
		return data, err
	}
	id, sum := d.seal().MAC(purpose, []byte(name+"\x00"), data)
	if id == "" {
		return data, nil
	}
	*mac = id + "." + hex.EncodeToString(sum)
	return json.Marshal(line)
}

// proves reports whether this root wrote a line: a record that was copied with another root proves nothing here. It
// removes the MAC from the line. Without a key for MACs, every line is valid.
func (d *Requests) proves(name string, mac *string, line any) bool {
	id, text, _ := strings.Cut(*mac, ".")
	*mac = ""
	data, err := json.Marshal(line)
	if err != nil || d.seal == nil {
		return err == nil
	}
	if own, _ := d.seal().MAC(purpose, []byte(name+"\x00"), data); own == "" {
		return true
	}
	sum, err := hex.DecodeString(text)
	return err == nil && d.seal().Proves(id, sum, purpose, []byte(name+"\x00"), data)
}

// Request is a request with a key on which this process works. One of Finish, Forget and Leave ends it.
type Request struct {
	Again bool // an earlier attempt began, and may have done its work

	taken
	of   *Requests
	name string
}

// taken is a key that a request has taken.
type taken interface {
	// finish stores the line of the answer and releases the key.
	finish(line []byte) error
	// Forget releases a key whose request changed nothing: another request may use the key.
	Forget() error
	// Leave releases a key whose request may have changed something: a repeat finishes the work.
	Leave() error
}

// Finish stores the answer and releases the key.
func (r *Request) Finish(done Answer) error {
	line, err := r.of.line(r.name, &done.MAC, &done)
	if err != nil {
		err = errors.Join(err, r.Leave())
	} else {
		err = r.finish(line)
	}
	return api.Failed(err, "store the answer")
}

// Errors of Begin.
var (
	ErrInFlight = errors.New("the first request with this key is still being answered")
	ErrOther    = errors.New("another request was made with this key")
)

// Begin takes a key for a request. It returns the answer of an earlier attempt, or a request on which the caller must call
// Finish, Forget or Leave.
func (d *Requests) Begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	one, done, err := d.begin(ctx, key, request, fingerprint)
	if err != nil && !errors.Is(err, ErrOther) && !errors.Is(err, ErrInFlight) && ctx.Err() == nil {
		err = fmt.Errorf("store the request: %w", err)
	}
	return one, done, err
}

func (d *Requests) begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	if err := d.clean(ctx); err != nil {
		return nil, nil, err
	}
	a := asking{of: d, key: sha256.Sum256([]byte(key)), name: hash(key) + ".jsonl", fingerprint: fingerprint}
	for end := time.Now().Add(flightWait); ; {
		line := intent{Version: 1, At: d.now().UnixMilli(), Fingerprint: fingerprint, Request: request}
		var err error
		if a.intent, err = d.line(a.name, &line.MAC, &line); err != nil {
			return nil, nil, err
		}
		one, again, done, err := d.place.try(ctx, a)
		switch {
		case errors.Is(err, ErrInFlight) && time.Now().Before(end):
		case err != nil:
			return nil, nil, err
		case done != nil:
			return nil, done, nil
		default:
			return &Request{again, one, d, a.name}, nil, nil
		}
		if !sleep.For(ctx, d.place.pause()) {
			return nil, nil, ctx.Err()
		}
	}
}

// clean removes old records from time to time.
func (d *Requests) clean(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.cleaned) < cleanedEvery {
		return nil
	}
	err := d.place.clean(ctx)
	if err == nil {
		d.cleaned = d.now()
	}
	return err
}

// judged returns the part of a record that is valid for a request: nothing if the record is old or another root wrote
// it, and an answer only together with its intent.
func (a asking) judged(was *intent, done *Answer, old bool) (*intent, *Answer, error) {
	if was == nil || !a.of.proves(a.name, &was.MAC, was) || old {
		return nil, nil, nil
	}
	if was.Fingerprint != a.fingerprint {
		return nil, nil, ErrOther
	}
	if done != nil && !a.of.proves(a.name, &done.MAC, done) {
		done = nil
	}
	return was, done, nil
}

// folder holds the records of the processes of a root, each in a file.
type folder struct {
	dir string
	now func() time.Time
}

func (d folder) pause() time.Duration { return flightPause }

// try reads the locked file of a key, and writes the intent if the file has none.
func (d folder) try(_ context.Context, a asking) (key taken, again bool, done *Answer, err error) {
	f, err := filelock.TryOpen(filepath.Join(d.dir, a.name), filelock.Exclusive|filelock.FirstByte)
	if err == nil && f == nil {
		err = ErrInFlight
	}
	if err != nil {
		return nil, false, nil, err
	}
	defer func() {
		if key == nil {
			err = errors.Join(err, filelock.Release(f))
		}
	}()
	was, done, err := readFile(f)
	if err == nil {
		old := was != nil && d.now().Sub(time.UnixMilli(was.At)) > keptFor
		was, done, err = a.judged(was, done, old)
	}
	switch {
	case err != nil || done != nil:
		return nil, false, done, err
	case was != nil:
		return takenFile{f}, true, nil, nil
	}
	if err = f.Truncate(0); err == nil {
		err = put(f, 0, a.intent)
	}
	if err == nil {
		err = atomicfile.SyncDir(d.dir)
	}
	if err != nil {
		return nil, false, nil, errors.Join(err, f.Truncate(0))
	}
	return takenFile{f}, false, nil, nil
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
func put(f *os.File, at int64, line []byte) error {
	line = append(line, '\n')
	_, err := f.WriteAt(line, at)
	if err == nil {
		err = f.Truncate(at + int64(len(line)))
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// takenFile is the locked file of a key.
type takenFile struct{ file *os.File }

func (o takenFile) finish(line []byte) error {
	head := make([]byte, 4096)
	n, err := o.file.ReadAt(head, 0)
	if end := bytes.IndexByte(head[:n], '\n'); end < 0 {
		err = errors.Join(err, errors.New("the stored intent of the request is missing"))
	} else {
		err = put(o.file, int64(end)+1, line)
	}
	return errors.Join(err, filelock.Release(o.file))
}

// Forget implements taken.
func (o takenFile) Forget() error {
	// The empty file stays, because some systems cannot remove an open file.
	return api.Failed(errors.Join(o.file.Truncate(0), filelock.Release(o.file)), "forget a key")
}

// Leave implements taken.
func (o takenFile) Leave() error { return filelock.Release(o.file) }

// clean makes the folder, and removes the old files that no request holds. What cannot be removed stays for a later call.
func (d folder) clean(context.Context) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	entries, _ := os.ReadDir(d.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || d.now().Sub(info.ModTime()) <= keptFor {
			continue
		}
		name := filepath.Join(d.dir, e.Name())
		if f, err := filelock.TryOpen(name, filelock.Exclusive|filelock.FirstByte); err == nil && f != nil {
			_ = os.Remove(name)
			_ = filelock.Release(f)
		}
	}
	return nil
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

// Identity returns a UUID that is derived from a key and the body of its request: another request may use the key after
// its record was removed. If the key is a UUID of version 7, the identity has this version and the key's time; otherwise
// it has the version for custom ids.
func Identity(key string, body []byte) string {
	sum := sha256.Sum256(append([]byte("idempotency key "+key), body...))
	id, _ := uuid.FromBytes(sum[:16])
	version := byte(0x80)
	if timed, err := uuid.Parse(key); err == nil && timed.Version() == 7 {
		copy(id[:6], timed[:6])
		version = 0x70
	}
	id[6], id[8] = id[6]&0x0f|version, id[8]&0x3f|0x80
	return id.String()
}
