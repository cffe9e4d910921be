package presence

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestOneServerOfARoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if _, err := Find(root); !errors.Is(err, ErrAbsent) {
		t.Errorf("of a root that is not there: %v", err)
	}
	if _, err := os.Stat(root); err == nil {
		t.Error("looking made the root")
	}
	c := fixture.Must[*Claim](t)(NewClaim(root))
	if _, err := Find(root); !errors.Is(err, ErrAbsent) {
		t.Errorf("before it has said where it is: %v", err)
	}
	here := Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), StartedAt: "2026-01-02T03:04:05.000Z", Version: "v"}
	if err := c.Tell(here); err != nil {
		t.Fatal(err)
	}
	if got := fixture.Must[Server](t)(Find(root)); got != here {
		t.Errorf("found %+v", got)
	}
	if info := fixture.Must[os.FileInfo](t)(os.Stat(File(root))); os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
	_, err := NewClaim(root)
	var taken *TakenError
	if !errors.As(err, &taken) || taken.By != here {
		t.Errorf("a second server: %v", err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(File(root)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was told stays: %v", err)
	}
	if err := fixture.Must[*Claim](t)(NewClaim(root)).Release(); err != nil {
		t.Error(err)
	}
}

// What a killed server leaves is not believed, and does not keep the next one out.
func TestStalePresence(t *testing.T) {
	root := t.TempDir()
	c := fixture.Must[*Claim](t)(NewClaim(root))
	if err := c.Tell(Server{URL: "http://127.0.0.1:1", PID: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.lock.Close(); err != nil { // as the kernel does at a kill
		t.Fatal(err)
	}
	if p, err := Find(root); !errors.Is(err, ErrAbsent) || p.URL != "" {
		t.Errorf("got %+v, %v, want errors.Is(err, ErrAbsent) and p.URL = \"\"", p, err)
	}
	next := fixture.Must[*Claim](t)(NewClaim(root))
	defer next.Release() //nolint:errcheck // the folder goes
	if err := os.WriteFile(File(root), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(root); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("half a file is read as: %v", err)
	}
}

// Who only looks whether a server lives holds its lock for as long as a busy machine lets
// him stand still: that is no server, and the claim waits for him.
func TestWhoOnlyLooksIsNoServer(t *testing.T) {
	root := t.TempDir()
	if err := fixture.Must[*Claim](t)(NewClaim(root)).Release(); err != nil {
		t.Fatal(err)
	}
	looker := fixture.Must[*os.File](t)(os.Open(lockFile(root)))
	if got, err := filelock.Try(looker, filelock.Shared|filelock.FirstByte); err != nil || !got {
		t.Fatal(got, err)
	}
	claimed := make(chan error, 1)
	go func() {
		c, err := NewClaim(root)
		if err == nil {
			err = c.Release()
		}
		claimed <- err
	}()
	select {
	case err := <-claimed:
		t.Fatalf("while somebody looks: %v", err)
	case <-time.After(3 * claimTries * claimPause): // a server would have been believed by now
	}
	if err := filelock.Release(looker); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; err != nil {
		t.Error(err)
	}
}
