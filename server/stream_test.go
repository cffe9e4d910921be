package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store/trash"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

type refOf = store.Ref

// Behind whichever event a client comes back, it gets the rest: by header, by query, the
// header first.
func TestRuleB25EveryCursorGivesTheRest(t *testing.T) {
	g := newBench(t)
	g.run(engine.Request{Task: g.id, Text: "again"})
	want := g.events()
	for i, f := range want {
		for name, s := range map[string]*stream{
			"header": g.follow(g.path("/events"), "Last-Event-ID: "+f.ID),
			"query":  g.follow(g.path("/events?after=%s", f.ID)),
			"both":   g.follow(g.path("/events?after=0"), "Last-Event-ID: "+f.ID),
		} {
			if diff := firstDifference(want[i+1:], s.take(len(want)-1-i)); diff != "" {
				t.Fatalf("behind %s by %s: %s", f.ID, name, diff)
			}
			s.resp.Body.Close()
		}
	}
	// The number of a commit is behind all of it.
	seq := strings.SplitN(strings.SplitN(want[len(want)-1].ID, ".", 2)[1], "-", 2)[0]
	var rest []frame
	for _, f := range want {
		if strings.HasPrefix(f.ID, "2."+seq+"-") {
			rest = append(rest, f)
		}
	}
	var before int
	if _, err := fmt.Sscan(seq, &before); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rest, g.follow(g.path("/events?after=%d", before-1)).take(len(rest))); diff != "" {
		t.Error(diff)
	}
}

// Without a cursor only what comes from now on is told, and all of that.
func TestLiveOnly(t *testing.T) {
	g := newBench(t)
	old := len(g.events())
	s, cut := g.follow(g.path("/events")), g.follow(g.path("/events"))
	id := ""
	for id == "" { // one that is cut off before the first event
		id, _ = strings.CutPrefix(strings.TrimSpace(fixture.Must[string](t)(cut.in.ReadString('\n'))), "id: ")
		if strings.Contains(id, ":") || strings.Contains(id, " ") || strings.HasPrefix(id, "retry") {
			id = ""
		}
	}
	cut.resp.Body.Close()
	g.run(engine.Request{Task: g.id, Text: "again"})
	want := g.events()[old:]
	if diff := firstDifference(want, s.take(len(want))); diff != "" {
		t.Error(diff)
	}
	if diff := firstDifference(want, g.follow(g.path("/events"), "Last-Event-ID: "+id).take(len(want))); diff != "" {
		t.Errorf("cut off before the first event: %s", diff)
	}
}

// A cursor that names no event of the log gets how the task stands, and what comes.
func TestUnknownCursorGetsASnapshot(t *testing.T) {
	g := newBench(t)
	want := g.events()
	last := want[len(want)-1]
	for _, cursor := range []string{"9.3-0", "1.99999-0", "1.3-99", "99999"} {
		s := g.follow(g.path("/events?after=%s", cursor))
		f := s.take(1)[0]
		if f.Type != "stream.snapshot" || f.ID != last.ID || !strings.Contains(f.Data, `"task":{"id":"`+g.id+`"`) {
			t.Errorf("%s: got %+v, want f.Type = \"stream.snapshot\" and f.ID = last.ID and strings.Contains(f.Data, `\"task\":{\"id\":\"`+g.id+`\"`)",
				cursor, f)
		}
		s.resp.Body.Close()
	}
	s := g.follow(g.path("/events?after=9.3-0"))
	s.take(1)
	g.run(engine.Request{Task: g.id, Text: "again"})
	now := g.events()
	if diff := firstDifference(now[len(want):], s.take(len(now)-len(want))); diff != "" {
		t.Errorf("behind the snapshot: %s", diff)
	}
}

// One more stream than there may be is refused with a status, and let in when another
// ended.
func TestRuleB25StreamsAreBounded(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.MaxPerClient = 2 })
	first := g.follow(g.path("/events"))
	g.follow(g.path("/events"))
	p := g.refused(429, "too_many_streams", "GET", g.path("/events"))
	if !p.Retryable {
		t.Error("it can be tried again")
	}
	g.get(g.path("")) // other requests are none
	first.resp.Body.Close()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		resp := g.ask("GET", g.path("/events"))
		if resp.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the place of a stream that ended stays taken")
		}
	}
}

