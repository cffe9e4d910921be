package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/journal"
)

// A request with an idempotency key has a file: first the intent, with a fingerprint of
// what is asked, then what was answered. Both are on disk before they count, so that a
// repeat finds them after any crash. The file's lock says whether somebody is at it: the
// kernel ends it with the process, so that a killed one leaves an intent that nobody
// holds, and the repeat does what is left to do, under the same ids.
//
// One file for all keys was the alternative: it would have to be cleaned by rewriting.

const (
	keptFor      = 24 * time.Hour        // how long an answer is given again
	flightWait   = 5 * time.Second       // for the first request, before a repeat is told to come back
	flightPause  = 10 * time.Millisecond // between looks at it
	cleanedEvery = time.Hour             //
	recordMax    = 4 << 20               // bytes of a file that is believed
)

// deeds are the requests with keys that a root's processes answered, or are at.
type deeds struct {
	dir  string
	now  func() time.Time
	seal func() *journal.Seal // nil, or nil from it: records are not signed

	mu      sync.Mutex
	cleaned time.Time
}

// intent is a file's first line.
type intent struct {
	Version     int    `json:"v"`
	At          int64  `json:"at"` // Unix milliseconds
	Fingerprint string `json:"fingerprint"`
	Request     string `json:"request"` // method and path, for people
	MAC         string `json:"mac,omitempty"`
}

// outcome is a file's second line: what was answered.
type outcome struct {
	Status int               `json:"status"`
	Head   map[string]string `json:"head,omitempty"`
	Body   string            `json:"body,omitempty"`
	Follow *followed         `json:"follow,omitempty"` // whose events who asks for a stream gets
	MAC    string            `json:"mac,omitempty"`
}

// signed gives a line's MAC, which is about the line without it and about the key's file.
func (d *deeds) signed(name string, line any) (string, error) {
	data, err := json.Marshal(line)
	if err != nil {
		return "", err
	}
	if d.seal == nil {
		return "", nil
	}
	id, mac := d.seal().MAC("idempotency", []byte(filepath.Base(name)+"\x00"), data)
	if id == "" {
		return "", nil
	}
	return id + "." + hex.EncodeToString(mac), nil
}

// proves reports whether this root wrote a line: a record that came with a copied root is no
// answer of this one. mac is what the line carries, line what it is without. Without a key
// nothing can be told apart, and the line counts.
func (d *deeds) proves(name, mac string, line any) bool {
	var seal *journal.Seal
	if d.seal != nil {
		seal = d.seal()
	}
	if seal == nil || seal.Sign == nil {
		return true
	}
	data, err := json.Marshal(line)
	if err != nil {
		return false
	}
	id, text, _ := strings.Cut(mac, ".")
	sum, err := hex.DecodeString(text)
	return err == nil && seal.Proves(id, sum, "idempotency", []byte(filepath.Base(name)+"\x00"), data)
}

// deed is a request that is being answered under a key.
type deed struct {
	file  *os.File
	of    *deeds
	again bool // an earlier attempt began, and may have done its work
}

var (
	errInFlight = errors.New("the first request with this key is still being answered")
	errOther    = errors.New("another request was made with this key")
)

// begin takes a key for a request. It gives what was answered already, or a deed that
// must be finished, forgotten or left.
func (d *deeds) begin(ctx context.Context, key, request, fingerprint string) (*deed, *outcome, error) {
	if err := d.ready(); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(d.dir, hash(key)+".jsonl")
	for end := time.Now().Add(flightWait); ; {
		f, got, err := d.hold(name)
		if err != nil {
			return nil, nil, err
		}
		if got {
			one, done, err := d.take(f, request, fingerprint)
			if one == nil {
				err = errors.Join(err, letGo(f))
			}
			return one, done, err
		}
		if time.Now().After(end) {
			return nil, nil, errInFlight
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(flightPause):
		}
	}
}

