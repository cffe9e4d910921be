package wire

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// pathStep is one index of a path such as messages.12.content.3 or contents[4].parts[2].
var pathStep = regexp.MustCompile(`^(?:\.([a-z_]+))?(?:\.(\d+)|\[(\d+)\])`)

// Path finds the path into a list of the request that a refusal names: its indexes,
// outermost first, and for each index the name of the list. Both are nil when the
// refusal names none.
func Path(refusal, list string) (indexes []int, names []string) {
	for rest := refusal; ; {
		at := strings.Index(rest, list)
		if at < 0 {
			return nil, nil
		}
		inWord := at > 0 && (isWord(rest[at-1]))
		rest = rest[at+len(list):]
		if inWord {
			continue
		}
		name := list
		for m := pathStep.FindStringSubmatch(rest); m != nil; m = pathStep.FindStringSubmatch(rest) {
			n, err := strconv.Atoi(m[2] + m[3])
			if err != nil {
				break
			}
			if m[1] != "" {
				name = m[1]
			} else if len(indexes) > 0 {
				break
			}
			indexes, names = append(indexes, n), append(names, name)
			rest = rest[len(m[0]):]
		}
		if len(indexes) > 0 {
			return indexes, names
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Locate finds the message of the last request, and the block in it, that a refusal
// is about. list is the name of the list of messages in the request; skip is how many
// of its elements come before the first message.
func (h *History) Locate(refusal, list string, skip int) (message, block int, ok bool) {
	path, names := Path(refusal, list)
	if path == nil {
		return 0, 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := path[0] - skip
	if n < 0 { // the system prompt, or another element before the messages
		return 0, 0, false
	}
	for i, m := range h.sent {
		for item := range esjson.Array(bytes.Join([][]byte{{'['}, m.wire, {']'}}, nil)) {
			if n--; n >= 0 {
				continue
			}
			for k, index := range path[1:] {
				item = elementOf(item, names[k+1], index)
			}
			return i, blockOf(item, m.Message, refusal), true
		}
	}
	return 0, 0, false
}

// elementOf is an element of a list in an item; the item itself when there is none.
func elementOf(item []byte, name string, index int) []byte {
	list, ok := esjson.Get(item, name)
	if !ok || esjson.TypeOf(list) != esjson.TypeArray {
		return item
	}
	n := 0
	for e := range esjson.Array(list) {
		if n == index {
			return e
		}
		n++
	}
	return item
}

// blockOf finds the block from which a part of the request was made, -1 when it was made
// of several and the refusal does not single one out.
func blockOf(item []byte, m llm.Message, refusal string) int {
	found := -1
	picture := strings.Contains(strings.ToLower(refusal), "image")
	for i, b := range Blocks(m.Content) {
		switch {
		case picture && containsImage(item, b):
			return i
		case !contains(item, b):
		case found >= 0:
			found = len(m.Content) // more than one
		default:
			found = i
		}
	}
	if found == len(m.Content) {
		return -1
	}
	return found
}

// containsImage reports whether the item contains an image of the block.
func containsImage(item []byte, b Block) bool {
	images := []Block{b}
	if b.Type == "tool_result" {
		_, images = b.Result()
	} else if b.Type != "image" {
		return false
	}
	return slices.ContainsFunc(images, func(i Block) bool { return i.Data != "" && bytes.Contains(item, []byte(i.Data)) })
}

func contains(item []byte, b Block) bool {
	switch b.Type {
	case "text":
		return bytes.Contains(item, b.Text)
	case "tool_use", "tool_result":
		return len(b.ID) > 2 && bytes.Contains(item, b.ID)
	case "reasoning":
		return len(b.Encrypted) > 2 && bytes.Contains(item, b.Encrypted)
	}
	return containsImage(item, b)
}
