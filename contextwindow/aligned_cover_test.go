package contextwindow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// inOrder is a message with both of Roo's tags at its end, in one order: which of them
// came first says nothing.
func inOrder(raw string) string {
	tag, hasTag := esjson.Get([]byte(raw), "truncationParent")
	cond, hasCond := esjson.Get([]byte(raw), "condenseParent")
	if !hasTag || !hasCond {
		return raw
	}
	bare := esjson.Remove(esjson.Remove([]byte(raw), "truncationParent"), "condenseParent")
	return string(esjson.Set(esjson.Set(bare, "truncationParent", tag), "condenseParent", cond))
}

// markerOf is the truncation or the summary that a message or a row tells of.
func markerOf(raw []byte) string {
	for member, key := range map[string]string{"contextTruncation": "truncationId", "contextCondense": "condenseId"} {
		if info, ok := esjson.Get(raw, member); ok {
			id, _ := esjson.GetString(info, key)
			return id
		}
	}
	id, _ := esjson.GetString(raw, "truncationId")
	if id == "" {
		id, _ = esjson.GetString(raw, "condenseId")
	}
	return id
}

// pair numbers a message and the row behind it, for one commit.
func (w *world) pair(m, row *messageText, before uint64) (message, line task.MessageAdded) {
	m.id = w.s.NextMessage()
	row.id = m.id + 1
	m.own, row.own = true, true
	return task.MessageAdded{History: task.API, Message: m.id, Before: before, Body: task.Body{Raw: json.RawMessage(m.raw)}},
		task.MessageAdded{History: task.UI, Message: row.id, Body: task.Body{Raw: json.RawMessage(row.raw)}}
}

func (w *world) place(at int) uint64 {
	if api := w.s.API(); at < len(api) {
		return api[at].ID
	}
	return 0
}

// coverCut truncates without touching the messages.
func (w *world) coverCut(cut contextwindow.Cut) {
	api := w.s.API()
	mark := messageText{marker: cut.ID, raw: string(cut.Marker)}
	row := messageText{marker: cut.ID, raw: fmt.Sprintf(`{"ts":%d,"type":"say","say":"sliding_window_truncation","contextTruncation":{"truncationId":%q}}`, w.ts, cut.ID)}
	added, line := w.pair(&mark, &row, w.place(cut.At))
	var hidden []*task.Message
	for _, i := range cut.Hide {
		hidden = append(hidden, api[i])
		w.head.api[i].tag = cut.ID
	}
	w.went(added, line, task.HistoryTruncated{Truncation: cut.ID, Marker: mark.id, Row: row.id, Covers: w.s.RunsOf(hidden), Messages: len(hidden)})
	w.head.api = slices.Insert(w.head.api, cut.At, mark)
	w.head.ui = append(w.head.ui, row)
}

// condense has a summary stand for older messages.
func (w *world) condense() {
	api := w.s.API()
	raws, err := w.s.RawAPI()
	if err != nil {
		w.Fatal(err)
	}
	plan, err := contextwindow.PlanCondense(raws, w.n("keep", 0, 600))
	if err != nil {
		return
	}
	id := fmt.Sprint("S", w.s.Seq)
	summary := messageText{marker: id, raw: string(plan.Message(raws, contextwindow.Summary{ID: id, Text: "so far"}, w.ts))}
	row := messageText{marker: id, raw: fmt.Sprintf(`{"ts":%d,"type":"say","say":"condense_context","contextCondense":{"condenseId":%q}}`, w.ts, id)}
	added, line := w.pair(&summary, &row, w.place(plan.At))
	var covered []*task.Message
	for _, i := range plan.Cover {
		covered = append(covered, api[i])
		w.head.api[i].cond = id
	}
	w.went(added, line, task.HistoryCondensed{Condense: id, Summary: summary.id, Row: row.id, Covers: w.s.RunsOf(covered), Messages: len(covered)})
	w.head.api = slices.Insert(w.head.api, plan.At, summary)
	w.head.ui = append(w.head.ui, row)
}

// uncover takes the newest deed back when it is a summary or a truncation, and now and
// then does it again: then everything is as it was.
func (w *world) uncover() {
	d := w.s.Actions.Done
	if len(d) == 0 || d[len(d)-1].Cover == 0 {
		return
	}
	was, deed := fingerprint(w.s), d[len(d)-1]
	w.commit(deed.Back())
	if w.n("again", 0, 1) == 0 {
		w.commit(deed.Again())
		if d := cmp.Diff(was, fingerprint(w.s)); d != "" {
			w.Fatalf("%s taken back and done again: %s", deed.Kind, d)
		}
		return
	}
	c := w.s.Covers[slices.IndexFunc(w.s.Covers, func(c task.Cover) bool { return c.Seq == deed.Seq })]
	w.head.api = slices.DeleteFunc(slices.Clone(w.head.api), func(m messageText) bool { return m.id == c.Message })
	w.head.ui = slices.DeleteFunc(slices.Clone(w.head.ui), func(m messageText) bool { return m.id == c.Row })
	w.done, w.again = nil, nil
}

// sent: the part of the history that the state picks out gives the same request.
func (w *world) sent(want []llm.Message) {
	raws, err := w.s.Raws(w.s.Sent())
	if err != nil {
		w.Fatal(err)
	}
	list := make([][]byte, len(raws))
	for i, raw := range raws {
		list[i] = raw
	}
	got, _, _ := contextwindow.Build(list, contextwindow.For("anthropic")) //nolint:errcheck // nothing to send gives nothing
	same := func(a, b llm.Message) bool { return a.Role == b.Role && bytes.Equal(a.Content, b.Content) }
	if !slices.EqualFunc(want, got, same) {
		w.Fatalf("of %d messages the state sends %d: %s", len(w.s.API()), len(list), cmp.Diff(want, got))
	}
}
