package contextwindow

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Other tools keep results of tools in shapes that no provider knows, such as a list of
// {query, result, success, error}. What is stored stays as it is; what is sent and shown
// is text that says the same.

// ResultParts are the parts of a tool result's content, an array, as texts and images: a
// part of any other shape stands as what it says.
func ResultParts(content []byte) [][]byte { return parts(content, spoken) }

// parts gives the parts of an array, those of an unknown shape as other gives them.
func parts(content []byte, other func([]byte) [][]byte) [][]byte {
	var out [][]byte
	for part := range esjson.Array(content) {
		if isPart(part) {
			out = append(out, part)
		} else {
			out = append(out, other(part)...)
		}
	}
	return out
}

func isPart(part []byte) bool {
	typ := blockType(part)
	return typ == "text" || typ == "image"
}

// spoken is a part of an unknown shape as texts and images.
func spoken(part []byte) [][]byte {
	switch esjson.TypeOf(part) {
	case esjson.TypeNull, esjson.TypeInvalid:
		return nil
	case esjson.TypeString:
		return [][]byte{textBlock(part)}
	case esjson.TypeObject:
	default:
		return [][]byte{textOf(string(part))}
	}
	switch blockType(part) {
	case "thinking", "redacted_thinking", "reasoning", "thoughtSignature":
		return nil // thoughts are the model's own
	}
	query, asked := esjson.GetString(part, "query")
	result, given := esjson.Get(part, "result")
	if _, typed := esjson.Get(part, "type"); typed || !asked || !given {
		return [][]byte{textOf(readable(part))}
	}
	words := []string{query}
	var rest [][]byte
	switch esjson.TypeOf(result) {
	case esjson.TypeString:
		words = append(words, str(result))
	case esjson.TypeArray:
		// A result within a result stands as JSON: a part that is nested over and over must not
		// be gone through once for each level.
		rest = parts(result, func(part []byte) [][]byte { return [][]byte{textOf(readable(part))} })
	case esjson.TypeNull:
	default:
		words = append(words, readable(result))
	}
	if failure := memberStr(part, "error"); failure != "" {
		words = append(words, "Error: "+failure)
	} else if ok, said := esjson.GetBool(part, "success"); said && !ok {
		words = append(words, "(failed)")
	}
	return append([][]byte{textOf(strings.Join(words, "\n"))}, rest...)
}

// dataSize is how long a string without blanks may be before it is taken for data that
// nobody can read.
const dataSize = 1 << 10

// readable is a value as JSON without white space, and without the data of files in it. It goes
// through the text once, however deep the value is nested.
func readable(value []byte) string {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); {
		switch value[i] {
		case ' ', '\t', '\n', '\r':
			i++
			continue
		case '"':
		default:
			out = append(out, value[i])
			i++
			continue
		}
		end := i + 1
		for end < len(value) && value[end] != '"' {
			if value[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(value))
		if text := value[i:end]; len(text) > dataSize && !bytes.ContainsAny(text, " \\\n") {
			out = fmt.Appendf(out, `"[%d bytes of data]"`, len(text)-2)
		} else {
			out = append(out, text...)
		}
		i = end
	}
	return string(out)
}
