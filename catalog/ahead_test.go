package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// long builds a task of more text than a builder should hold, and puts it ahead as often as
// it gets heavy.
func long(t *testing.T, db *DB, now time.Time) (b *Builder, times int) {
	t.Helper()
	b = &Builder{small: 32}
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 80 {
		b.Add(said(i+1, fmt.Sprintf("%s number%d of", prose(r, 30_000), i)))
		if b.Heavy() && db != nil {
			fixture.NoError(t, db.Ahead(context.Background(), b, now))
			times++
			if b.Heavy() {
				t.Fatal("it is as heavy as before")
			}
		}
	}
	return b, times
}

// rows are how many rows and parts there are, seen or not.
func rows(t *testing.T, db *DB) (tasks, parts int) {
	t.Helper()
	fixture.NoError(t, db.sql.QueryRow("SELECT (SELECT count(*) FROM task), (SELECT count(*) FROM part)").Scan(&tasks, &parts))
	return tasks, parts
}

// A task that was put ahead in pieces is, once it is finished, what it is when put at once;
// until then nobody sees it, and the task's older row stays.
func TestAheadIsSeenWhenItIsWhole(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	db, plain := opened(t, t.TempDir()), opened(t, t.TempDir())
	put(t, db, "long", "number5 as it was")
	b, times := long(t, db, now)
	if times < 2 {
		t.Fatalf("put ahead %d times: this test shows nothing", times)
	}
	if diff := cmp.Diff(map[string]bool{"long#1": true}, found(t, db, "number5")); diff != "" {
		t.Errorf("before it is whole: %s", diff)
	}
	e := b.Entry("long", "new", 9, []byte(`"new"`))
	if e.Text() > heavyText {
		t.Errorf("the entry holds %d bytes", e.Text())
	}
	fixture.NoError(t, db.Put(ctx, []Entry{e}))
	whole, _ := long(t, nil, now)
	fixture.NoError(t, plain.Put(ctx, []Entry{whole.Entry("long", "new", 9, []byte(`"new"`))}))
	for _, query := range []string{"number5", "umber79", "number79 of", `"number0 of"`, "babe", "go:12"} {
		want := found(t, plain, query)
		if diff := cmp.Diff(want, found(t, db, query)); diff != "" || len(want) == 0 {
			t.Errorf("%s: %d hits wanted %s", query, len(want), diff)
		}
	}
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	tasks, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	if len(tasks) != 1 || tasks["long"].Stamp != "new" || tasks["long"].TS != 9 {
		t.Errorf("tasks %v", tasks)
	}
	have, err := s.Digest(ctx, tasks["long"].ID)
	fixture.NoError(t, err)
	shed := &Builder{small: 32}
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 80 {
		shed.Add(said(i+1, fmt.Sprintf("%s number%d of", prose(r, 30_000), i)))
		shed.Shed()
	}
	if !bytes.Equal(have, shed.Entry("", "", 0, nil).Digest()) {
		t.Error("the digest is another one")
	}
}

func TestAbandonLeavesNothing(t *testing.T) {
	ctx := context.Background()
	db := opened(t, t.TempDir())
	put(t, db, "other", "words")
	b, _ := long(t, db, time.Now())
	fixture.NoError(t, db.Abandon(ctx, b))
	fixture.NoError(t, db.Abandon(ctx, b))
	if tasks, parts := rows(t, db); tasks != 1 || parts != 1 {
		t.Errorf("%d tasks, %d parts", tasks, parts)
	}
	if got := found(t, db, "words"); !got["other#1"] {
		t.Errorf("the other task has %v", got)
	}
}

// What a killed process put ahead is removed after an hour, by whoever puts something
// ahead; what somebody works at is left.
func TestLeftOversAreRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("does nothing at the same time, and is slow when watched for races")
	}
	ctx, now := context.Background(), time.Now()
	for name, c := range map[string]struct {
		later time.Duration
		stays bool
	}{
		"at the same time": {0, true}, "soon": {59 * time.Minute, true}, "later": {61 * time.Minute, false}, "the clock was set back": {-48 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := opened(t, t.TempDir())
			first, _ := long(t, db, now)
			second, _ := long(t, db, now.Add(c.later))
			fixture.NoError(t, db.Put(ctx, []Entry{second.Entry("second", "s", 1, []byte("{}"))}))
			err := db.Put(ctx, []Entry{first.Entry("first", "s", 1, []byte("{}"))})
			if c.stays != (err == nil) || !c.stays && !errors.Is(err, errAheadGone) {
				t.Errorf("finishing the first: %v", err)
			}
			got := found(t, db, `"number5 of"`)
			if !got["second#6"] || got["first#6"] != c.stays {
				t.Errorf("found %v", got)
			}
		})
	}
}
