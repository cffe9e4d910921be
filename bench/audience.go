package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

const (
	stepBytes = 1 << 10
	stepEvery = 100 * time.Millisecond
)

// audiences measures what followers over HTTP get of a busy task: how late each has an
// event after its commit's sync, on the task's stream and on that of all tasks, and what
// the task pays for them. Some never read. The yardstick is the same task without any.
func audiences(ctx context.Context, o options) ([]row, error) {
	crowd, steps := 1000, 100
	if o.quick {
		crowd, steps = 50, 20
	}
	alone, _, err := watched(ctx, filepath.Join(o.dir, "unwatched"), "", 0, 0, steps)
	if err != nil {
		return nil, err
	}
	floor, err := bare(crowd, steps)
	if err != nil {
		return nil, err
	}
	var out []row
	for _, path := range []string{"/v1/tasks/busy/events", "/v1/events"} {
		name := map[bool]string{true: "all tasks", false: "a task"}[path == "/v1/events"]
		step, late, err := watched(ctx, filepath.Join(o.dir, "watched-"+strconv.Itoa(len(path))), path, crowd, crowd/20, steps)
		if err != nil {
			return out, err
		}
		out = append(out, row{
			what: fmt.Sprintf("f delay to %d of %s, %d stuck, p99", crowd, name, crowd/20),
			got:  ms(late.p99()) + ", median " + ms(late.median()), floor: ms(floor.p99()) + ", median " + ms(floor.median()),
			ratio: over(late.p99(), floor.p99()), bar: "< 50 ms",
		}, row{
			what: "f the task's step beside them",
			got:  ms(step.median()) + ", p99 " + ms(step.p99()), floor: ms(alone.median()) + ", p99 " + ms(alone.p99()),
			ratio: over(step.median(), alone.median()), bar: "slows nobody",
		})
	}
	return out, nil
}

// watched writes a task, a step every 100 ms, while clients follow it through a server on loopback.
func watched(ctx context.Context, dir, path string, followers, stuck, steps int) (taken, late times, err error) {
	s, err := store.Open(store.Options{Root: filepath.Join(dir, "root"), Cache: filepath.Join(dir, "cache"), Program: "bench"})
	if err != nil {
		return nil, nil, err
	}
	busy, err := s.Create(ctx, task.Created{Task: "busy", Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, busy.Close(ctx)) }()
	srv, err := server.New(server.Options{Service: service.New(s, nil, service.Options{}), Token: "bench", WriteTimeout: 5 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	serving, halt := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, l) }()
	var wait sync.WaitGroup
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		halt()
		wait.Wait()
		err = errors.Join(err, <-served)
	}()
	for range followers + stuck {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, nil, fmt.Errorf("follow: %w", err)
		}
		conns = append(conns, c)
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bench\r\n\r\n", path); err != nil {
			return nil, nil, fmt.Errorf("follow: %w", err)
		}
	}
	came := make([][]time.Time, followers)
	ready, done := make(chan error, followers), make(chan error, followers)
	for i, c := range conns[:followers] {
		wait.Go(func() {
			in := bufio.NewReader(c)
			for {
				line, err := in.ReadSlice('\n')
				switch {
				case errors.Is(err, bufio.ErrBufferFull): // the middle of a long one
				case err != nil:
					ready <- err
					done <- err
					return
				case bytes.Equal(line, []byte(": connected\n")):
					ready <- nil
				case bytes.Equal(line, []byte("event: message.added\n")):
					if came[i] = append(came[i], time.Now()); len(came[i]) == steps {
						done <- nil
						return
					}
				}
			}
		})
	}
	for range followers {
		if err := <-ready; err != nil {
			return nil, nil, fmt.Errorf("follow: %w", err)
		}
	}
	message := busy.State().NextMessage()
	synced := make([]time.Time, steps)
	for i := range steps {
		begun := time.Now()
		if err := busy.Commit(ctx, task.MessageAdded{History: task.UI, Message: message + uint64(i), Body: task.Body{Raw: uiMessage(i, stepBytes)}}); err != nil {
			return nil, nil, err
		}
		if err := busy.Barrier(ctx); err != nil {
			return nil, nil, err
		}
		synced[i] = time.Now()
		taken = append(taken, synced[i].Sub(begun))
		time.Sleep(stepEvery)
	}
	for range followers {
		if err := <-done; err != nil {
			return nil, nil, fmt.Errorf("follow: %w", err)
		}
	}
	for _, list := range came {
		for i, at := range list {
			late = append(late, max(0, at.Sub(synced[i])))
		}
	}
	return taken, late, nil
}

// bare is how late readers of bare connections get the same bytes, written in a loop.
func bare(crowd, steps int) (late times, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var wait sync.WaitGroup
	var ends []net.Conn
	defer func() {
		for _, c := range ends {
			c.Close()
		}
		wait.Wait()
	}()
	came := make([][]time.Time, crowd)
	done := make(chan error, crowd)
	block := append(uiMessage(1, stepBytes), '\n')
	var to []net.Conn
	for i := range crowd {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		ends = append(ends, c)
		peer, err := l.Accept()
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		ends, to = append(ends, peer), append(to, peer)
		wait.Go(func() {
			in := bufio.NewReader(c)
			for range steps {
				for {
					_, err := in.ReadSlice('\n')
					if err == nil {
						break
					}
					if !errors.Is(err, bufio.ErrBufferFull) {
						done <- err
						return
					}
				}
				came[i] = append(came[i], time.Now())
			}
			done <- nil
		})
	}
	sent := make([]time.Time, steps)
	for i := range steps {
		sent[i] = time.Now()
		for _, c := range to {
			if _, err := c.Write(block); err != nil {
				return nil, fmt.Errorf("write: %w", err)
			}
		}
		time.Sleep(stepEvery)
	}
	for range crowd {
		if err := <-done; err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
	}
	for _, list := range came {
		for i, at := range list {
			late = append(late, at.Sub(sent[i]))
		}
	}
	return late, nil
}
