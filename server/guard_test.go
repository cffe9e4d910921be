package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/roost-dev/roost/events"
)

// What a browser says of where a request comes from.
func TestRequestsOfOtherSites(t *testing.T) {
	for _, c := range []struct {
		origin, site string
		foreign      bool
	}{
		{"", "", false}, // a program
		{"", "none", false},
		{"", "same-origin", false},
		{"", "same-site", true}, // another port of this machine is another server
		{"", "cross-site", true},
		{"http://127.0.0.1:7333", "", false},
		{"http://127.0.0.1:7334", "", true},
		{"http://LOCALHOST:7333", "", true},
		{"null", "same-origin", true}, // a page of a file
		{"://", "", true},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7333/v1/tasks", nil)
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if got := foreign(r); got != c.foreign {
			t.Errorf("Origin %q, Sec-Fetch-Site %q: foreign: %v", c.origin, c.site, got)
		}
	}
}

// A client's own id of a request is told everywhere, also in the log: only a sane one is.
func TestIDsOfRequests(t *testing.T) {
	for given, kept := range map[string]bool{
		"abc-1_2.Z": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\"b": false, "é": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(requestID, given)
		if got := idOf(r); (got == given) != kept || len(got) > 64 || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
}

// Weak tags are good enough for who asks whether something changed, and not for who changes it.
func TestTagsThatMatch(t *testing.T) {
	const tag = `"abc.9"`
	for _, c := range []struct {
		header         string
		weak, strongly bool
	}{
		{tag, true, true},
		{"W/" + tag, true, false},
		{`"abc.7"`, false, true}, // only the size on the disk is another
		{`"abd.9"`, false, false},
		{`W/"x", "abc.9"`, true, true},
		{"*", true, true},
		{"", false, false},
		{"abc.9", false, false},
	} {
		if got := matches([]string{c.header}, tag); got != c.weak {
			t.Errorf("If-None-Match: %s matches: %v", c.header, got)
		}
		if got := matchesStrongly([]string{c.header}, tag); got != c.strongly {
			t.Errorf("If-Match: %s matches: %v", c.header, got)
		}
	}
}

// An If-None-Match is for who reads: what a change answers is sent whole.
func TestOnlyWhatIsReadIsNotModified(t *testing.T) {
	for status, want := range map[int]int{http.StatusOK: http.StatusNotModified, http.StatusCreated: http.StatusCreated, http.StatusAccepted: http.StatusAccepted} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("If-None-Match", "*")
		w := httptest.NewRecorder()
		if err := respond(w, r, status, map[string]int{"a": 1}); err != nil {
			t.Fatal(err)
		}
		if w.Code != want || (w.Body.Len() > 0) != (want == status) {
			t.Errorf("%d became %d with %q", status, w.Code, w.Body)
		}
	}
}

// Streams are bounded for each client and in all, and a place is free as soon as it is left,
// once.
func TestPlacesOfStreams(t *testing.T) {
	s := newSlots(3, 2)
	enter := func(client string, want bool) func() {
		t.Helper()
		leave, left := s.enter(client)
		if (left == nil) != want {
			t.Fatalf("%s: got a place: %v, want %v", client, left == nil, want)
		}
		return leave
	}
	first := enter("a", true)
	enter("a", true)
	enter("a", false)
	last := enter("b", true)
	enter("c", false)
	first()
	first()
	enter("c", true)
	enter("a", false)
	last()
	if len(s.by) != 2 || s.now != 2 { // nobody is remembered who has none
		t.Errorf("got %+v, want len(s.by) = 2 and s.now = 2", s.by)
	}
}

// The id of an event that a follower did not want is told with the next heartbeat, unless one
// that it wanted came behind it: told then, it would lead back.
func TestAnIDThatWasSkippedNeverLeadsBack(t *testing.T) {
	s := &Server{running: t.Context()}
	f := &eventStream{s: s, shows: s.shows(t.Context()), wants: func(i events.Item) bool { return i.Type == "run.ended" }}
	for _, c := range []struct {
		one     events.Item
		skipped string
	}{
		{events.Item{Event: events.Event{Type: "run.started"}, Cursor: events.AfterCommit(1)}, "1"},
		{events.Item{Event: events.Event{Type: "message.delta"}, Live: true}, "1"},
		{events.Item{Event: events.Event{Type: "run.ended"}, Cursor: events.AfterCommit(2)}, ""},
		{events.Item{Event: events.Event{Type: "run.started"}, Cursor: events.AfterCommit(3)}, "3"},
	} {
		if err := f.give(c.one); err != nil || f.skipped != c.skipped {
			t.Errorf("behind %s %s: %q, %v", c.one.Type, c.one.Cursor, f.skipped, err)
		}
	}
}

// What stands between must hand events on as they come, and change none.
func TestStreamsArePassedOnAtOnce(t *testing.T) {
	g := newBench(t)
	for _, path := range []string{"/v1/events", g.path("/events")} {
		s := g.follow(path)
		want := map[string]string{"Content-Type": streamMedia, "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
		for name, value := range want {
			if got := s.resp.Header.Get(name); got != value {
				t.Errorf("%s: got %s: %q, want got = value", path, name, got)
			}
		}
		first := make([]byte, len("retry: 2000\n"))
		if _, err := io.ReadFull(s.in, first); err != nil || string(first) != "retry: 2000\n" {
			t.Errorf("%s begins with %q, %v", path, first, err)
		}
	}
	g.refused(http.StatusUnprocessableEntity, "validation_failed", http.MethodGet, "/v1/events?types="+strings.Repeat("run.ended,", 64)+"run.ended")
}

// A server of a group that listens on localhost has that name in its address.
func TestServersOfAGroupReachLocalhost(t *testing.T) {
	t.Parallel()
	g := newBench(t, func(o *testOptions) { o.Group = &Group{Token: "of the group"} })
	for address, want := range map[string]string{
		g.url: "", strings.Replace(g.url, "127.0.0.1", "localhost", 1): "", "http://example.org:7878": "has no TLS",
	} {
		err := g.srv.Reached(t.Context(), address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("reach %s: got %v, want an error with %q", address, err, want)
		}
	}
}