// hold opens and locks a key's file; got is false while somebody else is at it.
func (d *deeds) hold(name string) (f *os.File, got bool, err error) {
	if f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, fmt.Errorf("keep what was asked: %w", err)
	}
	if got, err = lock(f, true); err != nil {
		return nil, false, errors.Join(fmt.Errorf("keep what was asked: lock %s: %w", name, err), f.Close())
	}
	if got && !stands(f, name) { // it was forgotten between opening and locking
		return nil, false, letGo(f)
	}
	if !got {
		return nil, false, f.Close()
	}
	return f, true, nil
}

// stands reports whether a file is still the one of its name.
func stands(f *os.File, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(mine, there)
}

// take reads a key's file, which is held, and writes the intent when there is none.
func (d *deeds) take(f *os.File, request, fingerprint string) (*deed, *outcome, error) {
	was, done, err := readDeed(f)
	if err != nil {
		return nil, nil, err
	}
	if was != nil {
		mac := was.MAC
		if was.MAC = ""; !d.proves(f.Name(), mac, *was) {
			was, done = nil, nil
		}
	}
	if done != nil {
		mac := done.MAC
		if done.MAC = ""; !d.proves(f.Name(), mac, *done) {
			done = nil
		}
	}
	now := d.now()
	if was != nil && now.Sub(time.UnixMilli(was.At)) > keptFor {
		was, done = nil, nil
	}
	switch {
	case was != nil && was.Fingerprint != fingerprint:
		return nil, nil, errOther
	case done != nil:
		return nil, done, nil
	case was != nil:
		return &deed{file: f, of: d, again: true}, nil, nil
	}
	err = f.Truncate(0)
	if err == nil {
		line := intent{Version: 1, At: now.UnixMilli(), Fingerprint: fingerprint, Request: request}
		if line.MAC, err = d.signed(f.Name(), line); err == nil {
			err = put(f, 0, line)
		}
	}
	if err == nil {
		err = syncFolder(d.dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("keep what was asked: %w", errors.Join(err, f.Truncate(0)))
	}
	return &deed{file: f, of: d}, nil, nil
}

// readDeed reads a key's file. What a crash tore off was never acknowledged.
func readDeed(f *os.File) (*intent, *outcome, error) {
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
	var done outcome
	if !whole || json.Unmarshal(second, &done) != nil || done.Status == 0 {
		return &was, nil, nil
	}
	return &was, &done, nil
}

// put writes a line at an offset, and what stood behind it is gone; it is on disk then.
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

// finish keeps what is answered, and lets go of the key.
func (o *deed) finish(done outcome) error {
	head := make([]byte, 4096)
	n, err := o.file.ReadAt(head, 0)
	end := bytes.IndexByte(head[:n], '\n')
	if end < 0 {
		err = errors.Join(err, errors.New("the intent is gone"))
	} else if done.MAC, err = o.of.signed(o.file.Name(), done); err == nil {
		err = put(o.file, int64(end)+1, done)
	}
	if err = errors.Join(err, letGo(o.file)); err != nil {
		return fmt.Errorf("keep what was answered: %w", err)
	}
	return nil
}

// forget lets go of a key under which nothing was done: it may be used for another request.
func (o *deed) forget() error {
	// The file stays, empty: on some systems one that is open cannot be removed.
	if err := errors.Join(o.file.Truncate(0), letGo(o.file)); err != nil {
		return fmt.Errorf("forget a key: %w", err)
	}
	return nil
}

// leave lets go of a key whose request may have done something: the repeat does the rest.
func (o *deed) leave() error { return letGo(o.file) }

// ready makes the folder, and removes from time to time what is kept no longer.
func (d *deeds) ready() error {
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

// expire removes a file that nobody is at. What cannot be removed is tried again later.
func (d *deeds) expire(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	got, err := lock(f, true)
	if err != nil || !got {
		_ = f.Close() // it was only looked at
		return
	}
	defer func() { _ = letGo(f) }()
	if stands(f, name) {
		_ = os.Remove(name)
	}
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = f.Sync(); err != nil && os.PathSeparator == '\\' {
		err = nil // Windows has no such thing
	}
	return errors.Join(err, f.Close())
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
