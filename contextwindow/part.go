package contextwindow

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Other tools keep tool results in shapes that no provider knows, such as a list of {query, result, success, error}.
// The stored form stays; the sent and shown form is text with the same content.

// ResultParts are the parts of a tool result's content, an array, as texts and images: a part of any other shape
// becomes its content as text.
func ResultParts(content []byte) [][]byte { return parts(content, asText) }

// parts returns the parts of an array; other converts those of an unknown shape.
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

// asText is a part of an unknown shape as texts and images.
func asText(part []byte) [][]byte {
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
		// A result within a result becomes JSON: a part that nests over and over must not be read once for each level.
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

// dataSize is the length from which on a string without blanks counts as data that no person can read, in bytes.
const dataSize = 1 << 10

// readable is a value as JSON without white space, and without the data of files in it. It reads the text once, however
// deep the value nests.
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
