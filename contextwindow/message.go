package contextwindow

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// tags are the members of a stored message that decide whether it is sent.
type tags struct {
	role                     string
	content                  []byte // raw, nil when absent
	ts                       []byte // raw, nil when absent
	summary                  bool   // isSummary is true
	condenseID, truncationID string // of a summary, of a marker
	marker                   bool
	condensed, truncated     string // condenseParent, truncationParent
}

// readTags parses a stored message. A value that is no object has zero tags.
func readTags(raw []byte) (t tags) {
	t.take(func(places ...any) (int, error) { return esjson.Take(raw, places...) })
	return t
}

// take fills the tags through a function like esjson.Take. Values of other kinds count as absent.
func (t *tags) take(from func(places ...any) (members int, err error)) {
	var summary, marker []byte
	_, _ = from("role", &t.role, "content", &t.content, "ts", &t.ts, "isSummary", &summary, "isTruncationMarker", &marker,
		"condenseId", &t.condenseID, "truncationId", &t.truncationID,
		"condenseParent", &t.condensed, "truncationParent", &t.truncated)
	t.summary, t.marker = truthy(summary), truthy(marker)
}

func readAll(messages [][]byte) []tags {
	return api.Each(messages, readTags)
}

// truthy follows ECMAScript for the values that occur: true, and the 1 or "true" of other programs.
func truthy(raw []byte) bool {
	switch esjson.TypeOf(raw) {
	case esjson.TypeBool:
		return raw[0] == 't'
	case esjson.TypeString:
		return esjson.Text(raw) != ""
	case esjson.TypeNumber:
		f, ok := esjson.Double(raw)
		return f != 0 || !ok // a number that is no double is too large for one, so it is not 0
	case esjson.TypeObject, esjson.TypeArray:
		return true
	}
	return false
}

// blocks lists the content blocks of a raw content value.
func blocks(content []byte) [][]byte { return slices.Collect(esjson.Blocks(content)) }

// textBlock wraps a raw JSON string in a text block.
func textBlock(raw []byte) []byte {
	return esjson.ObjectOf("type", "text", "text", raw)
}

func textOf(s string) []byte { return textBlock(esjson.Quote(nil, s)) }

func resultBlock(id, content string) []byte {
	return esjson.ObjectOf("type", "tool_result", "tool_use_id", id, "content", content)
}

// tidy makes valid JSON acceptable to strict parsers: lone surrogates, which Roo's files may hold as escapes, and
// bytes that are not UTF-8 become U+FFFD. Other text is returned unchanged.
func tidy(raw []byte) (out []byte, changed bool) {
	if !utf8.Valid(raw) {
		raw, changed = bytes.ToValidUTF8(raw, []byte("\uFFFD")), true
	}
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw, changed
	}
	out = escapes().ReplaceAllFunc(raw, func(escape []byte) []byte {
		if len(escape) != len(`\ufffd`) {
			return escape
		}
		changed = true
		return []byte(`\ufffd`)
	})
	return out, changed
}

// escapes matches the escapes of valid JSON: a pair of surrogates, a lone surrogate, or the two bytes of any other
// escape.
var escapes = lazyregexp.New(`\\u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}` +
	`|\\u[dD][89a-fA-F][[:xdigit:]]{2}|\\.`)

// Other tools keep tool results in shapes that no provider knows, such as a list of {query, result, success, error}.
// The stored form stays; the sent and shown form is text with the same content.

// ResultParts returns the parts of a tool result's content, an array, as texts and images: a part of any other shape
// becomes its content as text.
func ResultParts(content []byte) [][]byte { return parts(content, asText) }

// parts returns the parts of an array; other converts parts of an unknown shape.
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
	typ := esjson.TextOf(part, "type")
	return typ == "text" || typ == "image"
}

// asText returns a part of an unknown shape as texts and images.
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
	switch esjson.TextOf(part, "type") {
	case "thinking", "redacted_thinking", "reasoning", "thoughtSignature":
		return nil // thoughts are the model's own
	}
	query, asked := esjson.GetString(part, "query")
	result, given := esjson.Get(part, "result")
	if _, typed := esjson.Get(part, "type"); typed || !asked || !given {
		return [][]byte{textOf(esjson.WithoutData(part))}
	}
	words := []string{query}
	var rest [][]byte
	switch esjson.TypeOf(result) {
	case esjson.TypeString:
		words = append(words, esjson.Text(result))
	case esjson.TypeArray:
		// A result within a result becomes JSON: a part that nests over and over must not be read once for each level.
		rest = parts(result, func(part []byte) [][]byte { return [][]byte{textOf(esjson.WithoutData(part))} })
	case esjson.TypeNull:
	default:
		words = append(words, esjson.WithoutData(result))
	}
	if failure := esjson.TextOf(part, "error"); failure != "" {
		words = append(words, "Error: "+failure)
	} else if ok, said := esjson.GetBool(part, "success"); said && !ok {
		words = append(words, "(failed)")
	}
	return append([][]byte{textOf(strings.Join(words, "\n"))}, rest...)
}

// bytesPerToken is a cautious estimate for prose and code as JSON: it counts too many tokens rather than too few.
const bytesPerToken = 3.5

// EstimateTokens estimates the tokens in a number of bytes of JSON. The estimate is never negative, and 0 only for 0
// bytes.
func EstimateTokens(bytes int64) int64 {
	return int64(math.Ceil(float64(max(bytes, 0)) / bytesPerToken))
}

// Weigh counts a message's or block's bytes of JSON without its images, and its images.
func Weigh(raw []byte) (bytes, images int) {
	bytes = len(raw)
	content := raw
	if esjson.TypeOf(raw) == esjson.TypeObject {
		if source, ok := esjson.Get(raw, "source"); ok && esjson.TextOf(raw, "type") == "image" {
			return bytes - len(esjson.Member(source, "data")), 1
		}
		content, _ = esjson.Get(raw, "content")
	}
	if esjson.TypeOf(content) != esjson.TypeArray {
		return bytes, 0
	}
	for b := range esjson.Array(content) {
		less, n := Weigh(b)
		bytes, images = bytes-len(b)+less, images+n
	}
	return bytes, images
}
