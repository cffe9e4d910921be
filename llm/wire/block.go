package wire

import (
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Block is a stored content block. Its values are raw JSON, because text that has the
// same form in both APIs is sent as it was written.
type Block struct {
	Type      string
	Raw       []byte
	Text      []byte // JSON string
	ID, Name  []byte // JSON strings; of a result, the id of its call
	Input     []byte // JSON value
	Content   []byte // of a result: JSON string or blocks
	IsError   bool
	Media     string
	Data      string // of an image, base64
	Encrypted []byte // JSON value: sealed reasoning
	Signature []byte // JSON value: of a thought
}

// Blocks reads a message's content; a string is one text.
func Blocks(content json.RawMessage) []Block {
	if esjson.TypeOf(content) == esjson.TypeString {
		return []Block{{Type: "text", Text: content}}
	}
	var out []Block
	for raw := range esjson.Array(content) {
		b := Block{Raw: raw}
		for key, val := range esjson.Fields(raw) {
			switch string(key) {
			case "type":
				b.Type, _ = esjson.Unquote(val)
			case "text":
				b.Text = val
			case "id", "tool_use_id":
				b.ID = val
			case "name":
				b.Name = val
			case "input":
				b.Input = val
			case "content":
				b.Content = val
			case "is_error":
				b.IsError = string(val) == "true"
			case "thoughtSignature":
				b.Signature = val
			case "encrypted_content":
				b.Encrypted = val
			case "source":
				b.Media, _ = esjson.GetString(val, "media_type")
				b.Data, _ = esjson.GetString(val, "data")
			}
		}
		out = append(out, b)
	}
	return out
}

// DataURL is an image as a data URL, as a JSON string.
func (b Block) DataURL() []byte {
	return esjson.Quote(nil, "data:"+b.Media+";base64,"+b.Data)
}

// Result is a tool result as one JSON string, and the images that it held.
func (b Block) Result() (text []byte, images []Block) {
	if esjson.TypeOf(b.Content) == esjson.TypeString {
		return b.Content, nil
	}
	var texts []string
	for _, part := range Blocks(b.Content) {
		switch part.Type {
		case "text":
			s, _ := esjson.Unquote(part.Text)
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

// Object is a call's input. It is {} when the stored input is no object.
func (b Block) Object() []byte {
	if esjson.TypeOf(b.Input) != esjson.TypeObject {
		return []byte("{}")
	}
	return b.Input
}
