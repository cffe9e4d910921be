package events

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/store/feed"
)

// A place is written in one way only, and read back as it was.
func TestPlacesInAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := at(rapid.Uint64Range(0, 1<<62).Draw(t, "epoch"), rapid.Uint64Range(1, 1<<62).Draw(t, "seq"), rapid.IntRange(0, 1<<30).Draw(t, "index"))
		w, ok := ParseCursor(m.String())
		if !ok || w != m || w.IsWhole() {
			t.Fatalf("%s: got %v %+v, want ok and w = m and not w.IsWhole()", m, ok, w)
		}
	})
	for _, bad := range []string{"", "1.2", "1.0-0", "1.2-", ".2-0", "1.2-0 ", "+1.2-0", "1.02-0", "1.2--1", "1.2-0-0", "-1", "1e3", "0x1", "１", "1.2-9999999999", "99999999999999999999"} {
		if w, ok := ParseCursor(bad); ok {
			t.Errorf("%q: got %+v, want not ok", bad, w)
		}
	}
	if w, ok := ParseCursor("0"); !ok || !w.IsStart() {
		t.Errorf("0 is %+v, want the start", w)
	}
	if w, ok := ParseCursor("7"); !ok || w != AfterCommit(7) || w.String() != "7" {
		t.Errorf("7 is %+v, want the place behind commit 7", w)
	}
}

// Cursors of the stream of all tasks are read as they are printed, and no other text is one.
func TestCursorsOfAllTasks(t *testing.T) {
	s := at(0, 7, 2)
	s.Line = feed.Place{Feed: "ab12", Segment: 3, Offset: 4096, Sum: 0xdeadbeef}
	got, ok := ParseAllCursor(s.String())
	if !ok || got != s {
		t.Errorf("%s: got %+v, want ok and got = s", s, got)
	}
	if got, ok := ParseAllCursor(afterLine(s.Line).String()); !ok || got != afterLine(s.Line) {
		t.Errorf("%s: got %+v, want the place behind the line", afterLine(s.Line), got)
	}
	if !s.Before(afterLine(s.Line)) || !(Cursor{}).Before(s) {
		t.Error("the event is not between the start and the place behind its line")
	}
	if got := (Cursor{}).String(); got != "0" {
		t.Errorf("the start is %q, want 0", got)
	}
}

func FuzzAllCursor(f *testing.F) {
	for _, text := range []string{"0", "a.1.2.3.4-5", "a.1.0.ffffffff.0-0", "..", "a.01.2.3.4-5", "a.1.2.3.4-99999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := ParseAllCursor(text)
		if ok && s.String() != text {
			t.Errorf("%q is read as %s", text, s)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "0", "17", "1.2-3", "01.2-3", "1.2-3-4", "99999999999999999999.1-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := ParseCursor(text); ok && c.String() != text {
			t.Fatalf("%q is read as %s", text, c)
		}
	})
}
