package picker

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/api"
)

// rowText returns the text of a row that a search looks at.
func rowText(t Task) string {
	return strings.ToLower(t.Title + "\n" + t.ID + "\n" + t.Workspace + "\n" + t.Where + "\n" + strings.Join(t.Tags, "\n"))
}

type foundMsg struct {
	found Found
	err   error
	more  bool
}

// reload reads the list again; the shown one stays until then.
func (m *Model) reload() tea.Cmd {
	if m.load.stop != nil { // the present reading ends first, and then the next one begins
		m.load.again = true
		m.load.cancel()
		return nil
	}
	ctx, cancel := context.WithCancel(m.crew.Ctx)
	m.load.next, m.load.stop = iter.Pull2(m.backend.Tasks(ctx))
	m.load.cancel, m.load.again, m.load.err = cancel, false, nil
	if !m.load.whole { // what an earlier reading found before it was broken off comes again
		m.all = nil
	}
	return m.nextFound()
}

func (m *Model) nextFound() tea.Cmd {
	next := m.load.next
	return m.crew.Do(func() tea.Msg {
		found, err, ok := next()
		return foundMsg{found, err, ok}
	})
}

// wordsOf returns an expression that finds the words of a search in any case; nil without words.
func wordsOf(text string) *regexp.Regexp {
	words := api.Each(strings.Fields(text), func(w string) string { return regexp.QuoteMeta(strings.Trim(w, `"`)) })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	if len(words) == 0 {
		return nil
	}
	return regexp.MustCompile("(?i)" + strings.Join(words, "|"))
}

// pause is the time without typing before a search of messages begins. Rows are searched at every letter, which costs
// nothing.
const pause = 200 * time.Millisecond

// least is the least number of letters that a word needs for a search of messages.
const least = 3

type (
	searchMsg struct{ turn int }
	hitsMsg   struct {
		turn int
		hits []api.Hit
		err  error
	}
)

// setQuery searches for another text, and drops the hits of the earlier one.
func (m *Model) setQuery(text string) tea.Cmd {
	q := &m.query
	if text == q.text {
		return nil
	}
	if q.cancel != nil {
		q.cancel()
	}
	q.text, q.cancel, q.hits, q.count, q.err, q.busy = text, nil, nil, nil, nil, false
	q.words = wordsOf(text)
	q.turn++
	m.moved = false // the best row of a new search is its first
	m.arrange()
	if !slices.ContainsFunc(strings.Fields(text), func(w string) bool { return utf8.RuneCountInString(w) >= least }) {
		return nil
	}
	q.busy = true
	return m.after(pause, searchMsg{q.turn})
}

// searchAgain repeats the search in a list that was read again. The earlier hits stay until it ends.
func (m *Model) searchAgain() tea.Cmd {
	q := &m.query
	if q.hits == nil && q.err == nil {
		return nil // no search has ended yet
	}
	q.turn++
	return m.search(searchMsg{q.turn})
}

// after sends a message later, or never if the screen closes before.
func (m *Model) after(d time.Duration, msg tea.Msg) tea.Cmd {
	return m.crew.Do(func() tea.Msg {
		select {
		case <-time.After(d):
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
	q.hits, q.count = map[string]api.Hit{}, map[string]int{}
	for _, h := range msg.hits {
		key := h.Task.Key()
		if q.count[key]++; q.count[key] == 1 {
			q.hits[key] = h
		}
	}
	m.moved = m.moved || len(m.rows) > 0 // rows that come late do not pull the cursor away
	m.arrange()
}
