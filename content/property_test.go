package content

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// world is a store as two processes see it, and a model of it: what each name has, and what each process relies on.
type world struct {
	t      *rapid.T
	tb     *testing.T
	open   [2]*Store
	names  map[string]Hash
	states map[Hash]map[string]string // by manifest
	parent map[Hash]Hash
	held   [2]map[Hash]bool
}

func (w *world) fail(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) process() int { return rapid.IntRange(0, 1).Draw(w.t, "process") }

func (w *world) owner() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "owner") }

// save writes a state; it is held until its Store settles.
func (w *world) save(i int, parents ...Hash) Hash {
	state := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "d/a"}), rapid.SampledFrom([]string{"", "1", "2", text(4, 2000)}), 0, 4).Draw(w.t, "state")
	b, err := w.open[i].Begin(context.Background())
	w.fail(err)
	h, err := commitTo(b, state, parents...)
	w.fail(err)
	if rapid.Bool().Draw(w.t, "discarded") {
		b.Discard()
		return ""
	}
	w.fail(b.Close())
	w.held[i][h], w.states[h] = true, state
	if len(parents) > 0 {
		w.parent[h] = parents[0]
	}
	return h
}

// check reads everything that must be present.
func (w *world) check(t *rapid.T) {
	need := maps.Clone(w.held[0])
	maps.Copy(need, w.held[1])
	for _, h := range w.names {
		for ; h != ""; h = w.parent[h] {
			need[h] = true
		}
	}
	for h := range need {
		for _, s := range w.open {
			if !s.Has(h) {
				t.Fatalf("%s is gone", h)
			}
			if got := files(w.tb, s, h); !maps.Equal(got, w.states[h]) {
				t.Fatalf("%s reads as %v, want %v", h, got, w.states[h])
			}
		}
	}
	names, err := w.open[0].Names()
	w.fail(err)
	got := map[string]Hash{}
	for owner, n := range names {
		got[owner] = n.Manifest
	}
	if !maps.Equal(got, w.names) {
		t.Fatalf("names: got %v, want %v", got, w.names)
	}
}

// A store behaves as a map of what was written, from which only goes what no name reaches and no process relies on.
func TestAStoreIsAMap(t *testing.T) {
	home := quickDir(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(home, fmt.Sprint(n))
		w := &world{t: rt, tb: t, names: map[string]Hash{}, states: map[Hash]map[string]string{}, parent: map[Hash]Hash{}}
		reopen := func(i int) {
			if w.open[i] != nil {
				w.open[i].Close()
			}
			s, err := Open(dir)
			w.fail(err)
			w.open[i], w.held[i] = s, map[Hash]bool{}
		}
		reopen(0)
		reopen(1)
		defer func() { w.open[0].Close(); w.open[1].Close(); os.RemoveAll(dir) }()
		rt.Repeat(map[string]func(*rapid.T){
			"save": func(*rapid.T) { w.save(w.process()) },
			"save and name": func(*rapid.T) {
				i, owner := w.process(), w.owner()
				var parents []Hash
				if old := w.names[owner]; old != "" {
					parents = []Hash{old}
				}
				if h := w.save(i, parents...); h != "" {
					w.fail(w.open[i].SetName(owner, h))
					w.names[owner] = h
				}
			},
			"remove a name": func(*rapid.T) {
				owner := w.owner()
				w.fail(w.open[w.process()].RemoveName(owner))
				delete(w.names, owner)
			},
			"settle": func(*rapid.T) {
				i := w.process()
				w.open[i].Settle()
				clear(w.held[i])
			},
			"reopen": func(*rapid.T) { reopen(w.process()) },
			"collect": func(*rapid.T) {
				_, err := w.open[w.process()].Collect(context.Background(), CollectOptions{})
				w.fail(err)
			},
			"": w.check,
		})
		// At the end nothing is held: only what names reach is left.
		reopen(0)
		reopen(1)
		_, err := w.open[0].Collect(context.Background(), CollectOptions{})
		w.fail(err)
		w.check(rt)
		reached := map[Hash]bool{}
		for _, h := range w.names {
			for ; h != ""; h = w.parent[h] {
				reached[h] = true
			}
		}
		for h := range w.states {
			if got := w.open[1].Has(h); got != reached[h] {
				rt.Fatalf("%s is present: %v, a name reaches it: %v", h, got, reached[h])
			}
		}
	})
}
