package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Expense is what one request to a model cost.
type Expense struct {
	At       int64 // Unix milliseconds; 0 when nothing says
	Provider string
	Model    string   // "" when nothing says
	Tools    []string // that its reply called, in order
	Usage    Usage
}

// Tally is all that a task ever spent: our ledger, and the rows that other programs wrote,
// rewound ones too. Our own rows repeat the ledger and do not count.
type Tally struct {
	Own     task.UsageTotals
	foreign Usage
	cost    money.USD // of foreign
}

// TallyOf is what a task had spent in a state of it.
func TallyOf(s *task.State) Tally {
	var rows usage.Tokens
	for _, m := range foreignRows(s) {
		spent, _ := m.Spent()
		spent.AddTo(&rows)
	}
	if t, ok := rowSpent(s); ok {
		rows = t
	}
	t := Tally{Own: s.Usage}
	t.foreign, t.cost = inWhole(rows)
	return t
}

// Usage is the sum. Tokens that came from a cache, or went into one, are tokens in, too.
func (t Tally) Usage() Usage {
	sum := t.foreign.Plus(Usage{
		TokensIn:  api.AddClamped(t.Own.Input, api.AddClamped(t.Own.CacheRead, t.Own.CacheWrite)),
		TokensOut: t.Own.Output, CacheReads: t.Own.CacheRead, CacheWrites: t.Own.CacheWrite,
	})
	if cost := money.USD(api.AddClamped(int64(t.cost), t.Own.CostMicros)); !t.Own.CostUnknown || cost != 0 {
		sum.Cost = &cost
	}
	return sum
}

func spentOn(s *task.State) Usage { return TallyOf(s).Usage() }

