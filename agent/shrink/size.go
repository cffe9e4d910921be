// Package shrink decides how a history is made to fit into a model's window: how large the next request is, when
// a summary is due, what a truncation hides, which block is too large to send.
//
// It reads the task's state and returns events or numbers; the agent asks the model, commits and sends. Nothing is
// removed from the journal: a truncation hides messages and a summary stands for them, both as Roo does it.
//
// Sizes are what the provider counted for the newest request, and an estimate for what came since. A task whose
// requests were never counted goes out whole, and the provider judges.
package shrink

import (
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// ImageTokens is about what providers count for an image. It does not depend on the bytes of the image.
const ImageTokens = 1600

// Tokens is how many tokens the next request is expected to have: those of the newest request and its reply, or
// those that a truncation or summary left, and an estimate for the messages since. It is 0 when nothing was
// counted yet. counted reports that a provider counted them.
func Tokens(s *task.State) (tokens int64, counted bool) {
	ui, api := s.UI(), s.API()
	for i := len(ui) - 1; i >= 0; i-- {
		switch m := ui[i]; {
		case m.Kind() == "say:sliding_window_truncation" || m.Kind() == "say:condense_context" && !m.Foreign:
			left := tokensLeft(m)
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
				continue // the request got no reply
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

// tokensLeft is how many tokens a truncation or a summary of ours left, by its row.
func tokensLeft(row *task.Message) int64 {
	key := "contextTruncation"
	if row.Kind() == "say:condense_context" {
		key = "contextCondense"
	}
	info, _ := esjson.Get(row.Raw(), key)
	left, _ := esjson.GetInt(info, "newContextTokens")
	return left
}

// messageTokens estimates a message's tokens.
func messageTokens(m *task.Message) int64 {
	bytes, images := contextwindow.Weigh(m.Raw())
	return contextwindow.EstimateTokens(int64(bytes), contextwindow.Calibration{}) + int64(images)*ImageTokens
}

// Size is the size of those messages that are sent, in bytes; an image counts by its tokens.
func Size(raws [][]byte) int64 {
	total := int64(0)
	for _, raw := range contextwindow.Effective(raws) {
		total += messageSize(raw)
	}
	return total
}

func messageSize(raw []byte) int64 {
	bytes, images := contextwindow.Weigh(raw)
	return int64(bytes) + int64(images)*ImageTokens
}

// Largest finds the largest call or result among the messages that are sent. messages are the visible messages as
// they are sent; size is that of the block, total that of all messages. Messages that a summary stands for, or
// that a truncation hides, are not sent.
func Largest(s *task.State, messages [][]byte) (at contextwindow.Origin, size, total int) {
	sent := map[*task.Message]bool{}
	for _, m := range s.Sent() {
		sent[m] = true
	}
	for i, m := range s.API() {
		if !sent[m] {
			continue
		}
		raw := messages[i]
		if tag, _ := esjson.GetString(raw, "truncationParent"); tag != "" {
			continue
		}
		total += int(messageSize(raw))
		content, _ := esjson.Get(raw, "content")
		if esjson.TypeOf(content) != esjson.TypeArray || len(content) <= size || m.Kind() == "" {
			continue
		}
		block := -1
		for b := range esjson.Array(content) {
			block++
			typ, _ := esjson.GetString(b, "type")
			if n, _ := contextwindow.Weigh(b); (typ == "tool_result" || typ == "tool_use") && n > size {
				at, size = contextwindow.Origin{Message: i, Block: block}, n
			}
		}
	}
	return at, size, total
}
