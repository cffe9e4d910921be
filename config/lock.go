package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
)

// lockFile is the file, beside the settings file, whose lock a process holds while it changes a file of the user.
const lockFile = "roost.lock"

// lockWait limits how long a change waits for another process. The other process may wait for the system's keyring: a
// key changes in the keyring and in the file under one lock.
var lockWait = KeyringWait + 10*time.Second

// lockPause is the time between two tries of the lock: a change takes a few syncs of a disk.
const lockPause = 5 * time.Millisecond

// Locked calls change while no other process changes a file of the user: settings, keys, MCP servers, imported modes.
// All of them have one lock, so change must not call a method that takes it. Its result must depend only on what it
// reads itself. Reading needs no lock: each file is replaced whole.
//
// The lock is that of the settings' folder. Processes that reach one file from two such folders, by a link or in a
// workspace, do not exclude each other.
func (p Place) Locked(ctx context.Context, change func() error) (err error) {
	path, err := p.Path()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	file := filepath.Join(dir, lockFile)
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var release func() error
	if err = os.MkdirAll(dir, 0o700); err == nil {
		release, err = filelock.Hold(limited, file, lockPause)
	}
	what := "change the settings in " + dir
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, context.DeadlineExceeded):
		return broken(what, "another process changes them: it locked "+file+", and "+lockWait.String()+" were not enough",
			"try again; if it stays so, end the other roost")
	case err != nil:
		return broken(what, err.Error(), "look at the folder: you must be able to write there")
	}
	defer func() { err = cmp.Or(err, release()) }()
	return change()
}

// Replace writes a file whole or not at all. The file may hold keys, so only its owner may read it. Replace follows a
// link: people keep their settings elsewhere. The caller holds the lock that Locked takes.
func Replace(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