// A follower that does not read is cut off. It slows neither the task nor the others,
// and nothing is kept for it.
func TestRuleB25StuckFollowerIsCutOff(t *testing.T) {
	// On a busy machine who reads may stand still for so long, too: it is given longer then.
	for limit := 2 * time.Second; ; limit *= 4 {
		why := stuckFollower(t, limit)
		if why != "" && limit < 30*time.Second {
			continue
		}
		if why != "" {
			t.Error(why)
		}
		return
	}
}

// stuckFollower says what went wrong with a follower beside one that does not read.
func stuckFollower(t *testing.T, limit time.Duration) string {
	g := newBench(t, func(o *testOptions) { o.WriteTimeout = limit })
	conn := fixture.Must[net.Conn](t)(net.Dial("tcp", strings.TrimPrefix(g.url, "http://")))
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", g.path("/events?after=0"), g.token)
	line := fixture.Must[string](t)(bufio.NewReaderSize(conn, 16).ReadString('\n'))
	if !strings.Contains(line, "200") {
		t.Fatal(line)
	}
	quick := g.follow(g.path("/events"))
	owned := fixture.Must[*store.Owned](t)(g.store.Own(t.Context(), fixture.Must[refOf](t)(g.store.Find(t.Context(), g.id))))
	old := len(g.events())
	message := owned.Task.State().NextMessage()
	const large = 60
	got := make(chan []frame, 1)
	go func() {
		var out []frame
		for len(out) < large+1 {
			f, ok := quick.next()
			if !ok {
				break
			}
			out = append(out, f)
		}
		got <- out
	}()
	for i := range large {
		raw := fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":%q}`, i+1, strings.Repeat("x", 200_000))
		if err := owned.Task.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: message + uint64(i), Body: task.Body{Raw: raw}}); err != nil {
			t.Fatal(err)
		}
		if err := owned.Task.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := firstDifference(g.events()[old-1:], <-got); diff != "" { // and the opening of the epoch
		return "the other follower: " + diff
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		g.srv.streams.mu.Lock()
		open := g.srv.streams.now
		g.srv.streams.mu.Unlock()
		if open == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d streams are open: the stuck one was not cut off", open)
		}
	}
	// And the one that is left is the one that reads.
	g.run(engine.Request{Task: g.id, Text: "again"})
	if f, ok := quick.next(); !ok {
		return fmt.Sprintf("the one that reads was cut off: %+v", f)
	}
	if _, size := g.srv.service.Topics(); size > 5<<20 {
		t.Errorf("the topics keep %d bytes, want at most 5 MiB", size)
	}
	return ""
}

// A server that stops tells its followers, and ends although they would stay.
func TestRuleB14StoppingEndsStreams(t *testing.T) {
	g := newBench(t)
	l := fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	srv := fixture.Must[*Server](t)(New(Options{Service: service.New(g.store, nil, service.Options{}), Token: g.token}))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	g.url = "http://" + l.Addr().String()
	want := g.events()
	s := g.follow(g.path("/events?after=0"))
	s.take(len(want))
	cancel()
	f, ok := s.next()
	if !ok || f.Type != "stream.end" || f.ID != "" || !strings.Contains(f.Data, "server_stopping") {
		t.Errorf(`got %v %+v, want ok and f.Type = "stream.end" and f.ID = "" and strings.Contains(f.Data, "server_stopping")`,
			ok, f)
	}
	if f, ok := s.next(); ok {
		t.Errorf("behind the end: %+v", f)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// A quiet stream says that it lives, and a task that goes away ends it.
func TestHeartbeatAndTheEndOfATask(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.Heartbeat = 20 * time.Millisecond })
	s := g.follow(g.path("/events"))
	for beats := 0; beats < 3; {
		if line := fixture.Must[string](t)(s.in.ReadString('\n')); line == ": heartbeat\n" {
			beats++
		}
	}
	if _, err := trash.Delete(t.Context(), g.store, fixture.Must[refOf](t)(g.store.Find(t.Context(), g.id))); err != nil {
		t.Fatal(err)
	}
	var last frame
	for f, ok := s.next(); ok; f, ok = s.next() {
		last = f
	}
	if last.Type != "stream.end" || !strings.Contains(last.Data, "task_gone") {
		t.Errorf(`got %+v, want last.Type = "stream.end" and strings.Contains(last.Data, "task_gone")`, last)
	}
	g.refused(404, "task_not_found", "GET", g.path("/events"))
}

