package anthropic

import "bytes"

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
	position := -1
	eachBlock(array, func(start, end int) bool {
		block := array[start:end]
		switch {
		case len(block) < 2 || block[0] != '{' || block[len(block)-1] != '}' || len(bytes.TrimSpace(block[1:len(block)-1])) == 0:
		case bytes.Contains(block, []byte(`"cache_control"`)) && hasKey(block, "cache_control"):
			position = -1
		case isType(block, "thinking"), isType(block, "redacted_thinking"):
		case isType(block, "text") && hasEmptyText(block):
		default:
			position = end - 1
		}
		return true
	})
	return position
}

func hasEmptyText(block []byte) bool {
	v := member(block, "text")
	return v != nil && len(v) <= 2
}

func isType(block []byte, typ string) bool {
	v := member(block, "type")
	return len(v) == len(typ)+2 && string(v[1:len(v)-1]) == typ
}

func hasKey(block []byte, key string) bool { return member(block, key) != nil }

// firstBlock returns the first block of an array, or nothing.
func firstBlock(content []byte) []byte {
	var first []byte
	eachBlock(content, func(start, end int) bool {
		first = content[start:end]
		return false
	})
	return first
}

// eachBlock calls f with the position of each element of a valid JSON array until f
// returns false. For anything else it does nothing. It reads bytes once and
// allocates nothing: messages hold megabytes of tool output, and a decoder would
// cost more than the rest of the request.
func eachBlock(array []byte, f func(start, end int) bool) {
	i := skipBlanks(array, 0)
	if i >= len(array) || array[i] != '[' {
		return
	}
	for i = skipBlanks(array, i+1); i < len(array) && array[i] != ']'; {
		end := skipValue(array, i)
		if end <= i || !f(i, end) {
			return
		}
		i = skipBlanks(array, end)
		if i < len(array) && array[i] == ',' {
			i = skipBlanks(array, i+1)
		}
	}
}

// member returns the raw value of a top-level member of a valid object, nil when
// it has none. Keys with escapes are not found; no writer escapes these.
func member(object []byte, key string) []byte {
	for i := skipBlanks(object, 1); i < len(object) && object[i] == '"'; {
		k := skipValue(object, i)
		v := skipBlanks(object, k)
		if v >= len(object) || object[v] != ':' {
			return nil
		}
		v = skipBlanks(object, v+1)
		end := skipValue(object, v)
		if end <= v {
			return nil
		}
		if k-i == len(key)+2 && string(object[i+1:k-1]) == key {
			return object[v:end]
		}
		i = skipBlanks(object, end)
		if i < len(object) && object[i] == ',' {
			i = skipBlanks(object, i+1)
		}
	}
	return nil
}

func skipBlanks(p []byte, i int) int {
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the index after the JSON value at p[i]. On text that is not JSON
// it stops somewhere within p.
func skipValue(p []byte, i int) int {
	if i >= len(p) {
		return i
	}
	switch p[i] {
	case '"':
		return skipString(p, i)
	case '{', '[':
		depth := 0
		for i < len(p) {
			switch p[i] {
			case '"':
				i = skipString(p, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	}
	for i < len(p) && p[i] != ',' && p[i] != ']' && p[i] != '}' && p[i] > ' ' {
		i++
	}
	return i
}

// skipString returns the index after the string at p[i]=='"'.
func skipString(p []byte, i int) int {
	for i++; i < len(p); {
		n := bytes.IndexByte(p[i:], '"')
		if n < 0 {
			return len(p)
		}
		i += n + 1
		back := 0
		for p[i-2-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			return i
		}
	}
	return len(p)
}
