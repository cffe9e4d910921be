// Package presence lets one process at a time be the server of a root, and gives its address to other programs of the same
// user.
//
// The claim is a kernel lock, which ends with its process even after a kill. The presence file holds the server's address,
// which is valid only while the lock is held. The root must be on a file system that supports locks; the caller checks that.
package presence

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Server is the content of the presence file.
type Server struct {
	URL       string `json:"url"`
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
	Version   string `json:"version"`
	Cert      string `json:"cert_sha256,omitempty"` // of the certificate, in hexadecimal; "" without TLS
}

// Claim is the right of a process to be the server of a root. The kernel releases it when the process ends, also by a kill.
type Claim struct {
	root      string
	lock      *os.File
	published bool
}

// TakenError: another process is the server of the root.
type TakenError struct{ By Server }

func (e *TakenError) Error() string {
	if e.By.URL == "" {
		return "a server of this root runs already"
	}
	return fmt.Sprintf("a server of this root runs already: %s, process %d", e.By.URL, e.By.PID)
}

func lockFile(root string) string { return filepath.Join(root, "server", "lock") }

// File returns the path of the presence file of a root.
func File(root string) string { return filepath.Join(root, "server", "server.json") }

// claimTries is how often NewClaim tries to get a lock that a server may hold, and lookTries how often it tries a
// lock that other processes only probe; claimPause is the time between tries. A process that checks whether a server
// lives holds the lock for a moment, too, and on a busy machine that moment can be long.
const (
	claimTries = 5
	lookTries  = 1000
	claimPause = 10 * time.Millisecond
)

// NewClaim makes this process the server of a root. *TakenError: another one is.
func NewClaim(root string) (*Claim, error) {
	file := lockFile(root)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", root, err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", root, err)
	}
	for try, looks := 1, 0; ; {
		got, err := filelock.Try(f, filelock.Exclusive|filelock.FirstByte)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("become the server of %s: lock %s: %w", root, file, err), f.Close())
		case got:
			return &Claim{root: root, lock: f}, nil
		case try == claimTries:
			by, _ := read(root) // the other server may not have written the file yet
			return nil, errors.Join(&TakenError{by}, f.Close())
		}
		if shared, err := filelock.Try(f, filelock.Shared|filelock.FirstByte); err == nil && shared && looks < lookTries {
			looks++
			if err := filelock.Unlock(f); err != nil {
				return nil, errors.Join(fmt.Errorf("become the server of %s: unlock %s: %w", root, file, err), f.Close())
			}
		} else {
			try++
		}
		time.Sleep(claimPause)
	}
}

// Tell publishes the address of the server in a file for its owner alone, which is written whole or not at all.
func (c *Claim) Tell(p Server) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("publish the address of the server: %w", err)
	}
	if err := atomicfile.WriteDerived(File(c.root), "", append(data, '\n')); err != nil {
		return fmt.Errorf("publish the address of the server: %w", err)
	}
	c.published = true
	return nil
}

// Release ends the claim and removes the presence file. The lock file stays: if it were removed, two processes could
// hold two locks with one name.
func (c *Claim) Release() error {
	var err error
	if c.published {
		if err = os.Remove(File(c.root)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return api.Failed(errors.Join(err, filelock.Release(c.lock)), "end the server of %s", c.root)
}

// ErrAbsent: no server of the root runs.
var ErrAbsent = errors.New("no server of this root runs")

// Find finds the server of a root. It ignores the file of a killed server: another program may have that address by now,
// and would get the token.
func Find(root string) (Server, error) {
	f, err := os.Open(lockFile(root))
	if errors.Is(err, os.ErrNotExist) {
		return Server{}, ErrAbsent
	}
	if err != nil {
		return Server{}, fmt.Errorf("look for the server of %s: %w", root, err)
	}
	defer func() { _ = filelock.Release(f) }() // opened only to check the lock
	switch free, err := filelock.Try(f, filelock.Shared|filelock.FirstByte); {
	case err != nil:
		return Server{}, fmt.Errorf("look for the server of %s: %w", root, err)
	case free:
		return Server{}, ErrAbsent
	}
	p, err := read(root)
	if errors.Is(err, os.ErrNotExist) {
		return p, fmt.Errorf("%w yet: one is starting or stopping", ErrAbsent)
	}
	return p, err
}

func read(root string) (p Server, err error) {
	data, err := inputfile.Read(File(root))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return Server{}, fmt.Errorf("read the server's address: %w", err)
	}
	return p, nil
}
