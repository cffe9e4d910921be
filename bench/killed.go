package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// trio is three servers that share a database, on one machine.
type trio struct {
	options
	url     string
	home    string
	model   *slowModel
	servers [3]*ownServer
}

// killedServers measures how long a task of a killed server waits for another one. Each server in turn is killed while it
// works on a task, and started again. A client that follows the task on a server that lives sees the first commit of the new
// owner, and when the run asks the model again.
func killedServers(ctx context.Context, o options) (rows []row, err error) {
	kills := 20
	if o.quick {
		kills = 1
	}
	cluster, db, err := emptyDatabase(ctx)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return []row{{what: "x servers that are killed", got: "PostgreSQL is not installed", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Remove()) }()
	t := &trio{options: o, url: db.URL(), home: filepath.Join(o.dir, "killed")}
	db.Close()
	const turns = 40 // more than a task has had when its server is killed
	if err := fillWorkspace(filepath.Join(t.home, "ws"), turns, 1<<10); err != nil {
		return nil, err
	}
	if t.model, err = startSlowModel(turns, 100*time.Millisecond); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.model.close()) }()
	defer func() {
		for _, s := range t.servers {
			if s != nil {
				err = errors.Join(err, s.stop())
			}
		}
	}()
	for i := range t.servers {
		if err := t.start(ctx, i); err != nil {
			return nil, err
		}
	}
	var first, again times
	for kill := range kills {
		committed, asked, err := t.kill(ctx, kill)
		if err != nil {
			return nil, fmt.Errorf("kill %d: %w", kill+1, err)
		}
		first, again = append(first, committed), append(again, asked)
	}
	result := func(what string, got times, bar string) row {
		return row{what: "x " + what, got: fmt.Sprintf("%.2f s, p95 %.2f s, worst %.2f s", got.median().Seconds(), got.at(0.95).Seconds(), got.at(1).Seconds()),
			floor: "-", ratio: "-", bar: bar}
	}
	return []row{
		result(fmt.Sprintf("%d kills, 1 of 3 servers, to the next commit", kills), first, "p95 < 5 s"),
		result("the same, to the next request to the model", again, "-"),
	}, nil
}

func (t *trio) start(ctx context.Context, i int) (err error) {
	home := filepath.Join(t.home, fmt.Sprint("server", i))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("make the home of a server: %w", err)
	}
	t.servers[i], err = startService(ctx, t.options, home, "--store", t.url, "--store-key", filepath.Join(t.home, "group.json"))
	return err
}

// kill kills a server that works on a task, at another moment between two looks of the others each time, and starts it again
// when another one has completed the task.
func (t *trio) kill(ctx context.Context, n int) (committed, asked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	victim := n % len(t.servers)
	owner, other := t.servers[victim], t.servers[(victim+1)%len(t.servers)]
	id, err := owner.begin(ctx, filepath.Join(t.home, "ws"), t.model.url, fmt.Sprintf("TASK-%d; read the files.", n))
	if err != nil {
		return 0, 0, err
	}
	came, ended := make(chan durable, 1000), make(chan error, 1)
	go func() { ended <- other.follow(ctx, id, came) }()
	defer func() {
		cancel()
		<-ended
	}()
	next := func(want string, epoch uint64) (durable, error) {
		for {
			select {
			case e := <-came:
				if e.epoch >= epoch && (want == "" || e.kind == want) {
					return e, nil
				}
			case err := <-ended:
				ended <- err
				return durable{}, fmt.Errorf("follow task %s until %s of epoch %d: %w", id, cmp.Or(want, "an event"), epoch, err)
			}
		}
	}
	var last durable
	for range 3 { // it works
		if last, err = next("turn.started", 0); err != nil {
			return 0, 0, err
		}
	}
	time.Sleep(time.Duration(n) * 170 * time.Millisecond % time.Second)
	if err := owner.kill(); err != nil {
		return 0, 0, fmt.Errorf("kill a server: %w", err)
	}
	died := time.Now()
	t.servers[victim] = nil
	first, err := next("", last.epoch+1)
	if err != nil {
		return 0, 0, err
	}
	again, err := next("turn.started", first.epoch)
	if err == nil {
		err = other.completes(ctx, id)
	}
	if err == nil {
		err = t.start(context.WithoutCancel(ctx), victim)
	}
	return first.at.Sub(died), again.at.Sub(died), err
}

// durable is a durable event as it came to a client.
type durable struct {
	epoch uint64
	kind  string
	at    time.Time
}

// follow passes on the durable events of a task until ctx ends or the server does.
func (s *ownServer) follow(ctx context.Context, task string, to chan<- durable) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/tasks/"+task+"/events?after=0", nil)
	if err != nil {
		return fmt.Errorf("follow a task: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("follow a task: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("follow a task: %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	at, known := events.Cursor{}, false
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			at, known = events.ParseCursor(id)
			continue
		}
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok && known {
			known = false
			select {
			case to <- durable{at.Epoch, kind, time.Now()}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return errors.Join(errors.New("the stream has ended"), lines.Err())
}
