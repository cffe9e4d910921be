package openai

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

func separator(i int, head string) string {
	if i == 0 {
		return head
	}
	return ","
}

// appendFunction describes a tool to a model, from its name on.
func appendFunction(b []byte, t llm.ToolSpec, schema string) []byte {
	b = esjson.Quote(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = esjson.Quote(b, t.Description)
	}
	b = append(b, `,"`+schema+`":`...)
	if len(t.Schema) == 0 {
		return append(b, `{"type":"object","properties":{}}`...)
	}
	return append(b, t.Schema...)
}

// userForm is how one of the two APIs writes what a user's message holds: the JSON around it.
type userForm struct {
	text, image [2]string
	result      [3]string // before, between and behind the call's id and the text
	words       [2]string // around texts and images
}

// user writes results first, each by itself, then texts and images, those of results among them.
func (f userForm) user(blocks []wire.Block) []byte {
	var out, parts []byte
	part := func(form [2]string, value []byte) {
		parts = append(parts, separator(len(parts), "")...)
		parts = append(append(append(parts, form[0]...), value...), form[1]...)
	}
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			text, images := b.Result()
			out = append(append(out, separator(len(out), "")...), f.result[0]...)
			out = append(append(out, b.ID...), f.result[1]...)
			out = append(append(out, text...), f.result[2]...)
			for _, image := range images {
				part(f.image, image.DataURL())
			}
		case "text":
			part(f.text, b.Text)
		case "image":
			part(f.image, b.DataURL())
		}
	}
	if len(parts) > 0 {
		out = append(append(out, separator(len(out), "")...), f.words[0]...)
		out = append(append(out, parts...), f.words[1]...)
	}
	return out
}

// callArguments is a call's input as OpenAI wants it: a string that holds JSON.
func callArguments(b wire.Block) []byte { return esjson.Quote(nil, string(b.Object())) }

// joinStrings is two JSON strings as one.
func joinStrings(a, b []byte) []byte {
	if len(a) < 2 {
		return b
	}
	return append(a[:len(a)-1:len(a)-1], b[1:]...)
}
