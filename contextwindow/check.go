package contextwindow

import (
	"strconv"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// Note describes what was left out of a request or changed in it.
type Note struct {
	Index int // of the stored message, -1 when the note is about the request as a whole
	Text  string
}

// checked is a stored message, ready to be placed.
type checked struct {
	tags
	index   int
	asIs    bool // content can be sent as it is, apart from the pairing
	parts   []contentPart
	notes   []string
	results int    // parts that are tool results
	details []byte // reasoning_details, nil when they are not sent
	thought []byte // plain reasoning, a JSON string; nil when there is none or it is not sent
	load    load   // images in it
}

// check parses a stored message and makes its blocks sendable. It reads the bytes once; x is room for what it finds on
// the way.
func check(x *esjson.Index, raw []byte, o Options) *checked {
	c := new(checked)
	if !x.Read(raw, 3) || esjson.TypeOf(raw) != esjson.TypeObject {
		c.notes = []string{"a message that is no JSON object was left out"}
		return c
	}
	content := -1
	for key, i := range x.Parts(0) {
		c.set(key, x.Raw(i))
		switch {
		case string(key) == "content":
			content = i
		case string(key) == "reasoning_details" && o.KeepDetails:
			c.keepDetails(x.Raw(i))
		}
	}
	if c.role != "user" && c.role != "assistant" {
		c.notes = []string{"a message with the role " + strconv.Quote(cut(c.role, 40)) + " was left out"}
		return c
	}
	if content < 0 {
		c.notes = []string{"a message without content was left out"}
		return c
	}
	if x.Unicode() || !utf8.Valid(c.content) {
		if tidied, changed := tidy(c.content); changed {
			c.notes = append(c.notes, "characters that are not valid Unicode were replaced")
			c.content, content = tidied, 0
			x.Read(tidied, 2)
		}
	}
	c.takeContent(x, content, o)
	return c
}

// keepDetails keeps what a server requires back with an assistant's message.
func (c *checked) keepDetails(raw []byte) {
	if esjson.TypeOf(raw) != esjson.TypeArray {
		return
	}
	for range esjson.Array(raw) { // an empty array holds nothing
		c.details, _ = tidy(raw)
		return
	}
}

// takeContent makes parts of the content, which is value i of x.
func (c *checked) takeContent(x *esjson.Index, i int, o Options) {
	c.asIs, o.left = true, new(load)
	switch esjson.TypeOf(c.content) {
	case esjson.TypeString:
		if !isBlank(c.content) {
			c.parts = []contentPart{{kind: text, raw: textBlock(c.content), legacy: c.role == "user" && isLegacy(c.content)}}
		}
		return
	case esjson.TypeArray:
	default:
		c.notes = append(c.notes, "a message without content was left out")
		return
	}
	at := -1
	for _, k := range x.Parts(i) {
		at++
		var f fields
		for key, m := range x.Parts(k) {
			f.set(key, x.Raw(m))
		}
		if o.KeepReasoningContent && c.role == "assistant" && typeName(f.typ) == "reasoning" && esjson.TypeOf(f.text) == esjson.TypeString {
			c.thought = joinStrings(c.thought, f.text)
		}
		p, keep, note := checkBlock(x.Raw(k), &f, c.role, o)
		p.at = at
		if note != "" {
			c.notes = append(c.notes, note)
		}
		c.asIs = c.asIs && keep && !p.repaired
		if !keep {
			continue
		}
		if p.kind == toolResult {
			c.results++
		}
		if c.parts == nil {
			c.parts = make([]contentPart, 0, 2)
		}
		c.parts = append(c.parts, p)
	}
	c.load = *o.left
	// A message must not end with thinking.
	for len(c.parts) > 0 && c.parts[len(c.parts)-1].kind == thinking {
		c.parts, c.asIs = c.parts[:len(c.parts)-1], false
	}
	if len(c.parts) == 1 && c.parts[0].kind == signature {
		c.parts, c.asIs = nil, false // it signs nothing
	}
}
