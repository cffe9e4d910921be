package web

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// Bounds of the view that shows the next request beside the conversation: items of a page, and rows of the conversation
// beside one item.
const (
	pairsMost = 30
	besideOne = 40
)

// pair is one message of the next request, or neighbours that are left out of it, beside the rows that they come from.
type pair struct {
	api.AlignedMessage
	Saw    string // HTML: rows of the conversation
	Left   int    // rows that are left out
	Sent   string // HTML: the message of the next request
	Words  string // the state in words
	Stored string // the stored messages, as #3 or #3–#9
}

var fates = map[string]string{
	"sent": "sent", "changed": "sent, changed", "summary": "a summary, sent for what is before it", "condensed": "not sent: condensed",
	"left_out": "not sent: left out", "added": "added for the request",
}

// aligned shows the next request beside the conversation that it comes from.
func (d *taskData) aligned(a *asked, t *service.OpenTask, span service.Span) (before, after *int, err error) {
	span.Limit = pairsMost
	got, err := t.Alignment(span)
	if err != nil || len(got.Items) == 0 {
		return nil, nil, err
	}
	first, last := got.Items[0], got.Items[len(got.Items)-1]
	d.First, d.Last, d.Total, d.Notes = first.Number, last.Number, got.Total, got.Notes
	sent, err := partsOf(a, t, service.LinesOptions{Effective: true}, got.Items, func(m api.AlignedMessage) (int, int) { return m.Sent, m.Sent })
	if err != nil {
		return nil, nil, err
	}
	saw, err := partsOf(a, t, service.LinesOptions{}, got.Items, func(m api.AlignedMessage) (int, int) {
		return m.From, min(m.To, m.From+besideOne-1)
	})
	if err != nil {
		return nil, nil, err
	}
	for _, m := range got.Items {
		one := pair{AlignedMessage: m, Words: fates[m.State], Sent: sent[m.Sent]}
		for n := m.From; n > 0 && n <= m.To; n++ {
			if html, shown := saw[n]; shown {
				one.Saw += html
			} else {
				one.Left++
			}
		}
		if n := len(m.Stored); n > 0 {
			if one.Stored = "#" + itoa(m.Stored[0]); n > 1 {
				one.Stored += "–#" + itoa(m.Stored[n-1])
			}
		}
		d.Pairs = append(d.Pairs, one)
	}
	return got.Before, got.After, nil
}

// partsOf reads the messages of a history that the items need, by their numbers. It reads neighbouring items together.
func partsOf(a *asked, t *service.OpenTask, o service.LinesOptions, items []api.AlignedMessage,
	of func(api.AlignedMessage) (from, to int)) (map[int]string, error) {
	out := map[int]string{}
	from, to := 0, 0 // a stretch that is read at once
	read := func() error {
		if from == 0 {
			return nil
		}
		got, err := t.Fragments(a.Context(), o, service.Span{After: from, Limit: to - from + 1})
		for _, one := range got.Items {
			out[one.Number] = one.HTML
		}
		return err
	}
	for _, m := range items {
		low, high := of(m)
		if low == 0 {
			continue
		}
		if from == 0 || low > to+1 {
			if err := read(); err != nil {
				return nil, err
			}
			from = low
		}
		to = high
	}
	return out, read()
}
