package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// A subscriber from the start may have read the journal further than the ring has got: text that came before what it
// read is no news.
func TestNoTextComesAfterWhatFollowedIt(t *testing.T) {
	t.Parallel()
	durable := func(seq int) []Item {
		return itemsOf([]Event{{ID: fmt.Sprintf("1.%d-0", seq), Type: "message.added", Seq: uint64(seq), Data: json.RawMessage(`{}`)}}, feed.Place{})
	}
	live := func(typ, text string) Item {
		return framed(Item{Event: Event{Type: typ, Data: json.RawMessage(`"` + text + `"`)}, Live: true})
	}
	topic := &Topic{ring: newRing(), past: func(_ context.Context, _ Cursor, give func(Item) error) (Cursor, error) {
		var err error
		for seq := 1; seq <= 3; seq++ {
			err = errors.Join(err, give(durable(seq)[0]))
		}
		return AfterCommit(3), err
	}}
	topic.ring.start(AfterCommit(1))
	s := topic.Subscribe(Cursor{})
	var got []string
	read := func() {
		if err := s.Read(t.Context(), func(one Item) error { got = append(got, one.ID+string(one.Data)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	read()
	topic.ring.add(live("message.delta", "old"), live("notice", "warning"))
	topic.ring.add(append(durable(2), durable(3)...)...)
	topic.ring.add(live("message.delta", "new"))
	read()
	want := []string{"1.1-0{}", "1.2-0{}", "1.3-0{}", `"warning"`, `"new"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
