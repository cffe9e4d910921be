package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/store/feed"
)

// A follower that is far behind does not get what is said only once more: the newest
// durable events come, and none of them is missing or doubled.
func TestSlowFollowersMissDeltasFirst(t *testing.T) {
	f := newRing()
	f.start(Cursor{})
	event := func(seq int) Event {
		return Event{ID: fmt.Sprintf("1.%d-0", seq), Type: "message.added", Seq: uint64(seq), Data: json.RawMessage(`{}`)}
	}
	delta := Event{Type: "message.delta", Data: json.RawMessage(`{"text":"x"}`)}
	for seq := 1; seq <= 500; seq++ {
		f.add(framed(Item{Event: delta, Live: true}), framed(Item{Event: delta, Live: true}))
		f.add(itemsOf([]Event{event(seq)}, feed.Place{})...)
	}
	after, next, live, durable := (Cursor{}), uint64(0), 0, 0
	for {
		g := f.view(after, next, nil)
		for _, one := range g.items {
			if one.Live {
				live++
				continue
			}
			if durable++; one.Cursor != at(1, uint64(durable), 0) {
				t.Fatalf("event %d stands at %+v", durable, one.Cursor)
			}
			after = one.Cursor
		}
		if next = g.next; !g.more && len(g.items) == 0 {
			break
		}
	}
	if durable != 500 || live == 0 || live > viewItems {
		t.Errorf("%d durable ones, %d live ones", durable, live)
	}
	// Of large ones only the newest are kept; who is further back reads the log.
	big := event(501)
	big.Data = json.RawMessage(`"` + strings.Repeat("x", ringBytes) + `"`)
	f.add(itemsOf([]Event{big}, feed.Place{})...)
	if g := f.view(at(1, 400, 0), 10, nil); !g.behind {
		t.Error("it has what it let go of")
	}
	if g := f.view(at(1, 500, 0), 0, nil); g.behind || len(g.items) != 1 {
		t.Errorf("%d events behind the newest", len(g.items))
	}
}

// Passing over commits without events never leads back.
func TestARingOnlyAdvances(t *testing.T) {
	f := newRing()
	f.start(AfterCommit(1))
	f.add(Item{Cursor: at(1, 5, 0)})
	f.advance(AfterCommit(4))
	if g := f.view(Cursor{}, 0, nil); g.newest != at(1, 5, 0) {
		t.Errorf("newest is %s, want 1.5-0", g.newest)
	}
	f.advance(AfterCommit(6))
	if g := f.view(Cursor{}, 0, nil); g.newest != AfterCommit(6) {
		t.Errorf("newest is %s, want 6", g.newest)
	}
}
