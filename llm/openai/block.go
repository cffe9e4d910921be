package openai

import (
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// block is a stored content block, its values raw: what is text in both shapes is
// sent as it is written.
type block struct {
	typ       string
	raw       []byte
	text      []byte // JSON string
	id, name  []byte // JSON strings
	input     []byte // JSON object
	content   []byte // of a result: JSON string or blocks
	media     string
	data      string // of an image, base64
	encrypted []byte
}

// blocksOf reads a message's content; a string is one text.
func blocksOf(content json.RawMessage) []block {
	if esjson.TypeOf(content) == esjson.TypeString {
		return []block{{typ: "text", text: content}}
	}
	var out []block
	for raw := range esjson.Array(content) {
		b := block{raw: raw}
		for key, val := range esjson.Fields(raw) {
			switch string(key) {
			case "type":
				b.typ, _ = esjson.Unquote(val)
			case "text":
				b.text = val
			case "id", "tool_use_id":
				b.id = val
			case "name":
				b.name = val
			case "input":
				b.input = val
			case "content":
				b.content = val
			case "encrypted_content":
				b.encrypted = val
			case "source":
				b.media, _ = esjson.GetString(val, "media_type")
				b.data, _ = esjson.GetString(val, "data")
			}
		}
		out = append(out, b)
	}
	return out
}

// image is a block as a data URL, as a JSON string.
func (b block) image() []byte {
	return esjson.Quote(nil, "data:"+b.media+";base64,"+b.data)
}

// result is a tool result as one JSON string, and the images that stood in it.
func (b block) result() (text []byte, images []block) {
	if esjson.TypeOf(b.content) == esjson.TypeString {
		return b.content, nil
	}
	var texts []string
	for _, part := range blocksOf(b.content) {
		switch part.typ {
		case "text":
			s, _ := esjson.Unquote(part.text)
			texts = append(texts, s)
		case "image":
			images = append(images, part)
		}
	}
	if len(texts) == 0 {
		texts = []string{"(no text)"}
		if len(images) > 0 {
			texts = []string{"(see the image below)"}
		}
	}
	return esjson.Quote(nil, strings.Join(texts, "\n\n")), images
}

// arguments is a call's input as OpenAI wants it: a string that holds JSON.
func (b block) arguments() []byte {
	if len(b.input) == 0 {
		return []byte(`"{}"`)
	}
	return esjson.Quote(nil, string(b.input))
}
