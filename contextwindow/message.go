package contextwindow

import (
	"bytes"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// tags are the members of a stored message that decide where it goes.
type tags struct {
	role                     string
	content                  []byte // raw, nil when absent
	ts                       []byte // raw, nil when absent
	summary                  bool   // isSummary is true
	condenseID, truncationID string // of a summary, of a marker
	marker                   bool
	condensed, truncated     string // condenseParent, truncationParent
}

// readTags parses a stored message. What is no object gives zero tags.
func readTags(raw []byte) tags {
	var t tags
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return t
	}
	for key, val := range esjson.Fields(raw) {
		t.set(key, val)
	}
	return t
}

func (t *tags) set(key, val []byte) {
	switch string(key) {
	case "role":
		t.role = roleOf(val)
	case "content":
		t.content = val
	case "ts":
		t.ts = val
	case "isSummary":
		t.summary = truthy(val)
	case "isTruncationMarker":
		t.marker = truthy(val)
	case "condenseId":
		t.condenseID = str(val)
	case "truncationId":
		t.truncationID = str(val)
	case "condenseParent":
		t.condensed = str(val)
	case "truncationParent":
		t.truncated = str(val)
	}
}

// roleOf avoids a copy for the two usual roles.
func roleOf(raw []byte) string {
	switch string(raw) {
	case `"user"`:
		return "user"
	case `"assistant"`:
		return "assistant"
	}
	return str(raw)
}

func readAll(messages [][]byte) []tags {
	out := make([]tags, len(messages))
	for i, m := range messages {
		out[i] = readTags(m)
	}
	return out
}

func str(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	s, err := esjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// truthy follows ECMAScript for the values that occur: true, and tags that other programs wrote as 1 or "true".
func truthy(raw []byte) bool {
	switch esjson.TypeOf(raw) {
	case esjson.TypeBool:
		return raw[0] == 't'
	case esjson.TypeString:
		return str(raw) != ""
	case esjson.TypeNumber:
		f, ok := num(raw)
		return f != 0 || !ok // a number that is no double is too large for one, so it is not 0
	case esjson.TypeObject, esjson.TypeArray:
		return true
	}
	return false
}

// blocks are the content blocks of a raw content value: a string is one text
// block.
func blocks(content []byte) [][]byte {
	switch esjson.TypeOf(content) {
	case esjson.TypeString:
		return [][]byte{textBlock(content)}
	case esjson.TypeArray:
		var out [][]byte
		for b := range esjson.Array(content) {
			out = append(out, b)
		}
		return out
	}
	return nil
}

// textBlock wraps a raw JSON string.
func textBlock(raw []byte) []byte {
	var o esjson.Object
	o.String("type", "text")
	o.Raw("text", raw)
	return o.Bytes()
}

func textOf(s string) []byte { return textBlock(esjson.Quote(nil, s)) }

func array(items [][]byte) []byte {
	n := 2
	for _, it := range items {
		n += len(it) + 1
	}
	out := append(make([]byte, 0, n), '[')
	for i, it := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, it...)
	}
	return append(out, ']')
}

func blockType(b []byte) string {
	if esjson.TypeOf(b) != esjson.TypeObject {
		return ""
	}
	t, _ := esjson.GetString(b, "type")
	return t
}

func memberStr(b []byte, key string) string {
	v, _ := esjson.Get(b, key)
	return str(v)
}

func resultBlock(id, content string) []byte {
	var o esjson.Object
	o.String("type", "tool_result")
	o.String("tool_use_id", id)
	o.String("content", content)
	return o.Bytes()
}

// toolUseIDs are the ids of the tool_use blocks in a raw content array, in order.
func toolUseIDs(content []byte) []string {
	if esjson.TypeOf(content) != esjson.TypeArray {
		return nil
	}
	var out []string
	for b := range esjson.Array(content) {
		if blockType(b) == "tool_use" {
			out = append(out, memberStr(b, "id"))
		}
	}
	return out
}

func num(raw []byte) (float64, bool) {
	if esjson.TypeOf(raw) != esjson.TypeNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}
