package wire

import (
	"sync"

	"github.com/roost-dev/roost/llm"
)

// History keeps the messages of the last request as they were sent, so that a turn
// translates only new ones. Stored messages are never changed in place, so a message
// in the same memory is the same message.
type History struct {
	mu   sync.Mutex
	sent []sentMessage
}

type sentMessage struct {
	llm.Message
	wire []byte
}

// Add adds the messages to a body, separated by commas. It calls translate for new
// messages only; a message whose translation is nil is left out.
func (h *History) Add(body *Body, messages []llm.Message, translate func(llm.Message) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	same := 0
	for same < len(h.sent) && same < len(messages) && sameMessage(h.sent[same].Message, messages[same]) {
		same++
	}
	h.sent = h.sent[:same:same]
	for _, m := range messages[same:] {
		h.sent = append(h.sent, sentMessage{Message: m, wire: translate(m)})
	}
	first := true
	for _, m := range h.sent {
		if len(m.wire) == 0 {
			continue
		}
		if !first {
			body.Add(comma)
		}
		first = false
		body.Add(m.wire)
	}
}

var comma = []byte(",")

func sameMessage(a, b llm.Message) bool {
	return a.Role == b.Role && len(a.Content) > 0 && len(a.Content) == len(b.Content) && &a.Content[0] == &b.Content[0] &&
		// Whether a server gets them back may change, the content not.
		len(a.ReasoningDetails) == len(b.ReasoningDetails) && len(a.ReasoningContent) == len(b.ReasoningContent)
}
