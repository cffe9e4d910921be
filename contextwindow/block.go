package contextwindow

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

type kind uint8

const (
	text kind = iota
	image
	toolUse
	toolResult
	thinking
	signature // of a thought, stored with the call or text that it led to
)

// contentPart is a content block that may be sent.
type contentPart struct {
	kind     kind
	raw      []byte
	id       string // of a call or result, as stored
	sent     string // that id as raw holds it
	legacy   bool   // a text that is the result of a call, in the form of the XML protocol
	repaired bool   // raw differs from what was stored
	at       int    // its index in the stored content
}

const (
	noImage  = "[Referenced image in conversation]"
	badImage = "[An image stood here; its format cannot be sent.]"
	noResult = "(tool did not return anything)"
)

// fields are the members of a block that the API knows.
type fields struct {
	typ, text, id, name, input, useID, content, isError []byte
	thinking, signature, data, source                   []byte
	encrypted, thoughtSignature                         []byte
	count                                               int // members, known or not
}

func fieldsOf(b []byte) (f fields) {
	for key, val := range esjson.Fields(b) {
		f.set(key, val)
	}
	return f
}

func (f *fields) set(key, val []byte) {
	f.count++
	switch string(key) {
	case "type":
		f.typ = val
	case "text":
		f.text = val
	case "id":
		f.id = val
	case "name":
		f.name = val
	case "input":
		f.input = val
	case "tool_use_id":
		f.useID = val
	case "content":
		f.content = val
	case "is_error":
		f.isError = val
	case "thinking":
		f.thinking = val
	case "signature":
		f.signature = val
	case "data":
		f.data = val
	case "source":
		f.source = val
	case "encrypted_content":
		f.encrypted = val
	case "thoughtSignature":
		f.thoughtSignature = val
	}
}

// typeName avoids a copy for each of the usual types.
func typeName(raw []byte) string {
	switch string(raw) {
	case `"text"`:
		return "text"
	case `"tool_use"`:
		return "tool_use"
	case `"tool_result"`:
		return "tool_result"
	}
	return str(raw)
}

// checkBlock makes a stored block sendable for a role. keep is false when the block is left out; note describes why it
// was left out or changed. f are b's members.
func checkBlock(b []byte, f *fields, role string, o Options) (p contentPart, keep bool, note string) {
	if esjson.TypeOf(b) != esjson.TypeObject {
		return p, false, "a content block that is no object was left out"
	}
	typ := typeName(f.typ)
	user := role == "user"
	switch {
	case typ == "text":
		if isBlank(f.text) {
			return p, false, ""
		}
		if f.count == 2 {
			return contentPart{kind: text, raw: b, legacy: user && isLegacy(f.text)}, true, ""
		}
		return contentPart{
			kind:     text,
			raw:      textBlock(f.text),
			legacy:   user && isLegacy(f.text),
			repaired: true,
		}, true, ""
	case typ == "image" && user && f.source == nil && f.data != nil:
		bare := sourced(b, f.data) // in Cline's form
		inside := fieldsOf(bare)
		p, keep, note = checkImage(bare, &inside, o)
		p.repaired = true
		return p, keep, note
	case typ == "image" && user:
		return checkImage(b, f, o)
	case typ == "tool_use" && !user:
		return checkToolUse(b, f, o)
	case typ == "tool_result" && user:
		return checkToolResult(b, f, o)
	case typ == "thinking" && !user:
		if o.DropThinking || str(f.signature) == "" || esjson.TypeOf(f.thinking) != esjson.TypeString {
			return p, false, ""
		}
		if f.count == 3 {
			return contentPart{kind: thinking, raw: b}, true, ""
		}
		var out esjson.Object
		out.String("type", "thinking")
		out.Raw("thinking", f.thinking)
		out.Raw("signature", f.signature)
		return contentPart{kind: thinking, raw: out.Bytes(), repaired: true}, true, ""
	case typ == "redacted_thinking" && !user:
		if o.DropThinking || str(f.data) == "" {
			return p, false, ""
		}
		if f.count == 2 {
			return contentPart{kind: thinking, raw: b}, true, ""
		}
		var out esjson.Object
		out.String("type", "redacted_thinking")
		out.Raw("data", f.data)
		return contentPart{kind: thinking, raw: out.Bytes(), repaired: true}, true, ""
	case typ == "reasoning" && !user && o.KeepReasoning && str(f.encrypted) != "":
		return contentPart{kind: thinking, raw: b}, true, ""
	case typ == "thoughtSignature" && !user && o.KeepSignatures && str(f.thoughtSignature) != "":
		return contentPart{kind: signature, raw: b}, true, ""
	case typ == "reasoning" || typ == "thoughtSignature":
		return p, false, "" // other providers' own blocks
	}
	return p, false, "a " + cut(typ, 40) + " block in a message of the " + role + " was left out"
}

