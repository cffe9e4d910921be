package engine

import (
	"testing"
	"time"

	"github.com/roost-dev/roost/events"
)

// A commit can be durable before whoever makes it has noted what streams show of it:
// on a busy machine an event was shown without its content.
func TestANoteOfACommitThatIsBeingMadeIsWaitedFor(t *testing.T) {
	var n notes
	n.busy.Lock()
	got := make(chan string, 1)
	go func() {
		what, _ := n.take(7)
		got <- what.Run
	}()
	select {
	case run := <-got:
		t.Fatalf("the note of run %q was taken before there was one", run)
	case <-time.After(10 * time.Millisecond):
	}
	n.put(7, events.Context{Run: "r"})
	n.busy.Unlock()
	if run := <-got; run != "r" {
		t.Errorf("the note of run %q was taken", run)
	}
	if what, ok := n.take(7); ok {
		t.Errorf("a note was taken twice: %+v", what)
	}
	if _, ok := n.take(8); ok { // the store's own commit: nobody waits for a note of it
		t.Error("there is a note of a commit that nobody noted")
	}
}
