package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// The disk of the database is full: nothing is acknowledged that is not there, and the owner goes on without a gap when
// there is room again.
func TestDiskIsFull(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and TestConnectionsAreCut looks for the races of the same code")
	}
	t.Parallel() // it mostly waits
	c := pgtest.Start(t)
	db := open(t, c.Database(t), postgres.Options{Lease: time.Minute})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // a barrier has saved it
	c.Full(t, 5<<20)
	acked, refused := uint64(1), error(nil)
	for i := 0; refused == nil; i++ {
		if i == 1000 {
			t.Fatal("the disk was never full")
		}
		noise := make([]byte, 100<<10) // it cannot be compressed
		_, _ = rand.Read(noise)        // it never fails
		d := draft(i)
		d.Events = append(d.Events, fmt.Appendf(nil, `{"text":"%x"}`, noise))
		if _, err := o.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if refused = o.Barrier(t.Context()); refused == nil {
			acked++
		}
	}
	if !errors.Is(refused, journal.ErrNotSaved) || !strings.Contains(refused.Error(), "could not") {
		t.Errorf("got %v, want ErrNotSaved with what the database could not do", refused)
	}
	if err := o.Barrier(t.Context()); !errors.Is(err, journal.ErrNotSaved) {
		t.Errorf("again: got %v, want ErrNotSaved", err)
	}
	if head, err := o.Head(t.Context()); err != nil || head != acked {
		t.Errorf("got head %d, %v, want the %d commits that were acknowledged", head, err, acked)
	}
	c.Full(t, 0)
	last, err := o.Append(t.Context(), draft(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatalf("with room: %v", err)
	}
	if last != acked+2 {
		t.Errorf("the last commit is %d, want %d", last, acked+2)
	}
	if h, err := o.Health(t.Context()); err != nil || !h.OK() || h.Head != last || uint64(h.Commits) != last {
		t.Errorf("got %+v, %v, want %d commits without a gap", h, err, last)
	}
}