// sourced is an image whose data is in the block itself, in the form that providers accept.
func sourced(b, data []byte) []byte {
	media, _ := esjson.Get(b, "mediaType")
	if media == nil {
		media = []byte("null")
	}
	return imageBlock(media, data)
}

func imageBlock(media, data []byte) []byte {
	var src, out esjson.Object
	src.String("type", "base64")
	src.Raw("media_type", media)
	src.Raw("data", data)
	out.String("type", "image")
	out.Raw("source", src.Bytes())
	return out.Bytes()
}

func checkImage(b []byte, f *fields, o Options) (contentPart, bool, string) {
	if o.NoImages {
		return contentPart{kind: text, raw: textOf(noImage), repaired: true}, true, ""
	}
	typ, media, data := []byte(nil), []byte(nil), []byte(nil)
	n := 0
	if esjson.TypeOf(f.source) == esjson.TypeObject {
		for key, val := range esjson.Fields(f.source) {
			n++
			switch string(key) {
			case "type":
				typ = val
			case "media_type":
				media = val
			case "data":
				data = val
			}
		}
	}
	switch str(media) {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		media = nil
	}
	if str(typ) != "base64" || media == nil || !isBase64(data) {
		return contentPart{kind: text, raw: textOf(badImage), repaired: true}, true, "an image that cannot be sent was replaced by a text"
	}
	fits := f.count == 2 && n == 3
	if l := o.Images; l != (ImageLimits{}) {
		p, ok := pictureOf(data)
		if !ok {
			shown := contentPart{kind: text, raw: textOf(badImage), repaired: true}
			return shown, true, "an image that cannot be read was replaced by a text"
		}
		why := l.tooMuch(p, len(data)-2)
		more := load{count: 1, size: len(data) - 2}
		if l.Many > 0 && p.side() > l.ManySide {
			more.large = 1
		}
		if why == "" && l.over(o.left.plus(more), 2) {
			why = "its message holds more images than this provider takes in one request"
		}
		if why != "" {
			shown := contentPart{kind: text, raw: textOf("[An image stood here that cannot be sent: " + why + ".]"), repaired: true}
			return shown, true, "an image was replaced by a text: " + why
		}
		*o.left = o.left.plus(more)
		if str(media) != p.media { // providers refuse this, too: a file's name does not decide its type
			media, fits = esjson.Quote(nil, p.media), false
		}
	}
	if fits {
		return contentPart{kind: image, raw: b}, true, ""
	}
	return contentPart{kind: image, raw: imageBlock(media, data), repaired: true}, true, ""
}

func checkToolUse(b []byte, f *fields, o Options) (contentPart, bool, string) {
	id, name := str(f.id), str(f.name)
	object := esjson.TypeOf(f.input) == esjson.TypeObject
	asIs := object && isName(id, o.idLength()) && name != "" && name == o.name(name)
	if f.count == 4 && asIs && esjson.TypeOf(f.id) == esjson.TypeString {
		return contentPart{
			kind: toolUse,
			raw:  b,
			id:   id,
			sent: id,
		}, true, ""
	}
	note, input := "", f.input
	if !object {
		in := []byte(str(f.input))
		if !esjson.Valid(in) || esjson.TypeOf(in) != esjson.TypeObject {
			in, note = []byte("{}"), "the input of a tool call is no object; it is sent as empty"
		}
		input, _ = tidy(in)
	}
	sent := safeName(id, "call", o.idLength())
	return contentPart{
		kind:     toolUse,
		raw:      useBlock(sent, o.name(name), input),
		id:       id,
		sent:     sent,
		repaired: true,
	}, true, note
}

