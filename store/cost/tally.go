// Package cost adds up what tasks spent: tokens, and money as far as prices are known.
//
// Amounts saturate and never overflow. An unknown price is unknown, not zero.
package cost

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Tally is all that a task ever spent: what Roost's requests spent, and what the rows of other programs count, rewound
// ones too. Roost's own rows repeat its requests and do not count.
type Tally struct {
	Own     task.UsageTotals
	foreign api.Usage
	cost    money.USD // of foreign
}

// TallyOf returns what a task has spent by the given state.
func TallyOf(s *task.State) Tally {
	var rows usage.Tokens
	for _, m := range ForeignRows(s) {
		spent, _ := m.Spent()
		spent.AddTo(&rows)
	}
	if t, ok := itemSpent(s); ok {
		rows = t
	}
	t := Tally{Own: s.Usage}
	t.foreign, t.cost = Round(rows)
	return t
}

// Usage returns the sum. Tokens that came from a cache, or went into one, count as tokens in.
func (t Tally) Usage() api.Usage {
	sum := t.foreign.Plus(api.Usage{
		TokensIn:  api.AddClamped(t.Own.Input, api.AddClamped(t.Own.CacheRead, t.Own.CacheWrite)),
		TokensOut: t.Own.Output, CacheReads: t.Own.CacheRead, CacheWrites: t.Own.CacheWrite,
	})
	if cost := money.USD(api.AddClamped(int64(t.cost), t.Own.CostMicros)); !t.Own.CostUnknown || cost != 0 {
		sum.Cost = &cost
	}
	return sum
}

// ForeignRows returns the rows with a cost that other programs wrote, in order. A row that left its history and came
// back as a new message counts once: Roo keeps a row's ts.
func ForeignRows(s *task.State) []*task.Message {
	var rows []*task.Message
	for id := uint64(1); id < s.NextMessage(); id++ {
		if m := s.Message(id); m != nil && m.History == task.UI && m.Foreign && s.Own(m) {
			if _, ok := m.Spent(); ok {
				rows = append(rows, m)
			}
		}
	}
	if len(rows) == 0 { // as in every task that only this program wrote
		return nil
	}
	ui := s.UI()
	if inOrder(rows, ui) { // as nearly always
		return rows
	}
	var out []*task.Message
	shown, place := map[int64]bool{}, map[uint64]int{}
	for i, m := range ui {
		shown[m.TS()], place[m.ID] = true, i+1
	}
	for _, m := range rows {
		if m.Hidden != "" && shown[m.TS()] {
			continue
		}
		if m.Hidden != "" {
			shown[m.TS()] = true
		}
		out = append(out, m)
	}
	// Rows that another program reordered are summed in the new order.
	slices.SortStableFunc(out, func(a, b *task.Message) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	return out
}

// itemSpent returns what a task's history item counts. It is for a task whose UI history has no row with a cost: the
// file is lost or has other content, or the tool keeps no such rows.
func itemSpent(s *task.State) (usage.Tokens, bool) {
	var t usage.Tokens
	if s.Adopted == nil || len(s.Adopted.Item) == 0 {
		return t, false
	}
	for id := uint64(1); id < s.NextMessage(); id++ {
		if m := s.Message(id); m != nil && m.History == task.UI && m.Foreign {
			r, _ := m.Spent()
			if r.In != 0 || r.Out != 0 || r.CacheReads != 0 || r.CacheWrites != 0 || r.Cost != 0 {
				return t, false
			}
		}
	}
	for key, to := range map[string]*float64{
		"tokensIn": &t.In, "tokensOut": &t.Out, "cacheReads": &t.CacheReads, "cacheWrites": &t.CacheWrites, "totalCost": &t.Cost,
	} {
		if n, ok := esjson.GetFloat(s.Adopted.Item, key); ok && n > 0 {
			*to = n
		}
	}
	return t, t != usage.Tokens{}
}

// Round turns a sum of doubles into whole tokens, and its cost into whole micro-dollars. Files may hold any number.
func Round(t usage.Tokens) (api.Usage, money.USD) {
	return api.Usage{
		TokensIn:    tokens(t.In),
		TokensOut:   tokens(t.Out),
		CacheWrites: tokens(t.CacheWrites),
		CacheReads:  tokens(t.CacheReads),
	}, max(money.FromFloat(t.Cost), 0)
}

func tokens(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(f)
}

// inOrder reports whether all rows are in the history and in its order: none is hidden, and none was moved.
func inOrder(rows, history []*task.Message) bool {
	for _, m := range history {
		if len(rows) > 0 && m == rows[0] {
			rows = rows[1:]
		}
	}
	return len(rows) == 0
}
