package contenttest

import (
	"maps"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/content"
)

// world is a store as two processes see it, and a model of it: the contents of each name, and those that each process
// relies on.
type world struct {
	t      *rapid.T
	b      *bench
	open   [2]content.Store
	names  map[string]content.Hash
	states map[content.Hash]map[string]string // by manifest
	parent map[content.Hash]content.Hash
	held   [2]map[content.Hash]bool
}

func (w *world) fail(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) process() int { return rapid.IntRange(0, 1).Draw(w.t, "process") }

func (w *world) owner() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "owner") }

// save writes a state; it is held until its Store settles.
func (w *world) save(i int, parents ...content.Hash) content.Hash {
	state := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "d/a"}), rapid.SampledFrom([]string{"", "1", "2", text(4, 2000)}), 0, 4).Draw(w.t, "state")
	batch, err := w.open[i].Begin(w.b.Context())
	w.fail(err)
	h, err := commitTo(batch, state, parents...)
	w.fail(err)
	if rapid.Bool().Draw(w.t, "discarded") {
		batch.Discard()
		return ""
	}
	w.fail(batch.Close())
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
			if !s.Has(w.b.Context(), h) {
				t.Fatalf("%s is gone", h)
			}
			if got := files(w.b, s, h); !maps.Equal(got, w.states[h]) {
				t.Fatalf("%s reads as %v, want %v", h, got, w.states[h])
			}
		}
	}
	names, err := w.open[0].Names(w.b.Context())
	w.fail(err)
	got := map[string]content.Hash{}
	for owner, n := range names {
		got[owner] = n.Manifest
	}
	if !maps.Equal(got, w.names) {
		t.Fatalf("names: got %v, want %v", got, w.names)
	}
}

// A store behaves like a map of the written contents, from which a collection removes only those that no name reaches
// and no process relies on.
func testMap(b *bench) {
	rapid.Check(b.T, func(rt *rapid.T) {
		place := b.fresh()
		w := &world{
			t:      rt,
			b:      b,
			names:  map[string]content.Hash{},
			states: map[content.Hash]map[string]string{},
			parent: map[content.Hash]content.Hash{},
		}
		reopen := func(i int) {
			if w.open[i] != nil {
				w.fail(w.open[i].Close())
			}
			w.open[i], w.held[i] = place.Open(b), map[content.Hash]bool{}
		}
		reopen(0)
		reopen(1)
		defer func() {
			w.fail(w.open[0].Close())
			w.fail(w.open[1].Close())
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"save": func(*rapid.T) { w.save(w.process()) },
			"save and name": func(*rapid.T) {
				i, owner := w.process(), w.owner()
				var parents []content.Hash
				if old := w.names[owner]; old != "" {
					parents = []content.Hash{old}
				}
				if h := w.save(i, parents...); h != "" {
					w.fail(w.open[i].SetName(w.b.Context(), owner, h))
					w.names[owner] = h
				}
			},
			"remove a name": func(*rapid.T) {
				owner := w.owner()
				w.fail(w.open[w.process()].RemoveName(w.b.Context(), owner))
				delete(w.names, owner)
			},
			"settle": func(*rapid.T) {
				i := w.process()
				w.open[i].Settle()
				clear(w.held[i])
			},
			"reopen": func(*rapid.T) { reopen(w.process()) },
			"collect": func(*rapid.T) {
				_, err := w.open[w.process()].Collect(w.b.Context(), content.CollectOptions{})
				w.fail(err)
			},
			"": w.check,
		})
		// At the end nothing is held: only what names reach is left.
		reopen(0)
		reopen(1)
		_, err := w.open[0].Collect(w.b.Context(), content.CollectOptions{})
		w.fail(err)
		w.check(rt)
		reached := map[content.Hash]bool{}
		for _, h := range w.names {
			for ; h != ""; h = w.parent[h] {
				reached[h] = true
			}
		}
		for h := range w.states {
			if got := w.open[1].Has(b.Context(), h); got != reached[h] {
				rt.Fatalf("%s is present: %v, a name reaches it: %v", h, got, reached[h])
			}
		}
	})
}
