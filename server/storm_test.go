package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
)

// A storm is a server that is killed and started again and again, and clients that follow
// it through a proxy that cuts, splits and holds up what they get.
type storm struct {
	*testing.T
	store   *store.Store
	size    stormSize
	dir     string
	token   string
	proxy   *proxy
	running *exec.Cmd
	proxied sync.WaitGroup
	crowd   sync.WaitGroup
	all     []*source
	last    chan string
}

// stormSize is how much of everything there is.
type stormSize struct {
	commits, clients, kills int
	pause                   int // ms, the most between two kills, beside 50
}

// full makes a storm as large as was asked for, when ROOST_CHAOS=full says so: 50 clients,
// 20 kills, and commits for 10,000 events.
func (s stormSize) full(commits int) stormSize {
	if os.Getenv("ROOST_CHAOS") != "full" {
		return s
	}
	return stormSize{commits: commits, clients: 50, kills: 20, pause: 1500}
}

// patience is how long all of it may take, in times of the usual: the full size reads some
// hundred megabytes piece by piece.
func (c *storm) patience(times int) time.Duration {
	if c.size.clients == 50 {
		times *= 5
	}
	return time.Duration(times) * patience
}

// slowness is the writer's pause between two times that it waits for the disk: it writes as
// long as the server is killed.
func (s stormSize) slowness() time.Duration {
	return time.Duration(s.kills*(50+s.pause/2)) * time.Millisecond / time.Duration(s.commits/3+1)
}

// gather makes a store, its server and the proxy before it.
func gather(t *testing.T, size stormSize) *storm {
	t.Helper()
	c := &storm{T: t, size: size, dir: t.TempDir(), last: make(chan string)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c.store = fixture.Must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(c.dir, "root"), State: filepath.Join(c.dir, "root.state"), Cache: filepath.Join(c.dir, "cache"), Program: "test"}))
	c.token = fixture.Must[string](t)(Token(c.store.Root(), false))
	c.proxy = &proxy{Listener: fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), rand: rand.New(rand.NewPCG(seed, 1))}
	c.proxied.Go(c.proxy.run)
	c.serve()
	return c
}

func (c *storm) serve() {
	c.Helper()
	c.running = child(c.T, "server", c.dir)
	to := listens(c.T, c.running)
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.proxy.to = to
}

func (c *storm) kill() {
	_ = c.running.Process.Kill()
	_ = c.running.Wait()
}

// writer starts who writes a task.
func (c *storm) writer(env ...string) (*exec.Cmd, *bufio.Reader) {
	c.Helper()
	w := child(c.T, "writer", c.dir, append(env, fmt.Sprint("ROOST_TEST_COMMITS=", c.size.commits), fmt.Sprint("ROOST_TEST_PAUSE=", c.size.slowness()))...)
	out := fixture.Must[io.ReadCloser](c.T)(w.StdoutPipe())
	if err := w.Start(); err != nil {
		c.Fatal(err)
	}
	return w, bufio.NewReader(out)
}

// follow lets the crowd follow a path: first without knowing where the end is, then up to it.
func (c *storm) follow(ctx context.Context, path string) {
	c.all = make([]*source, c.size.clients)
	for i := range c.all {
		c.all[i] = &source{url: "http://" + c.proxy.Addr().String() + path, token: c.token, byQuery: i%2 == 1}
		c.crowd.Go(func() {
			live, stop := context.WithCancel(ctx)
			var follow sync.WaitGroup
			var err error
			follow.Go(func() { err = c.all[i].until(live, "never") })
			end := <-c.last
			stop()
			follow.Wait()
			if ctx.Err() == nil && live.Err() != nil {
				err = c.all[i].until(ctx, end)
			}
			if err != nil {
				c.Errorf("client %d: %v", i, err)
			}
		})
	}
}

// rage kills the server again and again.
func (c *storm) rage() {
	c.Helper()
	for range c.size.kills {
		time.Sleep(time.Duration(50+c.proxy.number(c.size.pause)) * time.Millisecond)
		c.kill()
		c.serve()
	}
}

// settle tells the crowd where the end is, waits for it, and checks that each client has
// exactly these events. It gives how many connections brought any.
func (c *storm) settle(want []frame) (fed int) {
	c.Helper()
	c.proxy.mu.Lock()
	c.proxy.calm = true // a server that is killed at every third event never ends a large one
	c.proxy.mu.Unlock()
	for range c.all {
		c.last <- want[len(want)-1].ID
	}
	c.crowd.Wait()
	c.kill()
	c.proxy.Close()
	c.proxied.Wait()
	c.proxy.wait.Wait()
	cuts := 0
	for i, one := range c.all {
		cuts, fed = cuts+one.cuts, fed+one.fed
		if diff := firstDifference(want, one.got); diff != "" {
			c.Errorf("client %d, %d events of %d, %d cuts: %s", i, len(one.got), len(want), one.cuts, diff)
		}
	}
	c.Logf("%d events, %d clients, %d kills, %d connections, %d of them gave events", len(want), len(c.all), c.size.kills, cuts, fed)
	return fed
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
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	server, err := net.Dial("tcp", to)
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
