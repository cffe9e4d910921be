package contextwindow

import "github.com/roost-dev/roost/esjson"

// Trace returns where each block of each message of a request comes from: the request that Build makes from the same
// history with the same options. It is for the rare case that a provider refuses a block, and reads all of the history.
func Trace(history [][]byte, o Options) [][]Origin {
	b := NewBuilder(o)
	b.tracing = true
	for _, m := range history {
		b.Append(m)
	}
	_, _, _ = b.Messages() // a request without messages has no origins
	return b.trace
}

// Withhold replaces a part of a stored message by a text, for sending: a block of its content, all of it (block -1),
// or, with images, only the images in it. A message without such a part is returned unchanged. A call stays, with an
// empty input: its result still answers it. A thought is left out.
func Withhold(message []byte, block int, images bool, text string) []byte {
	content, ok := esjson.Get(message, "content")
	if !ok {
		return message
	}
	list := blocks(content)
	if block >= len(list) || len(list) == 0 {
		return message
	}
	var keep [][]byte
	for i, b := range list {
		if block < 0 || i == block {
			b = replacement(b, images, text)
		}
		if b != nil {
			keep = append(keep, b)
		}
	}
	if len(keep) == 0 {
		keep = [][]byte{textOf(text)}
	}
	return esjson.Set(message, "content", array(keep))
}

// replacement is what is sent for a block; nil when nothing is.
func replacement(block []byte, images bool, text string) []byte {
	switch typ := blockType(block); {
	case typ == "tool_result" && images:
		content, _ := esjson.Get(block, "content")
		if esjson.TypeOf(content) != esjson.TypeArray {
			return block
		}
		var out [][]byte
		for inner := range esjson.Array(content) {
			if blockType(inner) == "image" {
				inner = textOf(text)
			}
			out = append(out, inner)
		}
		return esjson.Set(block, "content", array(out))
	case images && typ != "image":
		return block
	case typ == "tool_result":
		return esjson.Set(block, "content", esjson.Quote(nil, text))
	case typ == "tool_use":
		return esjson.Set(block, "input", []byte("{}"))
	case typ == "thinking", typ == "redacted_thinking", typ == "reasoning", typ == "thoughtSignature":
		return nil
	}
	return textOf(text)
}
