package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// Whoever finds a task in use learns where its holder is reached. What is read only opens
// nothing, and the address is no part of the task's story.
func TestALockSaysWhereItsHolderIsReached(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	asked := 0
	s.ReachedAt(func() string { asked++; return "unix:/run/user/1/roost/7-abc.sock" })
	if _, err := s.List(t.Context(), Filter{}); err != nil || asked != 0 || s.Address() != "" {
		t.Errorf("a list: %v, asked %d times, address %q", err, asked, s.Address())
	}
	owned := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1}))
	ref := owned.Ref
	if asked != 1 || s.Address() != "unix:/run/user/1/roost/7-abc.sock" {
		t.Errorf("asked %d times, address %q", asked, s.Address())
	}
	other := open(t, root)
	var busy *journal.BusyError
	if _, err := other.Own(t.Context(), ref); !errors.As(err, &busy) || busy.Holder.Address != s.Address() || busy.Holder.PID != os.Getpid() || busy.Holder.Program != "store test" {
		t.Errorf("refused with %v, %+v", err, busy)
	}
	if held, alive := other.Holder(t.Context(), ref); !alive || held.Address != s.Address() {
		t.Errorf("held: %v by %+v", alive, held)
	}
	fixture.NoError(t, owned.Close(t.Context()))
	if held, alive := other.Holder(t.Context(), ref); alive {
		t.Errorf("after its end it is held by %+v", held)
	}
	log, err := os.ReadFile(filepath.Join(ref.Log, "journal.jsonl"))
	fixture.NoError(t, err)
	if bytes.Contains(log, []byte("roost/7-abc")) || !bytes.Contains(log, []byte("epoch.opened")) {
		t.Errorf("the log tells of the address:\n%s", log)
	}
	// Without one the lock has none, and the program is named all the same.
	quiet := fixture.Must[*Store](t)(Open(Options{Root: root}))
	got := fixture.Must[*Owned](t)(quiet.Own(t.Context(), ref))
	if held, alive := other.Holder(t.Context(), ref); !alive || held.Address != "" || held.Program != "roost" {
		t.Errorf("held: %v by %+v", alive, held)
	}
	fixture.NoError(t, got.Task.Close(t.Context()))
}
