package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// slowModel is a provider on loopback that takes its time for each turn, for many tasks
// at once. A task is told by the mark in its prompt.
type slowModel struct {
	url   string
	turns int
	think time.Duration

	mu       sync.Mutex
	answered map[int]time.Time // by task: the last reply's last byte
	turn     map[int]int
	waits    times // from there until the whole next request had come
	largest  int
	server   *http.Server
	done     chan struct{}
}

func startSlowModel(turns int, think time.Duration) (*slowModel, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	m := &slowModel{url: "http://" + l.Addr().String(), turns: turns, think: think, answered: map[int]time.Time{}, turn: map[int]int{}, done: make(chan struct{})}
	m.server = &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(m.done)
		_ = m.server.Serve(l) // always ErrServerClosed
	}()
	return m, nil
}

func (m *slowModel) close() error {
	err := m.server.Close()
	<-m.done
	return err
}

// markOf finds the task's mark in a request's body: the prompt stands before what grows.
func markOf(body []byte) (int, bool) {
	_, rest, ok := bytes.Cut(body, []byte("TASK-"))
	digits, _, found := bytes.Cut(rest, []byte(";"))
	n, err := strconv.Atoi(string(digits))
	return n, ok && found && err == nil
}

// bodies are taken again: a fresh buffer for each request would cost what is measured.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (m *slowModel) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	_, err := body.ReadFrom(r.Body)
	now := time.Now()
	of, ok := markOf(body.Bytes())
	if err != nil || !ok {
		return // the client went away, or is none of ours
	}
	m.mu.Lock()
	n := m.turn[of]
	m.turn[of]++
	m.largest = max(m.largest, body.Len())
	if at, ok := m.answered[of]; ok {
		m.waits = append(m.waits, now.Sub(at))
	}
	m.mu.Unlock()
	time.Sleep(m.think)
	name, input := "read_file", fmt.Sprintf(`{"path":"f%03d.txt"}`, n)
	if n >= m.turns {
		name, input = "attempt_completion", `{"result":"All files were read."}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	(&model{text: "Reading the next file.", piece: 64}).stream(w, n+1, name, input)
	m.mu.Lock()
	m.answered[of] = time.Now()
	m.mu.Unlock()
}

// crowds measures many tasks that work at once in one server, with a model that takes a
// second a turn and histories that grow to 100 KB: what the engine takes between a reply and
// the next request, and how much memory. The yardstick is one task alone in the same server.
// The model works on the same cores.
func crowds(ctx context.Context, o options) ([]row, error) {
	tasks, turns, think := 200, 10, time.Second
	if o.quick {
		tasks, turns, think = 6, 3, 50*time.Millisecond
	}
	home := filepath.Join(o.dir, "crowds")
	alone, _, _, err := crowdOf(ctx, o, filepath.Join(home, "alone"), 1, turns, think/4)
	if err != nil {
		return nil, err
	}
	all, peak, largest, err := crowdOf(ctx, o, filepath.Join(home, "all"), tasks, turns, think)
	if err != nil {
		return nil, err
	}
	rows := []row{{
		what: fmt.Sprintf("t overhead per turn, %d tasks at once to %d KB", tasks, largest>>10), got: ms(all.median()) + ", p99 " + ms(all.p99()),
		floor: "alone " + ms(alone.median()), ratio: over(all.median(), alone.median()), bar: "median < 20 ms",
	}}
	if peak > 0 {
		rows = append(rows, row{what: fmt.Sprintf("t peak memory of the %d tasks", tasks), got: mb(peak), floor: "a task " + mb(peak/int64(tasks)), bar: "< 400 MB"})
	}
	return rows, nil
}

// crowdOf lets a server work on so many tasks at once.
func crowdOf(ctx context.Context, o options, home string, tasks, turns int, think time.Duration) (waits times, peak int64, largest int, err error) {
	ws := filepath.Join(home, "ws")
	if err := fillWorkspace(ws, turns, (80<<10)/turns); err != nil {
		return nil, 0, 0, err
	}
	m, err := startSlowModel(turns, think)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	s, err := startService(ctx, o, home, "--max-runs", strconv.Itoa(tasks))
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	begun := make(chan error, tasks)
	const atOnce = 8
	room := make(chan struct{}, atOnce)
	for i := range tasks {
		go func() {
			room <- struct{}{}
			defer func() { <-room }()
			_, err := s.begin(ctx, ws, m.url, fmt.Sprintf("TASK-%d; read the files.", i))
			begun <- err
		}()
	}
	for range tasks {
		err = errors.Join(err, <-begun)
	}
	for err == nil {
		peak = max(peak, peakMemory(s.cmd.Process.Pid))
		var state struct {
			Runs struct{ Running, Waiting, Queued int } `json:"runs"`
		}
		var body []byte
		if body, err = s.ask(ctx, http.MethodGet, "/v1/server", nil); err == nil {
			err = json.Unmarshal(body, &state)
		}
		if err == nil && state.Runs.Running+state.Runs.Queued+state.Runs.Waiting == 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if want := tasks * turns; err == nil && len(m.waits) != want {
		err = fmt.Errorf("%d turns came, %d were expected; the server said:\n%s", len(m.waits), want, tail(s.problems.Bytes(), 2000))
	}
	return m.waits, peak, m.largest, err
}
