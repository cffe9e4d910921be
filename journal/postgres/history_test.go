package postgres_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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

// end lets the servers finish, and judges what they did. db leads to what the database keeps.
func (h *history) end(t *testing.T, db *postgres.Journals) {
	t.Helper()
	for _, s := range h.servers {
		_ = s.input.Close() // a server that was killed does not read it
	}
	if !h.wait(30*time.Second, func() bool { return h.stopped == historyServers }) {
		t.Fatal("a server did not come to its end")
	}
	logs := map[string][]uint64{}
	for i := range historyJournals {
		name := fmt.Sprintf("journal-%d", i)
		logs[name] = h.kept(t, db, name)
		head := uint64(len(logs[name]))
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
		switch log := logs[e.Journal]; {
		case e.Result == resultDamaged:
			t.Errorf("%s: server %d read a log with a gap, or with epochs that fall, after commit %d", e.Journal, e.Server, e.Seq)
		case e.Kind == kindFollow && (e.Seq > uint64(len(log)) || e.Log != log[e.Seq-1]):
			t.Fatalf("%s: a follower on server %d got commits up to %d that are not in the log", e.Journal, e.Server, e.Seq)
		}
	}
	t.Logf("%d events: %v", len(h.events), count)
	if count["append ok"] < 100 || count["own ok"] < 6 {
		t.Errorf("got %d appends and %d owners, too few for the test to mean anything", count["append ok"], count["own ok"])
	}
	verdict, info := porcupine.CheckOperationsVerbose(model, operations(h.events), time.Minute)
	if verdict != porcupine.Ok {
		picture := filepath.Join(t.ArtifactDir(), "history.html")
		if err := porcupine.VisualizePath(model, info, picture); err != nil {
			t.Error(err)
		}
		t.Errorf("the history is %s, want Ok; go test -artifacts keeps its picture %s", verdict, picture)
	}
}

// kept are the hashes of a log, commit after commit. The history gets the reading.
func (h *history) kept(t *testing.T, db *postgres.Journals, name string) (log []uint64) {
	t.Helper()
	s := &historyServer{id: "end-" + name}
	r, err := db.OpenReader(t.Context(), name, nil)
	if errors.Is(err, journal.ErrNotFound) {
		t.Fatalf("nobody owned %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // nothing was written
	var hash uint64
	for c, err := range r.Read(t.Context(), 1) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hash = extended(hash, c.By, c.Epoch)
		log = append(log, hash)
	}
	e := event{Kind: kindRead, Journal: name, Op: s.id, Phase: "call", At: monotonic()}
	h.add(s.id, e)
	e.Phase, e.Result, e.Seq, e.Log, e.At = "done", resultOK, uint64(len(log)), hash, monotonic()
	h.add(s.id, e)
	return log
}

// Servers that are killed, sleep past their leases and lose their connections do what one journal with one owner at a time
// would do.
func TestHistory(t *testing.T) {
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
	length := 12 * time.Second
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
	h.end(t, db)
}
