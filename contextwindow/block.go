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
	signature // of a thought, beside what it led to
)

// part is a content block that may be sent.
type part struct {
	kind   kind
	raw    []byte
	id     string // of a call or result, as stored
	sent   string // that id as it stands in raw
	legacy bool   // a text that is the result of a call, in the manner of the XML protocol
	mended bool   // raw is not what was stored
	at     int    // its place in the stored content
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

// typeName spares the usual types a copy each.
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

// checkBlock makes a stored block sendable for a role. keep is false when the
// block is left out; note says why it was left out or changed. f are b's members.
func checkBlock(b []byte, f *fields, role string, o Options) (p part, keep bool, note string) {
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
			return part{kind: text, raw: b, legacy: user && isLegacy(f.text)}, true, ""
		}
		return part{kind: text, raw: textBlock(f.text), legacy: user && isLegacy(f.text), mended: true}, true, ""
	case typ == "image" && user && f.source == nil && f.data != nil:
		bare := sourced(b, f.data) // as Cline writes it
		inside := fieldsOf(bare)
		p, keep, note = checkImage(bare, &inside, o)
		p.mended = true
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
			return part{kind: thinking, raw: b}, true, ""
		}
		var out esjson.Object
		out.String("type", "thinking")
		out.Raw("thinking", f.thinking)
		out.Raw("signature", f.signature)
		return part{kind: thinking, raw: out.Bytes(), mended: true}, true, ""
	case typ == "redacted_thinking" && !user:
		if o.DropThinking || str(f.data) == "" {
			return p, false, ""
		}
		if f.count == 2 {
			return part{kind: thinking, raw: b}, true, ""
		}
		var out esjson.Object
		out.String("type", "redacted_thinking")
		out.Raw("data", f.data)
		return part{kind: thinking, raw: out.Bytes(), mended: true}, true, ""
	case typ == "reasoning" && !user && o.KeepReasoning && str(f.encrypted) != "":
		return part{kind: thinking, raw: b}, true, ""
	case typ == "thoughtSignature" && !user && o.KeepSignatures && str(f.thoughtSignature) != "":
		return part{kind: signature, raw: b}, true, ""
	case typ == "reasoning" || typ == "thoughtSignature":
		return p, false, "" // other providers' own
	}
	return p, false, "a " + cut(typ, 40) + " block in a message of the " + role + " was left out"
}

// sourced is an image whose data stands in the block itself, as providers want it.
func sourced(b, data []byte) []byte {
	media, _ := esjson.Get(b, "mediaType")
	if media == nil {
		media = []byte("null")
	}
	var src, out esjson.Object
	src.String("type", "base64")
	src.Raw("media_type", media)
	src.Raw("data", data)
	out.String("type", "image")
	out.Raw("source", src.Bytes())
	return out.Bytes()
}

func checkImage(b []byte, f *fields, o Options) (part, bool, string) {
	if o.NoImages {
		return part{kind: text, raw: textOf(noImage), mended: true}, true, ""
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
		return part{kind: text, raw: textOf(badImage), mended: true}, true, "an image that cannot be sent was replaced by a text"
	}
	fits := f.count == 2 && n == 3
	if l := o.Images; l != (ImageLimits{}) {
		p, ok := pictureOf(data)
		if !ok {
			return part{kind: text, raw: textOf(badImage), mended: true}, true, "an image that cannot be read was replaced by a text"
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
			return part{kind: text, raw: textOf("[An image stood here that cannot be sent: " + why + ".]"), mended: true}, true, "an image was replaced by a text: " + why
		}
		*o.left = o.left.plus(more)
		if str(media) != p.media { // refused, too: what a file is called is not what it is
			media, fits = esjson.Quote(nil, p.media), false
		}
	}
	if fits {
		return part{kind: image, raw: b}, true, ""
	}
	var src, out esjson.Object
	src.String("type", "base64")
	src.Raw("media_type", media)
	src.Raw("data", data)
	out.String("type", "image")
	out.Raw("source", src.Bytes())
	return part{kind: image, raw: out.Bytes(), mended: true}, true, ""
}

func checkToolUse(b []byte, f *fields, o Options) (part, bool, string) {
	id, name := str(f.id), str(f.name)
	object := esjson.TypeOf(f.input) == esjson.TypeObject
	if f.count == 4 && object && isName(id, o.idLength()) && name != "" && name == o.name(name) && esjson.TypeOf(f.id) == esjson.TypeString {
		return part{kind: toolUse, raw: b, id: id, sent: id}, true, ""
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
	return part{kind: toolUse, raw: useBlock(sent, o.name(name), input), id: id, sent: sent, mended: true}, true, note
}

func useBlock(id, name string, input []byte) []byte {
	var o esjson.Object
	o.String("type", "tool_use")
	o.String("id", id)
	o.String("name", name)
	o.Raw("input", input)
	return o.Bytes()
}

func checkToolResult(b []byte, f *fields, o Options) (part, bool, string) {
	p := part{kind: toolResult, raw: b, id: str(f.useID)}
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
				if parts, same = spoken(inner), false; parts == nil {
					note = "a block inside a tool result was left out"
				}
			}
			for _, part := range parts {
				inside := fieldsOf(part)
				q, keep, why := checkBlock(part, &inside, "user", o)
				if why != "" {
					note = why
				}
				same = same && keep && !q.mended
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
	p.mended, p.sent = true, safeName(p.id, "call", 1<<10)
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

// isBlank: no string, or one of blanks only.
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

// isLegacy: the text begins like "[read_file for 'x'] Result:".
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

// isBase64 takes standard base64 with or without padding, at least one byte.
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
