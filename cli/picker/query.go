package picker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// pause is how long a person must have stopped typing before messages are searched:
// rows are searched with every letter, for that costs nothing.
const pause = 200 * time.Millisecond

// least is how many letters a word has that messages are searched for.
const least = 3

type (
	searchMsg struct{ turn int }
	hitsMsg   struct {
		turn int
		hits []Hit
		err  error
	}
)

// setQuery searches for another text. What was found for the one before is forgotten.
func (m *Model) setQuery(text string) tea.Cmd {
	q := &m.query
	if text == q.text {
		return nil
	}
	if q.cancel != nil {
		q.cancel()
	}
	q.text, q.cancel, q.hits, q.err, q.busy = text, nil, nil, nil, false
	q.turn++
	m.moved = false // the best row of a new search is its first
	m.arrange()
	if !slices.ContainsFunc(strings.Fields(text), func(w string) bool { return utf8.RuneCountInString(w) >= least }) {
		return nil
	}
	q.busy = true
	return m.after(pause, searchMsg{q.turn})
}

// searchAgain searches a list that was read again. The earlier hits stay until then.
func (m *Model) searchAgain() tea.Cmd {
	q := &m.query
	if q.hits == nil && q.err == nil {
		return nil // it was not searched, or still is
	}
	q.turn++
	return m.search(searchMsg{q.turn})
}

// after gives a message later, or not at all when the screen closes before.
func (m *Model) after(d time.Duration, msg tea.Msg) tea.Cmd {
	return m.crew.Do(func() tea.Msg {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return msg
		case <-m.crew.Ctx.Done():
			return nil
		}
	})
}

func (m *Model) search(msg searchMsg) tea.Cmd {
	q := &m.query
	if msg.turn != q.turn {
		return nil
	}
	var ctx context.Context
	ctx, q.cancel = context.WithCancel(m.crew.Ctx)
	text := q.text
	return m.crew.Do(func() tea.Msg {
		hits, err := m.backend.Search(ctx, text)
		return hitsMsg{msg.turn, hits, err}
	})
}

func (m *Model) hits(msg hitsMsg) {
	q := &m.query
	if msg.turn != q.turn {
		return
	}
	q.busy, q.err = false, msg.err
	q.hits = map[string]Hit{}
	for _, h := range msg.hits {
		if _, ok := q.hits[h.Key]; !ok {
			q.hits[h.Key] = h
		}
	}
	m.moved = m.moved || len(m.rows) > 0 // rows that come late do not pull the cursor away
	m.arrange()
}

// sorted puts tasks into the order of the list: pinned ones first, then the newest.
func sorted(list []Task) []Task {
	slices.SortStableFunc(list, func(a, b Task) int {
		switch {
		case a.Pinned && !b.Pinned:
			return -1
		case b.Pinned && !a.Pinned:
			return 1
		}
		return cmp.Compare(b.TS, a.TS)
	})
	return list
}
