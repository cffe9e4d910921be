package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// large is one event with so much data that a few of them are put away.
func large(seq uint64) []Event {
	text := fmt.Sprintf(`{"seq":%d,"text":"%s"}`, seq, strings.Repeat(fmt.Sprint(seq%10), backlogAfter/10))
	return []Event{{ID: fmt.Sprintf("1.%d-0", seq), Type: "x", Task: "t", Seq: seq, Data: []byte(text)}}
}

func data(ctx context.Context, s *stream) (out []string) {
	for e := range s.follow(ctx) {
		out = append(out, string(e.Data))
	}
	return out
}

// A long run holds the newest of its events; whoever comes late gets all of them.
func TestOlderEventsLieInAFile(t *testing.T) {
	dir := t.TempDir()
	s, up := newStream(dir), newStream(dir)
	var want []string
	var early, late []string
	var wait sync.WaitGroup
	wait.Go(func() { early = data(t.Context(), s) })
	for i := range uint64(60) {
		s.add(i+1, large(i+1))
		want = append(want, string(large(i + 1)[0].Data))
	}
	kept := 0
	for _, e := range s.events {
		kept += len(e.Data)
	}
	if kept > backlogAfter || kept != s.old.held {
		t.Errorf("%d bytes are in memory, %d are counted", kept, s.old.held)
	}
	if len(s.old.slots) == 0 {
		t.Skip("events cannot be put away here")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("there is a file with a name: %v", left)
	}
	s.join(up)
	s.add(61, large(61))
	want = append(want, string(large(61)[0].Data))
	s.end()
	up.end()
	late = data(t.Context(), s)
	wait.Wait()
	for name, got := range map[string][]string{"early": early, "late": late, "of the run above": data(t.Context(), up)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the listener %s has %d events, not %d", name, len(got), len(want))
		}
	}
	if e := up.events[0]; e.Depth != 1 {
		t.Errorf("above, the first event has depth %d", e.Depth)
	}
}

// One event alone may be larger than all that is held in memory: a person pastes a file.
func TestAnEventThatIsLargerThanWhatIsHeld(t *testing.T) {
	s := newStream(t.TempDir())
	huge := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 2*backlogAfter))
	var want []string
	for i, text := range []string{`{}`, huge, `{}`, huge, huge, `{}`} {
		s.add(uint64(i+1), []Event{{ID: fmt.Sprintf("1.%d-0", i+1), Type: "x", Task: "t", Seq: uint64(i + 1), Data: []byte(text)}})
		want = append(want, text)
		if s.old.held > backlogAfter && !s.old.refused {
			t.Errorf("behind event %d, %d bytes are held", i+1, s.old.held)
		}
	}
	s.end()
	if diff := cmp.Diff(want, data(t.Context(), s)); diff != "" {
		t.Errorf("other events came (%d bytes of difference)", len(diff))
	}
}

// Without a folder, or with one that takes nothing, events stay in memory.
func TestEventsStayInMemoryWhenTheyMust(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for _, dir := range []string{"", gone} {
		s := newStream(dir)
		for i := range uint64(30) {
			s.add(i+1, large(i+1))
		}
		s.end()
		if got := data(t.Context(), s); len(got) != 30 || len(got[0]) < backlogAfter/10 {
			t.Errorf("%q: %d events came", dir, len(got))
		}
	}
}

// What cannot be read any more is said, and ends the listening: nothing is left out
// in silence.
func TestEventsThatCannotBeRead(t *testing.T) {
	s := newStream(t.TempDir())
	for i := range uint64(30) {
		s.add(i+1, large(i+1))
	}
	if s.old.file == nil {
		t.Skip("events cannot be put away here")
	}
	if err := s.old.file.Truncate(int64(len(large(1)[0].Data)) * 2); err != nil {
		t.Fatal(err)
	}
	s.end()
	got := data(t.Context(), s)
	if len(got) != 3 || !strings.Contains(got[2], "cannot be shown any more") {
		t.Errorf("%d events came, the last is %.200s", len(got), got[len(got)-1])
	}
	if err := s.old.file.Close(); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}
