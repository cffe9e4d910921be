package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/journal/filelog"

	"github.com/roost-dev/roost/internal/inputfile"
)

// Presence is what a root's server says of itself on disk, so that programs of the same
// user find it.
type Presence struct {
	URL       string `json:"url"`
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
	Version   string `json:"version"`
}

// Claim is a process's right to be the server of a root. The kernel ends it with the
// process, however that ends.
type Claim struct {
	root string
	lock *os.File
	told bool
}

// TakenError: another process is the server of the root.
type TakenError struct{ By Presence }

func (e *TakenError) Error() string {
	if e.By.URL == "" {
		return "a server of this root runs already"
	}
	return fmt.Sprintf("a server of this root runs already: %s, process %d", e.By.URL, e.By.PID)
}

func lockFile(root string) string { return filepath.Join(root, "server", "lock") }

// PresenceFile is where a root's server says where it is.
func PresenceFile(root string) string { return filepath.Join(root, "server", "server.json") }

// claimTries is how often a lock is tried again that somebody has for himself, lookTries how
// often one that others only look at, and claimPause the time between. Who looks whether a
// server lives holds it for a moment, too: on a busy machine that is as long as you like.
const (
	claimTries = 5
	lookTries  = 1000
	claimPause = 10 * time.Millisecond
)

// NewClaim makes this process the server of a root. *TakenError: another one is.
func NewClaim(root string) (*Claim, error) {
	if err := filelog.Trusted(root); err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", root, err)
	}
	file := lockFile(root)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", root, err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", root, err)
	}
	for try, looks := 1, 0; ; {
		got, err := lock(f, true)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("become the server of %s: lock %s: %w", root, file, err), f.Close())
		case got:
			return &Claim{root: root, lock: f}, nil
		case try == claimTries:
			by, _ := readPresence(root) // it may not have said anything yet
			return nil, errors.Join(&TakenError{by}, f.Close())
		}
		if shared, err := lock(f, false); err == nil && shared && looks < lookTries {
			looks++
			if err := unlock(f); err != nil {
				return nil, errors.Join(fmt.Errorf("become the server of %s: unlock %s: %w", root, file, err), f.Close())
			}
		} else {
			try++
		}
		time.Sleep(claimPause)
	}
}

// Tell says where the server is, in a file for its owner alone that is there whole or
// not at all.
func (c *Claim) Tell(p Presence) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("say where the server is: %w", err)
	}
	file := PresenceFile(c.root)
	temp, err := os.CreateTemp(filepath.Dir(file), ".server-*") // 0600
	if err != nil {
		return fmt.Errorf("say where the server is: %w", err)
	}
	_, err = temp.Write(append(data, '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("say where the server is: %w", err), os.Remove(temp.Name()))
	}
	c.told = true
	return nil
}

// Release ends the claim, and takes away what was told. The lock's file stays: who
// removed it would let two processes hold two locks of one name.
func (c *Claim) Release() error {
	var err error
	if c.told {
		if err = os.Remove(PresenceFile(c.root)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err = errors.Join(err, letGo(c.lock)); err != nil {
		return fmt.Errorf("end the server of %s: %w", c.root, err)
	}
	return nil
}

// ErrAbsent: no server of the root runs.
var ErrAbsent = errors.New("no server of this root runs")

// Present finds the server of a root. What a killed one left behind is not believed: by
// now its address may be anybody's, and who is asked there is shown the token.
func Present(root string) (Presence, error) {
	f, err := os.Open(lockFile(root))
	if errors.Is(err, os.ErrNotExist) {
		return Presence{}, ErrAbsent
	}
	if err != nil {
		return Presence{}, fmt.Errorf("look for the server of %s: %w", root, err)
	}
	defer func() { _ = letGo(f) }() // it was only looked at; without the lock there is none to give back
	switch free, err := lock(f, false); {
	case err != nil:
		return Presence{}, fmt.Errorf("look for the server of %s: %w", root, err)
	case free:
		return Presence{}, ErrAbsent
	}
	p, err := readPresence(root)
	if errors.Is(err, os.ErrNotExist) {
		return p, fmt.Errorf("%w yet: one is starting or stopping", ErrAbsent)
	}
	return p, err
}

// letGo gives a lock back and closes its file.
func letGo(f *os.File) error { return errors.Join(unlock(f), f.Close()) }

func readPresence(root string) (p Presence, err error) {
	data, err := inputfile.Read(PresenceFile(root))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return Presence{}, fmt.Errorf("read where the server is: %w", err)
	}
	return p, nil
}
