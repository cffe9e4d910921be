package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// databaseTurns measures the turns of a server that keeps its tasks in PostgreSQL against those of one that keeps them in
// files, from the end of a reply until the whole next request has come. The two work turn about: the model answers one when
// it has the next request of the other.
func databaseTurns(ctx context.Context, o options) (rows []row, err error) {
	n := 200
	if o.quick {
		n = 10
	}
	cluster, db, err := emptyDatabase(ctx)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return []row{{what: "w whole turns in PostgreSQL", got: "it is not installed", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Remove()) }()
	url := db.URL()
	db.Close()
	home := filepath.Join(o.dir, "databaseTurns")
	ws := filepath.Join(home, "ws")
	if err := fillWorkspace(ws, n, fileText); err != nil {
		return nil, err
	}
	var models [2]*model // the files first
	var ids [2]string
	var servers [2]*ownServer
	about := newTurnAbout(n)
	for i, args := range [][]string{nil, {"--store", url, "--store-key", filepath.Join(home, "group.json")}} {
		m, err := startModel(n)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		s, err := startService(ctx, o, filepath.Join(home, fmt.Sprint("server", i)), args...)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		m.before = about.before(ctx, i)
		models[i], servers[i] = m, s
	}
	for i, s := range servers {
		if ids[i], err = s.begin(ctx, ws, models[i].url, "Read the files."); err != nil {
			return nil, err
		}
	}
	var took [2]times
	for i, s := range servers {
		if err := s.completes(ctx, ids[i]); err != nil {
			return nil, err
		}
		if took[i] = models[i].overhead(); len(took[i]) != n {
			return nil, fmt.Errorf("%d turns of server %d came, want %d", len(took[i]), i, n)
		}
	}
	files, database := took[0], took[1]
	return []row{{
		what: fmt.Sprintf("w turn in PostgreSQL, %d turns to %s", n, mb(int64(models[1].sizes[n]))),
		got:  ms(database.median()), floor: "files " + ms(files.median()), ratio: over(database.median(), files.median()), bar: "<= 2.00x",
	}, {
		what: "w the same, p99", got: ms(database.p99()), floor: "files " + ms(files.p99()), ratio: over(database.p99(), files.p99()), bar: "-",
	}, {
		what: "w the same, first quarter, median", got: ms(database[:n/4].median()), floor: "files " + ms(files[:n/4].median()),
		ratio: over(database[:n/4].median(), files[:n/4].median()), bar: "-",
	}}, nil
}

// turnAbout lets two models answer one after the other.
type turnAbout struct {
	last int // the request that ends a task
	may  [2]chan struct{}
	came [2]int
}

func newTurnAbout(turns int) *turnAbout {
	return &turnAbout{last: turns + 1, may: [2]chan struct{}{make(chan struct{}, 2), make(chan struct{}, 2)}}
}

// before is what a model does between a request and its reply: it lets the other one answer, and waits until that one lets it.
// The first one begins when both have a request, and answers its last request when the other one has its last.
func (t *turnAbout) before(ctx context.Context, i int) func() error {
	return func() error {
		t.came[i]++
		if i == 1 || t.came[i] > 1 {
			t.may[1-i] <- struct{}{}
		}
		if i == 1 && t.came[i] == t.last {
			return nil
		}
		select {
		case <-t.may[i]:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("the other server made no turn within a minute")
		}
	}
}