// A task that has no log yet is followed all the same: what comes, comes.
func TestFollowingBeforeThereIsALog(t *testing.T) {
	g := newBench(t)
	dir, away := filepath.Dir(journalPath(g)), t.TempDir()
	var moved []string // a lock's record or an index alone would say that a journal was deleted
	for _, name := range []string{"journal.jsonl", "journal.idx", "journal.lock", "projection.json", "blobs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			moved = append(moved, name)
		}
	}
	for _, name := range slices.Backward(moved) {
		rename(t, filepath.Join(dir, name), filepath.Join(away, name))
	}
	s := g.follow(g.path("/events?after=0"))
	for _, name := range moved {
		rename(t, filepath.Join(away, name), filepath.Join(dir, name))
	}
	want := g.events()
	if diff := firstDifference(want, s.take(len(want))); diff != "" {
		t.Error(diff)
	}
}

// Many followers of one task share one reading of its log, and each has all of it.
func TestFollowersShareAFeed(t *testing.T) {
	g := newBench(t)
	const followers = 60
	var wait sync.WaitGroup
	streams := make([]*stream, followers)
	for i := range streams {
		streams[i] = g.follow(g.path("/events?after=%d", i%3))
	}
	if n, _ := g.srv.service.Topics(); n != 1 {
		t.Errorf("%d topics, want 1", n)
	}
	g.run(engine.Request{Task: g.id, Text: "again"})
	all := g.events()
	for i, s := range streams {
		wait.Go(func() {
			want := all
			for len(want) > 0 && seqOf(want[0]) <= uint64(i%3) {
				want = want[1:]
			}
			var got []frame
			for len(got) < len(want) {
				f, ok := s.next()
				if !ok {
					break
				}
				got = append(got, f)
			}
			if diff := firstDifference(want, got); diff != "" {
				t.Errorf("follower %d: %s", i, diff)
			}
			s.resp.Body.Close()
		})
	}
	wait.Wait()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if n, _ := g.srv.service.Topics(); n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a feed stays although nobody follows")
		}
	}
}

func seqOf(f frame) (seq uint64) {
	c, _ := events.ParseCursor(f.ID)
	return c.Seq
}

// A log is not trusted to be well made: nothing in it may begin a line of the stream.
func TestHostileLogs(t *testing.T) {
	for _, c := range []struct{ typ, data, want string }{
		{"message.added", `{"a":1}`, "id: 1.2-0\nevent: message.added\ndata: {\"a\":1}\n\n"},
		{"x\nid: 9", `{"a":1}`, "id: 1.2-0\ndata: {\"a\":1}\n\n"},
		{"", `{"a":1}`, "id: 1.2-0\ndata: {\"a\":1}\n\n"},
		{"x", "{\"a\":\r1,\n\"b\":2}", "id: 1.2-0\nevent: x\ndata: {\"a\":1,\"b\":2}\n\n"},
		{"x", "no json\nevent: y\r\rdata: z", "id: 1.2-0\nevent: x\ndata: no json event: y  data: z\n\n"},
	} {
		got := events.AppendFrame(nil, "1.2-0", c.typ, []byte(c.data))
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("got %q %q:\n%s, want diff = \"\"", c.typ, c.data, diff)
		}
	}
	if events.PlainType(strings.Repeat("a", 3)+"\r") || !events.PlainType("run.ended") || events.PlainType("A") {
		t.Error("the names of events")
	}
}