func useBlock(id, name string, input []byte) []byte {
	var o esjson.Object
	o.String("type", "tool_use")
	o.String("id", id)
	o.String("name", name)
	o.Raw("input", input)
	return o.Bytes()
}

func checkToolResult(b []byte, f *fields, o Options) (contentPart, bool, string) {
	p := contentPart{kind: toolResult, raw: b, id: str(f.useID)}
	p.sent = p.id
	known := 3
	isError := esjson.TypeOf(f.isError) == esjson.TypeBool
	if isError {
		known++
	}
	ok := f.count == known && f.content != nil && isName(p.id, 1<<10)
	content, note := f.content, ""
	switch esjson.TypeOf(content) {
	case esjson.TypeString:
		if isBlank(content) {
			content, ok = esjson.Quote(nil, noResult), false
		}
	case esjson.TypeArray:
		var items [][]byte
		same := true
		for inner := range esjson.Array(content) {
			parts := [][]byte{inner}
			if !isPart(inner) {
				if parts, same = asText(inner), false; parts == nil {
					note = "a block inside a tool result was left out"
				}
			}
			for _, part := range parts {
				inside := fieldsOf(part)
				q, keep, why := checkBlock(part, &inside, "user", o)
				if why != "" {
					note = why
				}
				same = same && keep && !q.repaired
				if keep {
					items = append(items, q.raw)
				}
			}
		}
		switch {
		case len(items) == 0:
			content, ok = esjson.Quote(nil, noResult), false
		case !same:
			content, ok = array(items), false
		}
	case esjson.TypeNull, esjson.TypeInvalid:
		content, ok = esjson.Quote(nil, noResult), false
	default:
		content, ok = esjson.Quote(nil, string(content)), false
	}
	if ok {
		return p, true, ""
	}
	p.repaired, p.sent = true, safeName(p.id, "call", 1<<10)
	var out esjson.Object
	out.String("type", "tool_result")
	out.String("tool_use_id", p.sent)
	out.Raw("content", content)
	if isError {
		out.Raw("is_error", f.isError)
	}
	p.raw = out.Bytes()
	return p, true, note
}

// isBlank reports no string, or a string of blanks only.
func isBlank(raw []byte) bool {
	if len(raw) < 3 || raw[0] != '"' {
		return true
	}
	if c := raw[1]; c > ' ' && c != '\\' && c < utf8.RuneSelf {
		return false
	}
	s, err := esjson.Unquote(raw)
	return err != nil || strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == 0xFEFF }) == ""
}

// isLegacy reports a text that begins like "[read_file for 'x'] Result:".
func isLegacy(raw []byte) bool {
	return len(raw) > 2 && raw[1] == '[' && bytes.Contains(raw[:min(len(raw), 4096)], []byte("] Result:"))
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func isName(s string, limit int) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

// safeName replaces what the API refuses in ids and names.
func safeName(s, empty string, limit int) string {
	if s == "" {
		return empty
	}
	b := []byte(cut(s, limit))
	for i, c := range b {
		if !isNameByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// isBase64 accepts standard base64 with or without padding, of at least one byte.
func isBase64(raw []byte) bool {
	if len(raw) < 4 || raw[0] != '"' {
		return false
	}
	body := bytes.TrimRight(raw[1:len(raw)-1], "=")
	for _, c := range body {
		if !isNameByte(c) && c != '+' && c != '/' || c == '_' || c == '-' {
			return false
		}
	}
	pad := len(raw) - 2 - len(body)
	return len(body) > 1 && pad <= 2 && (len(raw)-2)%4 == 0
}
