package report

import (
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// The states of stored messages in a request.
const (
	alignedSent      = "sent"
	alignedChanged   = "changed"
	alignedSummary   = "summary"
	alignedCondensed = "condensed"
	alignedLeftOut   = "left_out"
	alignedAdded     = "added"
)

// togetherMost bounds the messages in one item of messages that are not sent.
const togetherMost = 20

// Align pairs each message of the next request with the stored messages that it is made of, and with the rows of the
// conversation that belong to those. It uses the code that builds requests. Stored messages that are not sent form
// separate items, neighbours together.
func Align(v *store.View) (items []api.AlignedMessage, err error) {
	stored, at, o, err := sendable(v)
	if err != nil {
		return nil, err
	}
	a := aligner{stored: v.State.API(), cuts: cutsOf(v.State), sentAs: map[int]int{}, parts: map[int][]int{}, why: map[int][]string{}, summary: -1}
	for i, origins := range contextwindow.Trace(stored, o) {
		for _, from := range origins {
			if from.Message < 0 {
				continue
			}
			place := at[from.Message]
			if _, known := a.sentAs[place]; !known {
				a.sentAs[place] = i
				a.parts[i] = append(a.parts[i], place)
			}
		}
	}
	built, mended, _ := contextwindow.Build(stored, o) // an empty request has no messages
	for _, n := range mended {
		if n.Index >= 0 {
			a.why[at[n.Index]] = append(a.why[at[n.Index]], n.Text)
		}
	}
	for i, raw := range stored {
		if esjson.IsTrue(raw, "isSummary") {
			a.summary = at[i]
		}
	}
	return a.items(len(built)), nil
}

type aligner struct {
	stored  []*task.Message
	cuts    []int         // for each stored message: the number of rows of the conversation up to it
	sentAs  map[int]int   // for places in the stored history: the index of the request's message
	parts   map[int][]int // for each message of the request: its places in the stored history
	why     map[int][]string
	summary int // the place of the newest summary; -1 = none
	out     []api.AlignedMessage
	rows    int // number of rows of the conversation that are in an item
}

func (a *aligner) items(sent int) []api.AlignedMessage {
	next := 0 // the message of the request that comes next
	var left []int
	upTo := func(n int) { // adds what was left out, and the messages before message n of the request
		if len(left) > 0 {
			a.leftOut(left)
			left = nil
		}
		for ; next < n; next++ {
			a.add(api.AlignedMessage{State: alignedAdded, Sent: next + 1}, nil)
		}
	}
	for place := range a.stored {
		i, is := a.sentAs[place]
		switch {
		case !is:
			if len(left) > 0 && (len(left) == togetherMost || (place < a.summary) != (left[0] < a.summary)) {
				upTo(next)
			}
			left = append(left, place)
		case i >= next:
			upTo(i)
			a.sent(i)
			next++
		}
	}
	upTo(sent)
	return a.out
}

// add adds an item made from some places of the stored history.
func (a *aligner) add(one api.AlignedMessage, places []int) {
	one.Number, one.Stored = len(a.out)+1, []int{}
	if one.Why == nil {
		one.Why = []string{}
	}
	to := a.rows
	for _, place := range places {
		one.Stored = append(one.Stored, place+1)
		one.Why = append(one.Why, a.why[place]...)
		to = max(to, a.cuts[place])
	}
	if to > a.rows {
		one.From, one.To = a.rows+1, to
		a.rows = to
	}
	a.out = append(a.out, one)
}

func (a *aligner) sent(i int) {
	one := api.AlignedMessage{State: alignedSent, Sent: i + 1}
	for _, place := range a.parts[i] {
		switch {
		case place == a.summary:
			one.State = alignedSummary
		case len(a.why[place]) > 0 && one.State == alignedSent:
			one.State = alignedChanged
		}
	}
	a.add(one, a.parts[i])
}

func (a *aligner) leftOut(places []int) {
	one := api.AlignedMessage{State: alignedLeftOut}
	if places[0] < a.summary {
		one.State, one.Why = alignedCondensed, []string{fmt.Sprintf("the summary in stored message %d replaces it", a.summary+1)}
	}
	a.add(one, places)
}

// cutsOf counts, for each message of the model's history, the rows of the conversation up to that message. The rows
// of one commit belong to its message; for a commit with several messages, as with another tool's task, the times
// decide.
func cutsOf(s *task.State) []int {
	rows, messages := s.UI(), s.API()
	out := make([]int, len(messages))
	n, end := 0, len(messages)-1
	for i, m := range messages {
		together := i > 0 && messages[i-1].Seq == m.Seq || i < end && messages[i+1].Seq == m.Seq
		late := i < end && messages[i+1].Seq < m.Seq // a summary was put before older messages
		for ; n < len(rows) && !late; n++ {
			r := rows[n]
			if r.Seq > m.Seq || together && r.Seq == m.Seq && r.TS() > m.TS() {
				break
			}
		}
		out[i] = n
	}
	if end >= 0 {
		out[end] = len(rows)
	}
	return out
}
