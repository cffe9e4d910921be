package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// withhold names a block that is no longer sent; nil when it is left out already or has nothing of that kind.
func (a *Agent) withhold(o contextwindow.Origin, images bool, reason string) *task.MessageWithheld {
	m := a.state().API()[o.Message]
	block := blockAt(m.Raw(), o.Block)
	if block == nil || images && !hasImage(block) {
		return nil
	}
	for _, w := range a.withheld() {
		if w.Message == m.ID && w.Block == o.Block && w.Provider == a.Model.Provider.Name() && (!w.Images || images) {
			return nil
		}
	}
	if typ, _ := esjson.GetString(block, "type"); typ == "image" {
		images = false
	}
	a.sending.window = window{}
	return &task.MessageWithheld{
		Run:      a.Task.RunID,
		Message:  m.ID,
		Block:    o.Block,
		Images:   images,
		Provider: a.Model.Provider.Name(),
		What:     a.describeBlock(m, block, images),
		Reason:   firstBytes(reason, 300),
	}
}

// withheld is what is left out now, recorded or on trial.
func (a *Agent) withheld() []task.MessageWithheld {
	return append(slices.Clip(a.state().Withheld), a.sending.trial...)
}

// describeBlock describes a block in words.
func (a *Agent) describeBlock(m *task.Message, block []byte, images bool) string {
	typ, _ := esjson.GetString(block, "type")
	id, _ := esjson.GetString(block, "tool_use_id")
	switch typ {
	case "tool_result":
		what := "the result of " + a.describeCall(id)
		if images {
			return "the image in " + what
		}
		return what
	case "tool_use":
		id, _ = esjson.GetString(block, "id")
		return "the input of " + a.describeCall(id)
	case "image":
		return "an image of the user's"
	case "text":
		if m.Kind() == "assistant" {
			return "a text of the model's"
		}
		return "a text of the user's message"
	}
	return "a " + typ + " block"
}

func (a *Agent) describeCall(id string) string {
	c := a.state().Call(id)
	if c == nil {
		return "a tool call"
	}
	for _, key := range []string{"path", "file_path", "command"} {
		if v, _ := esjson.GetString(c.Input(), key); v != "" {
			return c.Name + " for " + firstBytes(v, 120)
		}
	}
	return c.Name
}

// sendableMessages are the visible messages as they are sent: withheld blocks are replaced.
func (a *Agent) sendableMessages() [][]byte {
	var out [][]byte
	for _, m := range a.state().API() {
		out = append(out, a.withoutWithheld(m))
	}
	return out
}

// withoutWithheld is a stored message as it is sent.
func (a *Agent) withoutWithheld(m *task.Message) []byte {
	raw := []byte(m.Raw())
	for _, w := range a.withheld() {
		if w.Message == m.ID && w.Provider == a.Model.Provider.Name() {
			text := fmt.Sprintf("[Left out here: %s. The model's provider did not take it.]", w.What)
			raw = contextwindow.Withhold(raw, w.Block, w.Images, text)
		}
	}
	return raw
}

// blockAt is a block of a message's content, nil when there is none. A string counts as one block.
func blockAt(raw []byte, n int) []byte {
	content, _ := esjson.Get(raw, "content")
	if esjson.TypeOf(content) == esjson.TypeString && n == 0 {
		return rows.Text("")
	}
	if esjson.TypeOf(content) != esjson.TypeArray {
		return nil
	}
	i := 0
	for b := range esjson.Array(content) {
		if i == n {
			return b
		}
		i++
	}
	return nil
}

func hasImage(block []byte) bool {
	typ, _ := esjson.GetString(block, "type")
	content, _ := esjson.Get(block, "content")
	if typ != "tool_result" || esjson.TypeOf(content) != esjson.TypeArray {
		return typ == "image"
	}
	for inner := range esjson.Array(content) {
		if typ, _ := esjson.GetString(inner, "type"); typ == "image" {
			return true
		}
	}
	return false
}

// firstBytes is the beginning of s and splits no character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
