package server

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
)

// Processes write tasks at once, one of them is killed; the server is killed and started
// again and again; between it and its clients everything is cut, split and held up: each
// client of the stream of all tasks ends with exactly the events of all journals, in one order.
// ROOST_CHAOS=full takes the numbers that were asked for.
func TestChaosOfAllTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	commits, clients, kills, pause := 120, 6, 3, 400
	if os.Getenv("ROOST_CHAOS") == "full" {
		commits, clients, kills, pause = 870, 50, 20, 1500
	} else if testing.Short() {
		commits, clients, kills = 40, 3, 2
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(dir, "root"), Cache: filepath.Join(dir, "cache"), Program: "test"}))
	token := must[string](t)(Token(s.Root(), false))
	first := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := first.Addr().String()
	first.Close()
	server := func() *exec.Cmd {
		cmd := child(t, "server", dir, "ROOST_TEST_LISTEN="+address)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	running := server()
	p := &proxy{Listener: must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), to: address, rand: rand.New(rand.NewPCG(seed, 1))}
	var proxied sync.WaitGroup
	proxied.Go(p.run)

	var writers []*exec.Cmd
	var outs []io.ReadCloser
	for i := range 4 {
		more := []string{"ROOST_TEST_COMMITS=" + strconv.Itoa(commits)}
		if i == 3 { // it dies between a sync and telling of it, in the middle of its task
			more = append(more, failpoint.Env+"=journal.synced:"+strconv.Itoa(commits/5))
		}
		w := child(t, "writer", dir, more...)
		outs = append(outs, must[io.ReadCloser](t)(w.StdoutPipe()))
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	last := make(chan string)
	var crowd sync.WaitGroup
	all := make([]*source, clients)
	for i := range all {
		all[i] = &source{url: "http://" + p.Addr().String() + "/v1/events", token: token, byQuery: i%2 == 1}
		crowd.Go(func() {
			live, stop := context.WithCancel(ctx)
			var follow sync.WaitGroup
			var err error
			follow.Go(func() { err = all[i].until(live, "never") })
			end := <-last
			stop()
			follow.Wait()
			if ctx.Err() == nil && live.Err() != nil {
				err = all[i].until(ctx, end)
			}
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	for range kills {
		time.Sleep(time.Duration(50+p.number(pause)) * time.Millisecond)
		_ = running.Process.Kill()
		_ = running.Wait()
		running = server()
	}
	var ids []string
	for i, w := range writers {
		out := must[[]byte](t)(io.ReadAll(outs[i]))
		if err := w.Wait(); (err == nil) != (i < 3) {
			t.Error(i, err)
		}
		ids = append(ids, strings.TrimSpace(string(out)))
	}
	journals := 0
	for _, id := range ids {
		journals += len(journalOf(t, s, id))
	}
	p.mu.Lock()
	p.calm = true // a server that is killed at every third event never ends a large one
	p.mu.Unlock()
	want := feedOf(t, s)
	for end := time.Now().Add(patience); len(want) < journals; want = feedOf(t, s) { // the server tells for the dead
		if time.Now().After(end) {
			t.Errorf("%d events of %d were told", len(want), journals)
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	asJournals(t, s, want, ids...)
	for range all {
		last <- want[len(want)-1].ID
	}
	crowd.Wait()
	_ = running.Process.Kill()
	_ = running.Wait()
	p.Close()
	proxied.Wait()
	p.wait.Wait()
	cuts, fed := 0, 0
	for i, c := range all {
		cuts, fed = cuts+c.cuts, fed+c.fed
		if diff := firstDifference(want, c.got); diff != "" {
			t.Errorf("client %d, %d events of %d, %d cuts: %s", i, len(c.got), len(want), c.cuts, diff)
		}
	}
	t.Logf("%d events, %d clients, %d kills, %d connections, %d of them gave events", len(want), clients, kills, cuts, fed)
}
