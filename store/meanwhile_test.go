package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// whileRead is a context whose tasks take their time to be read: each look whether it has
// ended lets some pass.
type whileRead struct {
	context.Context
	pass func()
}

func (c whileRead) Err() error {
	c.pass()
	return c.Context.Err()
}

// shifted lets a store's clock run ahead by what is given back.
func shifted(s *Store) *atomic.Int64 {
	var ahead atomic.Int64
	s.clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return &ahead
}

// A second write within a tick of the clock leaves no trace, also when the first look was
// long ago by the time the task is read.
func TestWhatChangedJustBeforeALongReadIsNotKept(t *testing.T) {
	s := cached(t, open(t, t.TempDir(), storageWith(t, 1)), t.TempDir())
	s.calmIn = time.Hour
	ahead := shifted(s)
	var read atomic.Bool
	ctx := whileRead{context.Background(), func() {
		if read.Load() {
			ahead.Store(int64(2 * time.Hour))
		}
	}}
	reading := progress.With(ctx, func(progress.State) { read.Store(true) })
	if got := fixture.Must[Listing](t)(s.List(reading, Filter{})); len(got.Items) != 1 || ahead.Load() == 0 {
		t.Fatalf("%d tasks; time went on by %v", len(got.Items), time.Duration(ahead.Load()))
	}
	if n := knownRows(t, s); n != 0 {
		t.Error("a row was kept of what changed just before it was read")
	}
	pageBy(t, s, Filter{})
	if n := knownRows(t, s); n != 1 {
		t.Error("a row was not kept of what had stood still")
	}
}

// What an index says of a task shows in the next list, whenever it came to say that.
func TestIndexThatChangesMeanwhile(t *testing.T) {
	ctx := context.Background()
	for name, meanwhile := range map[string]func(t *testing.T, s *Store, change func()){
		"while a list is made": func(t *testing.T, s *Store, change func()) {
			l := fixture.Must[*lines](t)(s.lines(ctx, s.readRows(ctx, catalog.Summaries), false))
			defer l.close()
			change()
			l.keep(ctx)
		},
		"while its task is deleted": func(t *testing.T, s *Store, change func()) {
			pageBy(t, s, Filter{})
			ref := fixture.Must[Ref](t)(s.Find(ctx, "task-001"))
			name := fixture.Must[string](t)(Rooms.Delete(ctx, s, ref))
			change()
			pageBy(t, s, Filter{})
			fixture.Must[Ref](t)(Rooms.Restore(ctx, s, name))
		},
		"before a list that is given up": func(t *testing.T, s *Store, change func()) {
			pageBy(t, s, Filter{})
			change()
			ctx, cancel := context.WithCancel(ctx)
			if _, err := s.List(progress.With(ctx, func(progress.State) { cancel() }), Filter{}); err == nil {
				t.Error("it was not given up")
			}
		},
		"before a stream that is left": func(t *testing.T, s *Store, change func()) {
			pageBy(t, s, Filter{})
			change()
			write(t, filepath.Join(s.opt.Sources[0], "tasks", "task-new"), roofmt.UIName, array(uiRow(9, "new")))
			for _, err := range s.Stream(ctx, 1) {
				fixture.NoError(t, err)
				break
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := storageWith(t, 3)
			say := func(word string) {
				entries := ""
				for i := range 3 {
					entries += fmt.Sprintf(`,{"id":"task-%03d","ts":%d,"task":"%s %d","workspace":"/%s"}`, i, ts0+i, word, i, word)
				}
				fixture.NoError(t, renamed(filepath.Join(storage, "tasks", roofmt.IndexName), []byte(`{"entries":[`+entries[1:]+`]}`)))
			}
			say("one")
			plain := open(t, t.TempDir(), storage)
			s := cached(t, plain, t.TempDir())
			was := page(t, plain, Filter{})
			meanwhile(t, s, func() { say("two") })
			want := page(t, plain, Filter{})
			if want == was {
				t.Fatal("the index says nothing that a list shows")
			}
			for range 2 {
				if diff := cmp.Diff(want, page(t, s, Filter{})); diff != "" {
					t.Errorf("-without +with rows\n%s", diff)
				}
			}
		})
	}
}
