package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// ownServer is a roost serve of its own.
type ownServer struct {
	URL, Token string
	cmd        *exec.Cmd
	problems   bytes.Buffer
	ready      time.Duration // from its start until /readyz said so
	client     *http.Client
}

// startService starts roost serve and waits until it is ready.
func startService(ctx context.Context, o options, home string, args ...string) (*ownServer, error) {
	s := &ownServer{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	s.cmd = exec.CommandContext(ctx, o.roost, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "ROOST_ROOT="+filepath.Join(home, "roost"), "ROOST_CACHE="+filepath.Join(home, "cache"),
		"ROOST_SOURCES=none", "ANTHROPIC_API_KEY=bench")
	s.cmd.Stderr = &s.problems
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = 20 * time.Second
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, s)
	}
	if err == nil {
		_, err = s.ask(ctx, http.MethodGet, "/readyz", nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a server: %w\n%s", err, tail(s.problems.Bytes(), 2000)), s.stop())
	}
	s.ready = time.Since(begun)
	return s, nil
}

// ask sends a request, and reads the whole answer, which must be a success.
func (s *ownServer) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s\n%s", method, path, resp.Status, tail(text, 2000))
	}
	return text, err
}

// begin starts a task whose model is on loopback, and gives its id.
func (s *ownServer) begin(ctx context.Context, ws, model, words string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"workspace": ws, "provider": "anthropic", "model": "claude-sonnet-4-5", "base_url": model, "approve": "all",
		"message": map[string]string{"text": words},
	})
	if err != nil {
		return "", fmt.Errorf("begin a task: %w", err)
	}
	var got struct {
		ID string `json:"id"`
	}
	if body, err = s.ask(ctx, http.MethodPost, "/v1/tasks", body); err == nil {
		err = json.Unmarshal(body, &got)
	}
	return got.ID, err
}

// completes waits until a task is completed. It asks seldom: the server may be measured.
func (s *ownServer) completes(ctx context.Context, id string) error {
	var got struct{ Status string }
	for begun := time.Now(); got.Status != "completed"; time.Sleep(500 * time.Millisecond) {
		body, err := s.ask(ctx, http.MethodGet, "/v1/tasks/"+id, nil)
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err == nil && time.Since(begun) > 2*time.Minute {
			err = fmt.Errorf("after two minutes task %s is %s, not completed; the server said:\n%s", id, got.Status, tail(s.problems.Bytes(), 2000))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kill ends it as a lost machine does: it writes nothing more.
func (s *ownServer) kill() error {
	s.client.CloseIdleConnections()
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it says which signal ended it
	return err
}

// stop ends it.
func (s *ownServer) stop() error {
	s.client.CloseIdleConnections()
	err := s.cmd.Process.Signal(os.Interrupt)
	var code *exec.ExitError
	if ended := s.cmd.Wait(); !errors.As(ended, &code) { // it says which signal ended it
		err = errors.Join(err, ended)
	}
	return err
}

// served measures a server with many tasks: how long it takes until it is ready, with
// and without what earlier ones derived, and a page of the list. Most tasks are Roo's,
// some are Roost's own. The yardsticks are the start of the program, and a request that looks
// at no task.
func served(ctx context.Context, o options) ([]row, error) {
	tasks, own, rounds, pages := 10_000, 200, 10, 200
	if o.quick {
		tasks, own, rounds, pages = 40, 5, 2, 5
	}
	home := filepath.Join(o.dir, "served")
	storage := filepath.Join(home, "rooveterinaryinc.roo-cline")
	var dirs []string
	for i := range tasks - own {
		dirs = append(dirs, filepath.Join(storage, "tasks", fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761&0xffffffff, i)))
	}
	if _, err := storageOf(dirs, 4<<10); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := aged(dir, time.Now().Add(-90*24*time.Hour)); err != nil {
			return nil, err
		}
	}
	if err := ownTasks(ctx, filepath.Join(home, "roost"), own); err != nil {
		return nil, err
	}
	time.Sleep(100 * time.Millisecond) // what was written just now is not believed to be still
	var bare, cold, warm, page, again, none times
	for i := range rounds {
		if err := os.RemoveAll(filepath.Join(home, "cache")); err != nil {
			return nil, fmt.Errorf("empty the cache: %w", err)
		}
		for _, to := range []*times{&cold, &warm} {
			c, err := start(ctx, o, home, time.Hour, "version")
			if err != nil {
				return nil, err
			}
			bare = append(bare, c.took)
			s, err := startService(ctx, o, home, "--sources", storage)
			if err != nil {
				return nil, err
			}
			*to = append(*to, s.ready)
			if to == &warm && i == rounds-1 {
				page, again, none, err = paged(ctx, s, tasks, pages)
			} else if to == &cold {
				_, err = s.ask(ctx, http.MethodGet, "/v1/tasks?limit=1", nil) // the next one finds what it derived
			}
			if err := errors.Join(err, s.stop()); err != nil {
				return nil, err
			}
		}
	}
	result := func(what string, got times, floor string, than times, bar string) row {
		return row{what: "h " + what, got: ms(got.median()) + ", p99 " + ms(got.p99()), floor: floor + " " + ms(than.median()), ratio: over(got.median(), than.median()), bar: bar}
	}
	return []row{
		result(fmt.Sprintf("serve: start to ready, %d tasks, no cache", tasks), cold, "start", bare, "< 150 ms"),
		result("the same with a cache", warm, "start", bare, "< 150 ms"),
		result(fmt.Sprintf("page of 100 of %d tasks over HTTP", tasks), page, "/v1/version", none, "< 20 ms"),
		result("the page behind it", again, "/v1/version", none, "< 20 ms"),
	}, nil
}

// paged asks for pages of the list, turn about with what looks at no task.
func paged(ctx context.Context, s *ownServer, tasks, rounds int) (first, second, none times, err error) {
	var got struct {
		Items []json.RawMessage `json:"items"`
		Next  *string           `json:"next_cursor"`
	}
	for i := range rounds {
		for _, m := range []struct {
			to   *times
			path string
		}{{&none, "/v1/version"}, {&first, "/v1/tasks?limit=100"}, {&second, "/v1/tasks?limit=100&cursor="}} {
			if m.to == &second {
				if got.Next == nil {
					continue
				}
				m.path += *got.Next
			}
			begun := time.Now()
			body, err := s.ask(ctx, http.MethodGet, m.path, nil)
			took := time.Since(begun)
			if err == nil && m.to == &first {
				err = json.Unmarshal(body, &got)
			}
			if err != nil {
				return nil, nil, nil, err
			}
			if len(got.Items) != min(tasks, 100) && m.to == &first {
				return nil, nil, nil, fmt.Errorf("a page has %d tasks", len(got.Items))
			}
			if i > 0 || rounds == 1 { // the first one looks at every task
				*m.to = append(*m.to, took)
			}
		}
	}
	return first, second, none, nil
}

// ownTasks makes tasks of Roost's own, with a message each.
func ownTasks(ctx context.Context, root string, n int) error {
	s, err := store.Open(store.Options{Root: root, Program: "bench"})
	if err != nil {
		return err
	}
	for i := range n {
		t, err := s.Create(ctx, task.Created{Number: 1, CreatedAt: baseTS + int64(i)})
		if err != nil {
			return err
		}
		events, _ := step(t.State().NextMessage(), i, 2<<10)
		if err := errors.Join(t.Commit(ctx, events...), t.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}
