package postgres_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// childServer makes the test program a server of a history.
const childServer = "POSTGRES_TEST_CHILD_SERVER"

const historyServers = 3

// history is what servers did that work on the same journals.
type history struct {
	urls [historyServers]string

	mu      sync.Mutex
	events  []event
	reached map[string]uint64 // by incarnation and journal: how far its follower has come
	stopped int
	looked  int           // events that a test has looked at
	changed chan struct{} // closed at each new event

	servers [historyServers]*running
	born    int
	readers sync.WaitGroup
}

type running struct {
	id    string
	cmd   *exec.Cmd
	input io.Closer
}

// run starts the servers; urls are the addresses of the database for each of them.
func run(t *testing.T, urls [historyServers]string) *history {
	h := &history{urls: urls, reached: map[string]uint64{}, changed: make(chan struct{})}
	t.Cleanup(func() {
		for i := range h.servers {
			h.kill(i)
		}
		h.readers.Wait()
	})
	for i := range h.servers {
		h.start(t, i)
	}
	return h
}

func (h *history) start(t *testing.T, i int) {
	t.Helper()
	h.born++
	s := &running{id: fmt.Sprintf("%d.%d", i, h.born), cmd: exec.Command(os.Args[0])}
	s.cmd.Env = append(os.Environ(), childURL+"="+h.urls[i], childServer+"="+s.id)
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.input = in
	h.servers[i] = s
	h.readers.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line of a process that was killed may be cut
				e.Server = i
				h.add(s.id, e)
			}
		}
	})
}

func (h *history) add(id string, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Phase {
	case "followed":
		h.reached[id+e.Journal] = e.Seq
	case "stopped":
		h.stopped++
	}
	h.events = append(h.events, e)
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait returns when is true of the history, or false when the time is up.
func (h *history) wait(limit time.Duration, is func() bool) bool {
	end := time.After(limit)
	for {
		h.mu.Lock()
		ok, changed := is(), h.changed
		h.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-end:
			return false
		}
	}
}

func (h *history) kill(i int) {
	if s := h.servers[i]; s != nil {
		_ = s.cmd.Process.Kill() // it runs until it is killed
		_ = s.cmd.Wait()
	}
}

// sleep stops a server for longer than its leases, and wakes it when another one has just taken a journal.
func (h *history) sleep(i int) {
	pid := h.servers[i].cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it runs
	time.Sleep(historyLease)
	h.mu.Lock()
	seen := len(h.events)
	h.mu.Unlock()
	h.wait(2*historyLease, func() bool {
		for ; seen < len(h.events); seen++ {
			if e := h.events[seen]; e.Phase == "taken" && e.Server != i {
				return true
			}
		}
		return false
	})
	_ = syscall.Kill(pid, syscall.SIGCONT) // it is stopped
}

// end lets the servers finish, and judges what they did. db leads to what the database keeps. Fewer owners
// or appends would mean nothing.
func (h *history) end(t *testing.T, db *postgres.Journals, owners int) {
	t.Helper()
	for _, s := range h.servers {
		_ = s.input.Close() // a server that was killed does not read it
	}
	if !h.wait(30*time.Second, func() bool { return h.stopped == historyServers }) {
		t.Fatal("a server did not come to its end")
	}
	journals := map[string]*kept{}
	for i := range historyJournals {
		name := fmt.Sprintf("journal-%d", i)
		journals[name] = h.kept(t, db, name)
		head := uint64(len(journals[name].log))
		if !h.wait(30*time.Second, func() bool {
			for _, s := range h.servers {
				if h.reached[s.id+name] < head {
					return false
				}
			}
			return true
		}) {
			t.Errorf("%s: a follower has not come to its end, commit %d", name, head)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]int{}
	for _, e := range h.events {
		count[e.Kind+" "+e.Result]++
		if e.Journal == "" {
			continue
		}
		switch log := journals[e.Journal].log; {
		case e.Result == resultDamaged:
			t.Errorf("%s: server %d read a log with a gap, or with epochs that fall, after commit %d", e.Journal, e.Server, e.Seq)
		case e.Kind == kindFollow && (e.Seq > uint64(len(log)) || e.Log != log[e.Seq-1]):
			t.Fatalf("%s: a follower on server %d got commits up to %d that are not in the log", e.Journal, e.Server, e.Seq)
		}
	}
	t.Logf("%d events: %v", len(h.events), count)
	if count["append ok"] < 100 || count["own ok"] < owners {
		t.Errorf("got %d appends and %d owners, too few", count["append ok"], count["own ok"])
	}
	verdict, info := porcupine.CheckOperationsVerbose(model, operations(h.events, journals), time.Minute)
	if verdict != porcupine.Ok {
		picture := filepath.Join(t.ArtifactDir(), "history.html")
		if err := porcupine.VisualizePath(model, info, picture); err != nil {
			t.Error(err)
		}
		t.Errorf("the history is %s, want Ok; go test -artifacts keeps its picture %s", verdict, picture)
	}
}

// kept owns a journal once more and reads it. The history gets both.
func (h *history) kept(t *testing.T, db *postgres.Journals, name string) *kept {
	t.Helper()
	k := &kept{seq: map[string]uint64{}, epoch: map[string]uint64{}}
	note := func(e event, phase string) {
		e.At, e.Server, e.Journal, e.Phase, e.Result = monotonic(), historyServers, name, phase, resultOK
		h.add("the test", e)
	}
	e := event{Kind: kindOwn, Op: "last own of " + name}
	note(e, "call")
	var o journal.Owner
	for end := time.Now().Add(30 * time.Second); o == nil; time.Sleep(20 * time.Millisecond) {
		var err error
		o, err = db.Own(t.Context(), name, postgres.OwnOptions{
			By:       e.Op,
			Existing: true,
			Meets: func(head uint64) error {
				e.Seq = head
				note(e, "taken")
				return nil
			},
		})
		if err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer o.Close() //nolint:errcheck // nothing waits
	e.Seq++
	note(e, "done")
	k.last = o.Epoch()
	e = event{Kind: kindRead, Op: "last reading of " + name}
	note(e, "call")
	for c, err := range o.Read(t.Context(), 1) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e.Seq, e.Log = c.Seq, extended(e.Log, c.By, c.Epoch)
		k.log = append(k.log, e.Log)
		k.seq[c.By] = c.Seq
		if strings.Contains(string(c.Events[0]), "epoch.opened") {
			k.epoch[c.By] = c.Epoch
		}
	}
	note(e, "done")
	return k
}

// Servers that are killed, sleep past their leases and lose their connections do what one journal with one owner at a time
// would do.
func TestHistory(t *testing.T) {
	t.Parallel() // it mostly waits
	c := pgtest.Shared(t)
	direct := c.Database(t)
	db := open(t, direct, postgres.Options{})
	var urls [historyServers]string
	var proxies [historyServers]*proxy
	for i := range urls {
		proxies[i] = newProxy(t, fmt.Sprintf("127.0.0.1:%d", c.Port))
		urls[i] = proxies[i].url(t, direct)
	}
	h := run(t, urls)
	length := 10 * time.Second
	if testing.Short() {
		length = 5 * time.Second
	}
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(100*time.Millisecond + rand.N(300*time.Millisecond)) {
		switch i := rand.IntN(historyServers); rand.IntN(5) {
		case 0:
			h.kill(i)
			h.start(t, i)
		case 1, 2:
			h.sleep(i)
		case 3:
			proxies[i].cut(true)
		default:
			proxies[i].cut(false)
		}
	}
	h.end(t, db, 6)
}
