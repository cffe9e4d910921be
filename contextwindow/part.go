package contextwindow

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Other tools keep results of tools in shapes that no provider knows, such as a list of
// {query, result, success, error}. What is stored stays as it is; what is sent and shown
// is text that says the same.

// ResultParts are the parts of a tool result's content, an array, as texts and images: a
// part of any other shape stands as what it says.
func ResultParts(content []byte) [][]byte {
	var out [][]byte
	for part := range esjson.Array(content) {
		if isPart(part) {
			out = append(out, part)
		} else {
			out = append(out, spoken(part)...)
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
		rest = ResultParts(result)
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

// readable is a value as JSON, without the data of files in it.
func readable(value []byte) string {
	switch esjson.TypeOf(value) {
	case esjson.TypeString:
		if len(value) > dataSize && !strings.ContainsAny(string(value), " \\\n") {
			return fmt.Sprintf(`"[%d bytes of data]"`, len(value)-2)
		}
	case esjson.TypeArray:
		var out []string
		for v := range esjson.Array(value) {
			out = append(out, readable(v))
		}
		return "[" + strings.Join(out, ",") + "]"
	case esjson.TypeObject:
		var out []string
		for key, v := range esjson.Members(value) {
			out = append(out, string(esjson.Quote(nil, key))+":"+readable(v))
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	return string(value)
}
