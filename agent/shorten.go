package agent

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// defaultReply is the room for a reply of a model whose limit is not known; it is
// Roo's.
const defaultReply = 8192

// fit hides older messages as long as the next request is expected not to fit into
// the model's window. It uses what the provider counted for the request before; a
// task whose requests were never counted goes out as it is, and the provider
// judges.
func (a *Agent) fit(ctx context.Context) error {
	if a.Model.Entry.Context <= 0 {
		return nil
	}
	reply := a.replyRoom()
	allowed := int64(a.Model.Entry.Context)*9/10 - int64(reply)
	for {
		tokens := a.contextTokens()
		done, err := a.condenseAt(ctx, tokens, allowed)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if tokens <= allowed {
			return nil
		}
		d := a.draft()
		hidden := a.truncate(d, tokens)
		if hidden == 0 {
			return nil
		}
		if err := d.commit(ctx); err != nil {
			return err
		}
		a.notice(fmt.Sprintf("the next request would have about %d tokens, and %d are left for it: %s", tokens, allowed, hiddenWords(hidden)))
	}
}

func hiddenWords(n int) string {
	return fmt.Sprintf("%d older messages are not sent any more (the task keeps them)", n)
}

// replyRoom is how many tokens of the window are kept for the reply.
func (a *Agent) replyRoom() int {
	if n := a.Task.Settings.MaxTokens; n > 0 {
		return n
	}
	if n := min(a.Model.Entry.MaxOutput, a.Model.Entry.Context/5); n > 0 {
		return n
	}
	return defaultReply
}

// contextTokens is how many tokens the next request is expected to have: what the
// newest request and its reply had, or what a truncation left, and a guess for the
// messages since. 0 when nothing was counted yet.
func (a *Agent) contextTokens() int64 {
	tokens, _ := a.contextCount()
	return tokens
}

// contextCount is contextTokens, and whether a provider counted them.
func (a *Agent) contextCount() (tokens int64, counted bool) {
	ui, api := a.state().UI(), a.state().API()
	for i := len(ui) - 1; i >= 0; i-- {
		switch m := ui[i]; {
		case m.Kind() == "say:sliding_window_truncation" || m.Kind() == "say:condense_context" && !m.Foreign:
			left := shortened(m)
			if left <= 0 {
				continue
			}
			for _, later := range api {
				if later.ID > m.ID {
					left += messageTokens(later)
				}
			}
			return left, false
		case m.Kind() == "say:api_req_started" || m.Kind() == "say:condense_context":
			var t usage.Tokens
			if spent, ok := m.Spent(); ok {
				spent.AddTo(&t)
			}
			if t.ContextTokens <= 0 {
				continue // it never came back
			}
			tokens := int64(t.ContextTokens)
			for k := len(api) - 1; k >= 0 && api[k].Kind() != "assistant"; k-- {
				tokens += messageTokens(api[k])
			}
			return tokens, m.Kind() == "say:api_req_started"
		}
	}
	return 0, false
}

// shortened is how many tokens a row says that a truncation or a summary of ours left.
func shortened(row *task.Message) int64 {
	key := "contextTruncation"
	if row.Kind() == "say:condense_context" {
		key = "contextCondense"
	}
	info, _ := esjson.Get(row.Raw(), key)
	left, _ := esjson.GetInt(info, "newContextTokens")
	return left
}

// imageTokens is about what providers count for an image.
const imageTokens = 1600

// messageTokens guesses a message's tokens. Images are counted by the piece: their
// bytes say nothing.
func messageTokens(m *task.Message) int64 {
	bytes, images := contextwindow.Weigh(m.Raw())
	return contextwindow.EstimateTokens(int64(bytes), contextwindow.Calibration{}) + int64(images)*imageTokens
}

