package anthropic

import (
	"bytes"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// mark is the member of a block that asks for a place in the cache.
const mark = `"cache_control":{"type":"ephemeral"}`

// withMark gives content with a cache mark on its last block that can carry one, in pieces:
// content is not copied. A string becomes an array of one text block, because a string
// cannot. Everything else keeps its bytes.
func withMark(content []byte) [][]byte {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) < 2 {
		return [][]byte{content}
	}
	if trimmed[0] == '"' {
		if len(trimmed) == 2 { // an empty text cannot be marked
			return [][]byte{content}
		}
		return [][]byte{beforeString, trimmed, afterString}
	}
	end := markPosition(trimmed)
	if end < 0 {
		return [][]byte{content}
	}
	return [][]byte{trimmed[:end], markMember, trimmed[end:]}
}

var (
	beforeString = []byte(`[{"type":"text","text":`)
	afterString  = []byte(`,` + mark + `}]`)
	markMember   = []byte(`,` + mark)
)

// markPosition returns the index of the closing brace of the last block that can be
// marked, or -1. Empty texts and thinking cannot be; a block that has a mark
// already needs none.
func markPosition(array []byte) int {
	position, end := -1, 0
	for block := range esjson.Array(array) {
		end += bytes.Index(array[end:], block) + len(block)
		_, marked := esjson.Get(block, "cache_control")
		text, _ := esjson.GetString(block, "text")
		switch {
		case len(block) < 2 || block[0] != '{' || len(bytes.TrimSpace(block[1:len(block)-1])) == 0:
		case marked:
			position = -1
		case isType(block, "thinking"), isType(block, "redacted_thinking"):
		case isType(block, "text") && text == "":
		default:
			position = end - 1
		}
	}
	return position
}

func isType(block []byte, want string) bool {
	typ, _ := esjson.GetString(block, "type")
	return typ == want
}

// markedMessages returns the indexes of the last two user messages, -1 for none.
// The second one is the end of what the turn before sent: it makes the cache hit
// even when the new turn adds more blocks than the API looks back over.
func markedMessages(ms []llm.Message) [2]int {
	out, n := [2]int{-1, -1}, 0
	for i := len(ms) - 1; i >= 0 && n < 2; i-- {
		if ms[i].Role == "user" {
			out[n] = i
			n++
		}
	}
	return out
}
