package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// roleEnv makes this test binary a server or somebody who writes a task.
const roleEnv = "ROOST_TEST_ROLE"

func play(role string) int {
	dir := os.Getenv("ROOST_TEST_DIR")
	s, err := store.Open(store.Options{Root: filepath.Join(dir, "root"), Cache: filepath.Join(dir, "cache"), Program: "test"})
	if err == nil {
		switch role {
		case "server":
			err = playServer(s)
		case "worker":
			err = playWorker(s)
		case "writer":
			err = playWriter(s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		return 1
	}
	return 0
}

// playServer serves until it is killed.
func playServer(s *store.Store) error {
	token, err := Token(s.Root(), false)
	if err != nil {
		return err
	}
	srv, err := New(Options{Store: s, Token: token, Heartbeat: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", os.Getenv("ROOST_TEST_LISTEN"))
	if err != nil {
		return err
	}
	return srv.Serve(context.Background(), l)
}

// playWriter writes a task: commits of some events each, some of them large.
func playWriter(s *store.Store) error {
	commits, err := strconv.Atoi(os.Getenv("ROOST_TEST_COMMITS"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	owned, err := s.Create(ctx, task.Created{Origin: "cli", Number: 1, CreatedAt: time.Now().UnixMilli(), Settings: task.Settings{Workspace: "/w"}})
	if err != nil {
		return err
	}
	if err := owned.Barrier(ctx); err != nil {
		return err
	}
	fmt.Println(owned.Ref.ID)
	message := owned.State().NextMessage()
	for i := range commits {
		var events []task.Event
		for j := range 1 + i%7 {
			words := strings.Repeat(fmt.Sprintf("word %d.%d é ", i, j), 1+(i*j)%60)
			if i%97 == 50 && j == 0 {
				words = strings.Repeat("large ", 60_000) // more than a line of the log takes
			}
			raw := fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":%q}`, 1700000000000+i, words)
			events = append(events, task.MessageAdded{History: task.UI, Message: message, Body: task.Body{Raw: raw}})
			message++
		}
		if err := owned.Commit(ctx, events...); err != nil {
			return err
		}
		if i%3 == 0 {
			if err := owned.Barrier(ctx); err != nil {
				return err
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return owned.Close(ctx)
}

// child is one process of the test.
func child(t *testing.T, role, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleEnv+"="+role, "ROOST_TEST_DIR="+dir, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// proxy stands between clients and a server: it splits what the server says, holds it
// up, and cuts connections at random.
type proxy struct {
	net.Listener
	to   string
	wait sync.WaitGroup
	mu   sync.Mutex
	rand *rand.Rand
	calm bool
}

func (p *proxy) number(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.IntN(n)
}

func (p *proxy) run() {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.carry(conn) })
	}
}

func (p *proxy) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return // it was killed just now
	}
	defer server.Close()
	p.wait.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	p.mu.Lock()
	left := 1 << 40
	if !p.calm {
		left = 200 + p.rand.IntN(1<<(10+p.rand.IntN(12)))
	}
	p.mu.Unlock()
	buf := make([]byte, 8<<10)
	for left > 0 {
		n, err := server.Read(buf[:min(left, 1+p.number(len(buf)))])
		left -= n
		for at := 0; at < n; {
			part := min(n-at, 1+p.number(4000))
			if _, err := client.Write(buf[at : at+part]); err != nil {
				return
			}
			at += part
		}
		if p.number(40) == 0 {
			time.Sleep(time.Duration(p.number(8)) * time.Millisecond)
		}
		if err != nil {
			return
		}
	}
}

// source is what a browser's EventSource does: it comes back with the last id it saw.
type source struct {
	url, token, last string
	got              []frame
	cuts, fed        int // connections, and those that gave an event
	byQuery          bool
}

func (s *source) until(ctx context.Context, last string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil && s.last != last {
		if err := s.connect(ctx, client, last); err != nil {
			return err
		}
		s.cuts++
	}
	return ctx.Err()
}

func (s *source) connect(ctx context.Context, client *http.Client, last string) error {
	after := "0"
	if s.byQuery && s.last != "" {
		after = s.last
	}
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"?after="+after, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if !s.byQuery && s.last != "" {
		req.Header.Set("Last-Event-ID", s.last)
	}
	resp, err := client.Do(req)
	if err != nil {
		time.Sleep(20 * time.Millisecond) // nobody is there just now
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode == http.StatusServiceUnavailable {
			return nil
		}
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	before := len(s.got)
	defer func() {
		if len(s.got) > before {
			s.fed++
		}
	}()
	for in := bufio.NewReader(resp.Body); s.last != last; {
		f, err := readFrame(in)
		if err != nil {
			return nil
		}
		if f.ID == "" {
			return fmt.Errorf("an event without an id: %+v", f)
		}
		s.got, s.last = append(s.got, f), f.ID
	}
	return nil
}

// Another process writes a task; the server is killed again and again; between it and
// its clients everything is cut, split and held up: each client ends with exactly the
// events of the journal, byte for byte.
func TestChaos(t *testing.T) {
	for range 4 { // on a busy machine everything may be cut before it gave anything
		enough := false
		if !t.Run("", func(t *testing.T) { enough = chaos(t) }) || enough {
			return
		}
	}
	t.Error("nothing was ever cut")
}

// chaos reports whether connections that gave events were cut often enough.
func chaos(t *testing.T) (enough bool) {
	commits, clients, kills := 900, 8, 6
	if testing.Short() {
		commits, clients, kills = 300, 4, 3
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(dir, "root"), Cache: filepath.Join(dir, "cache"), Program: "test"}))
	token := must[string](t)(Token(s.Root(), false))
	first := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := first.Addr().String()
	first.Close()

	writer := child(t, "writer", dir, "ROOST_TEST_COMMITS="+strconv.Itoa(commits))
	out := must[io.ReadCloser](t)(writer.StdoutPipe())
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(must[string](t)(bufio.NewReader(out).ReadString('\n')))

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

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	last := make(chan string)
	var crowd sync.WaitGroup
	all := make([]*source, clients)
	for i := range all {
		all[i] = &source{url: "http://" + p.Addr().String() + "/v1/tasks/" + id + "/events", token: token, byQuery: i%2 == 1}
		crowd.Go(func() {
			// First without knowing where the end is, then up to it.
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
		time.Sleep(time.Duration(50+p.number(400)) * time.Millisecond)
		_ = running.Process.Kill()
		_ = running.Wait()
		running = server()
	}
	if err := writer.Wait(); err != nil {
		t.Error(err)
	}
	want := journalOf(t, s, id)
	p.mu.Lock()
	p.calm = true // a server that is killed at every third event never ends a large one
	p.mu.Unlock()
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
	return fed >= 2*clients
}

func firstDifference(want, got []frame) string {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			var w, g frame
			if i < len(want) {
				w = want[i]
			}
			if i < len(got) {
				g = got[i]
			}
			w.Data, g.Data = w.Data[:min(len(w.Data), 300)], g.Data[:min(len(g.Data), 300)]
			return fmt.Sprintf("at %d (-want +got):\n%s", i, cmp.Diff(w, g))
		}
	}
	return ""
}

// A stream that is cut at every byte and taken up again behind the last whole event
// gives the same as one that is not.
func TestCutAtEveryByte(t *testing.T) {
	g := newGround(t)
	want := g.events()
	resp := g.ask("GET", g.path("/events?after=0"))
	var whole bytes.Buffer
	for in := bufio.NewReader(resp.Body); ; {
		line := must[string](t)(in.ReadString('\n'))
		if whole.WriteString(line); strings.HasPrefix(line, "id: "+want[len(want)-1].ID) {
			whole.WriteString(must[string](t)(in.ReadString('\n')) + must[string](t)(in.ReadString('\n')) + "\n")
			break
		}
	}
	rest := map[string][]frame{} // what comes behind each id, asked of the server once
	for i, f := range want {
		rest[f.ID] = g.follow(g.path("/events"), "Last-Event-ID: "+f.ID).take(len(want) - 1 - i)
	}
	rest[""] = want
	for cut := 0; cut <= whole.Len(); cut += 1 + cut/500 {
		var got []frame
		last := ""
		for in := bufio.NewReader(bytes.NewReader(whole.Bytes()[:cut])); ; {
			f, err := readFrame(in)
			if err != nil {
				break
			}
			got, last = append(got, f), f.ID
		}
		if diff := firstDifference(want, append(got, rest[last]...)); diff != "" {
			t.Fatalf("cut at byte %d: %s", cut, diff)
		}
	}
}