// truncate hides the older half of what is sent, in Roo's manner: the messages get
// a tag, a marker stands where they ended, and the person gets a row. It returns
// how many are hidden, 0 when there is too little to hide.
func (a *Agent) truncate(d *draft, before int64) int {
	s := a.state()
	api := s.API()
	raws := make([][]byte, len(api))
	total, left := int64(0), int64(0)
	for i, m := range api {
		raws[i] = m.Raw()
	}
	now := a.stamp()
	cut := contextwindow.CutOldest(raws, 0.5, uuid.NewString(), now)
	if len(cut.Hide) == 0 {
		return 0
	}
	for _, raw := range contextwindow.Effective(raws) {
		bytes, images := contextwindow.Weigh(raw)
		total += int64(bytes) + int64(images)*imageTokens
	}
	left = total
	var hidden []*task.Message
	for _, i := range cut.Hide {
		bytes, images := contextwindow.Weigh(raws[i])
		left -= int64(bytes) + int64(images)*imageTokens
		hidden = append(hidden, api[i])
	}
	if before <= 0 {
		before = contextwindow.EstimateTokens(total, contextwindow.Calibration{})
	}
	after := max(before*max(left, 0)/max(total, 1), 1)
	marker := task.MessageAdded{History: task.API, Message: d.NextMessage(), Body: task.Body{Raw: cut.Marker}}
	if cut.At < len(api) {
		marker.Before = api[cut.At].ID
	}
	d.Put(marker)
	row := d.row(truncationRow(now, cut.ID, len(cut.Hide), before, after))
	d.Put(task.HistoryTruncated{
		Run: a.Task.RunID, Truncation: cut.ID, Marker: marker.Message, Row: row, Covers: s.RunsOf(hidden),
		Messages: len(cut.Hide), Before: before, After: after,
	})
	a.sending.window = window{}
	return len(cut.Hide)
}

// truncationRow is the row that Roo writes; it has no text.
func truncationRow(ts int64, id string, removed int, before, after int64) []byte {
	var info, o esjson.Object
	info.String("truncationId", id)
	info.Int("messagesRemoved", int64(removed))
	info.Int("prevContextTokens", before)
	info.Int("newContextTokens", after)
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "sliding_window_truncation")
	o.Raw("contextTruncation", info.Bytes())
	return o.Bytes()
}

// shorten makes a request shorter that the provider found too long. When one result
// or call is more than half of it, that one goes: hiding everything before it would
// cost the task its memory and not help.
func (a *Agent) shorten(ctx context.Context, d *draft, refused *llm.Error) (*draft, string, bool) {
	o, size, total := a.largest()
	if size*2 <= total {
		if done, err := a.tryCondense(ctx, asking{auto: true, told: true}); err == nil && done {
			return a.draft(), "the older part of the history is a summary now", true
		}
		if n := a.truncate(d, a.contextTokens()); n > 0 {
			return d, hiddenWords(n), true
		}
	}
	if size < minLarge {
		return nil, "", false
	}
	w := a.withhold(o, false, refused.Message)
	if w == nil {
		return nil, "", false
	}
	w.What += " (" + strconv.Itoa(size) + " bytes)"
	d.Put(*w)
	return d, "left out of what is sent: " + w.What, true
}

// minLarge is the least size of a block that is worth leaving out.
const minLarge = 4 << 10

// largest is the largest call or result of what is sent, its size, and the size of
// all that is sent. What a summary stands for is not sent.
func (a *Agent) largest() (at contextwindow.Origin, size, total int) {
	messages := a.sendable()
	sent := map[*task.Message]bool{}
	for _, m := range a.state().Sent() {
		sent[m] = true
	}
	for i, m := range a.state().API() {
		if !sent[m] {
			continue
		}
		raw := messages[i]
		n, images := contextwindow.Weigh(raw)
		if tag, _ := esjson.GetString(raw, "truncationParent"); tag != "" {
			continue
		}
		total += n + images*imageTokens
		content, _ := esjson.Get(raw, "content")
		if esjson.TypeOf(content) != esjson.TypeArray || len(content) <= size || m.Kind() == "" {
			continue
		}
		k := -1
		for b := range esjson.Array(content) {
			k++
			typ, _ := esjson.GetString(b, "type")
			if n, _ := contextwindow.Weigh(b); (typ == "tool_result" || typ == "tool_use") && n > size {
				at, size = contextwindow.Origin{Message: i, Block: k}, n
			}
		}
	}
	return at, size, total
}