// foreignRows are the rows with a cost that other programs wrote, in order. One that
// left its history and came back as a new message counts once: Roo keeps a row's ts.
func foreignRows(s *task.State) []*task.Message {
	var out []*task.Message
	shown := map[int64]bool{}
	var last uint64
	plain := true // nothing of it is hidden, or stands in another order: so are nearly all
	for _, m := range s.UI() {
		plain, last = plain && m.ID > last, m.ID
	}
	for id := uint64(1); id < s.NextMessage() && plain; id++ {
		m := s.Message(id)
		plain = m == nil || m.Hidden == ""
	}
	if !plain {
		for _, m := range s.UI() {
			shown[m.TS()] = true
		}
	}
	for id := uint64(1); id < s.NextMessage(); id++ {
		m := s.Message(id)
		if m == nil || m.History != task.UI || !m.Foreign || !s.Own(m) || m.Hidden != "" && shown[m.TS()] {
			continue
		}
		if _, ok := m.Spent(); !ok {
			continue
		}
		if m.Hidden != "" {
			shown[m.TS()] = true
		}
		out = append(out, m)
	}
	if plain {
		return out
	}
	// A list that another program put in another order is summed in that order.
	place := map[uint64]int{}
	for i, m := range s.UI() {
		place[m.ID] = i + 1
	}
	slices.SortStableFunc(out, func(a, b *task.Message) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	return out
}

// Expenses lists what a task spent, request by request, oldest first. It adds up
// to the summary's usage, to the micro-dollar: what no request explains any more,
// because the log lost a commit or the rows are gone, is an expense of its own without
// a model.
func (v *View) Expenses(ctx context.Context) ([]Expense, error) {
	list, err := v.foreignExpenses()
	if err != nil {
		return nil, err
	}
	own, err := v.ledger(ctx)
	if err != nil {
		return nil, err
	}
	list = append(list, own...)
	for i := range list {
		if list[i].At <= 0 {
			list[i].At = max(v.Summary.TS, 0)
		}
	}
	slices.SortStableFunc(list, func(a, b Expense) int { return cmp.Compare(a.At, b.At) })
	v.tools(list)
	var sum Usage
	for _, e := range list {
		sum = sum.Plus(e.Usage)
	}
	if rest := v.Summary.Usage.Less(sum); rest.NonZero() {
		if rest.Cost == nil && v.Summary.Usage.Cost != nil {
			rest.Cost = new(money.USD)
		}
		list = append(list, Expense{At: max(v.Summary.TS, 0), Usage: rest})
	}
	return list, nil
}

// foreignExpenses cuts the sums of other programs' rows into the rows' shares. Sums
// of doubles that are rounded once do not equal sums of rounded doubles, so each row
// gets the step that it makes in the rounded sum.
func (v *View) foreignExpenses() ([]Expense, error) {
	var list []Expense
	var sum usage.Tokens
	var before Usage
	var costBefore money.USD
	rows := foreignRows(v.State)
	models, err := v.models(rows)
	if err != nil {
		return nil, err
	}
	for i, m := range rows {
		spent, _ := m.Spent()
		spent.AddTo(&sum)
		now, cost := inWhole(sum)
		step, share := now.Less(before), cost-costBefore
		before, costBefore = now, cost
		if share == 0 && !step.NonZero() {
			continue // a request that brought no reply
		}
		if v.Summary.Usage.Cost != nil { // else there was no price in any of it
			step.Cost = &share
		}
		list = append(list, Expense{At: m.TS(), Provider: models[i][0], Model: models[i][1], Usage: step})
	}
	return list, nil
}

// models says for each row which provider and model it is of. Cline's rows say it, and
// Roo's when they hold the request; what they do not say is the task's.
func (v *View) models(rows []*task.Message) ([][2]string, error) {
	out := make([][2]string, len(rows))
	const atOnce = 200
	for from := 0; from < len(rows); from += atOnce {
		part := rows[from:min(from+atOnce, len(rows))]
		raws, err := v.State.Raws(part)
		for i := range part {
			at := &out[from+i]
			*at = [2]string{v.State.Settings.Provider, cmp.Or(v.State.Settings.Model, v.Summary.Model)}
			if err != nil {
				continue // its bytes are gone; what it cost is known
			}
			info, ok := esjson.Get(raws[i], "modelInfo")
			if !ok || esjson.TypeOf(info) != esjson.TypeObject {
				at[1] = cmp.Or(roofmt.EnvironmentOf(raws[i]).Model, at[1])
				continue
			}
			if model, ok := esjson.GetString(info, "modelId"); ok && model != "" {
				at[1] = model
				at[0], _ = esjson.GetString(info, "providerId")
			}
		}
	}
	return out, nil
}

// ledger reads the journal's lines. A task that runs may have more by now than the
// state that was folded: those are left to the next reader.
func (v *View) ledger(ctx context.Context) ([]Expense, error) {
	if v.Log == nil || v.State.Usage.Requests == 0 {
		return nil, nil
	}
	var out []Expense
	from := uint64(1)
	if v.State.Fork != nil { // what was spent before is the other task's
		from = v.State.Fork.Seq + 1
	}
	for c, err := range v.Log.Read(ctx, from) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			continue // the rest of the log stands
		case err != nil:
			return nil, fmt.Errorf("task %s: read its ledger: %w", v.Ref.ID, err)
		case c.Seq > v.State.Seq:
			return out, nil
		}
		for _, raw := range c.Events {
			if !bytes.Contains(raw, []byte("usage.changed")) {
				continue
			}
			e, err := task.Decode(raw)
			line, ok := e.(task.UsageChanged)
			if err != nil || !ok {
				continue
			}
			if e := v.expense(line, c.At); line.More && len(out) > 0 {
				out[len(out)-1].Usage.Add(e.Usage)
			} else {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

func (v *View) expense(line task.UsageChanged, at int64) Expense {
	if m := v.State.Message(line.Request); m != nil && m.TS() > 0 {
		at = m.TS() // when it went out: its reply's calls are later
	}
	in, read, write := max(line.Input, 0), max(line.CacheRead, 0), max(line.CacheWrite, 0)
	e := Expense{At: at, Provider: line.Provider, Model: line.Model, Usage: Usage{
		TokensIn: api.AddClamped(in, api.AddClamped(read, write)), TokensOut: max(line.Output, 0), CacheReads: read, CacheWrites: write,
	}}
	if line.CostMicros != nil && v.Summary.Usage.Cost != nil { // with nothing but unknown and free ones, nobody knows
		cost := money.USD(max(*line.CostMicros, 0))
		e.Usage.Cost = &cost
	}
	return e
}

// inWhole is a sum of doubles as whole tokens and micro-dollars. Files may hold any
// number.
func inWhole(t usage.Tokens) (Usage, money.USD) {
	return Usage{TokensIn: tokens(t.In), TokensOut: tokens(t.Out), CacheWrites: tokens(t.CacheWrites), CacheReads: tokens(t.CacheReads)},
		max(money.FromFloat(t.Cost), 0)
}

// RoundUsage is a sum of doubles as whole tokens, and its cost as whole micro-dollars.
func RoundUsage(t usage.Tokens) (Usage, money.USD) { return inWhole(t) }

func tokens(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(f)
}
