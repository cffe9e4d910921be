package contextwindow

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	pixels "image"
	_ "image/gif" // what DecodeConfig knows
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// Note describes something left out of a request or changed in it.
type Note struct {
	Index int // of the stored message, -1 when the note is about the request as a whole
	Text  string
}

// checked is a stored message, ready to be placed.
type checked struct {
	tags
	index   int
	asIs    bool // content can be sent unchanged, apart from the pairing of calls and results
	parts   []contentPart
	notes   []string
	results int    // number of tool results among the parts
	details []byte // reasoning_details, nil when they are not sent
	thought []byte // plain reasoning, a JSON string; nil when there is none or it is not sent
	load    load   // the images in it
}

// check parses a stored message and makes its blocks sendable. It reads the bytes once; x is room for parsing.
func check(x *esjson.Index, raw []byte, o Options) *checked {
	c := new(checked)
	if !x.Read(raw, 3) || esjson.TypeOf(raw) != esjson.TypeObject {
		c.notes = []string{"a message that is no JSON object was left out"}
		return c
	}
	c.take(func(places ...any) (int, error) { return x.Take(0, places...) })
	if o.KeepDetails {
		c.keepDetails(x.Raw(x.Find(0, "reasoning_details")))
	}
	content := x.Find(0, "content")
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

// keepDetails keeps the members of an assistant's message that a server requires back.
func (c *checked) keepDetails(raw []byte) {
	if esjson.TypeOf(raw) != esjson.TypeArray {
		return
	}
	for range esjson.Array(raw) { // an empty array holds nothing
		c.details, _ = tidy(raw)
		return
	}
}

// takeContent makes parts from the content, which is value i of x.
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
	var f fields // of each block in turn
	for _, k := range x.Parts(i) {
		at++
		f = fields{}
		f.take(func(places ...any) (int, error) { return x.Take(k, places...) })
		if o.KeepReasoningContent && c.role == "assistant" && esjson.Text(f.typ) == "reasoning" &&
			esjson.TypeOf(f.text) == esjson.TypeString {
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

type kind uint8

const (
	text kind = iota
	image
	toolUse
	toolResult
	thinking
	signature // of a thought, stored with the call or text that followed the thought
)

// contentPart is a content block that may be sent.
type contentPart struct {
	kind     kind
	raw      []byte
	id       string // of the call or result, as stored
	sent     string // that id as raw spells it
	legacy   bool   // a text that is a tool result in the form of the XML protocol
	repaired bool   // raw differs from the stored bytes
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
	f.take(func(places ...any) (int, error) { return esjson.Take(b, places...) })
	return f
}

// take fills the fields through a function like esjson.Take.
func (f *fields) take(from func(places ...any) (members int, err error)) {
	f.count, _ = from("type", &f.typ, "text", &f.text, "id", &f.id, "name", &f.name, "input", &f.input,
		"tool_use_id", &f.useID, "content", &f.content, "is_error", &f.isError, "thinking", &f.thinking,
		"signature", &f.signature, "data", &f.data, "source", &f.source,
		"encrypted_content", &f.encrypted, "thoughtSignature", &f.thoughtSignature)
}

// checkBlock makes a stored block sendable for a role. keep is false when the block is left out; note describes why it
// was left out or changed. f are b's members.
func checkBlock(b []byte, f *fields, role string, o Options) (p contentPart, keep bool, note string) {
	if esjson.TypeOf(b) != esjson.TypeObject {
		return p, false, "a content block that is no object was left out"
	}
	typ := esjson.Text(f.typ)
	user := role == "user"
	switch {
	case typ == "text":
		if isBlank(f.text) {
			return p, false, ""
		}
		p = f.sendable(text, b, "type", typ, "text", f.text)
		p.legacy = user && isLegacy(f.text)
		return p, true, ""
	case typ == "image" && user && f.source == nil && f.data != nil:
		media := esjson.Member(b, "mediaType")
		if media == nil {
			media = []byte("null")
		}
		bare := imageBlock(media, f.data) // in Cline's form
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
		if o.DropThinking || esjson.Text(f.signature) == "" || esjson.TypeOf(f.thinking) != esjson.TypeString {
			return p, false, ""
		}
		return f.sendable(thinking, b, "type", typ, "thinking", f.thinking, "signature", f.signature), true, ""
	case typ == "redacted_thinking" && !user:
		if o.DropThinking || esjson.Text(f.data) == "" {
			return p, false, ""
		}
		return f.sendable(thinking, b, "type", typ, "data", f.data), true, ""
	case typ == "reasoning" && !user && o.KeepReasoning && esjson.Text(f.encrypted) != "":
		return contentPart{kind: thinking, raw: b}, true, ""
	case typ == "thoughtSignature" && !user && o.KeepSignatures && esjson.Text(f.thoughtSignature) != "":
		return contentPart{kind: signature, raw: b}, true, ""
	case typ == "reasoning" || typ == "thoughtSignature":
		return p, false, "" // other providers' own blocks
	}
	return p, false, "a " + cut(typ, 40) + " block in a message of the " + role + " was left out"
}

// sendable returns the part for a block of which only some members may be sent, given as names and values: the block
// itself when it has no others.
func (f *fields) sendable(k kind, b []byte, members ...any) contentPart {
	if f.count == len(members)/2 {
		return contentPart{kind: k, raw: b}
	}
	return contentPart{kind: k, raw: esjson.ObjectOf(members...), repaired: true}
}

// textInstead returns a text that is sent in place of an image.
func textInstead(s string) contentPart {
	return contentPart{kind: text, raw: textOf(s), repaired: true}
}

func imageBlock(media, data []byte) []byte {
	return esjson.ObjectOf("type", "image",
		"source", esjson.ObjectOf("type", "base64", "media_type", media, "data", data))
}

func checkImage(b []byte, f *fields, o Options) (contentPart, bool, string) {
	if o.NoImages {
		return textInstead(noImage), true, ""
	}
	var typ, media, data []byte
	n, _ := esjson.Take(f.source, "type", &typ, "media_type", &media, "data", &data)
	switch esjson.Text(media) {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		media = nil
	}
	if esjson.Text(typ) != "base64" || media == nil || !isBase64(data) {
		return textInstead(badImage), true, "an image that cannot be sent was replaced by a text"
	}
	fits := f.count == 2 && n == 3
	if l := o.Images; l != (ImageLimits{}) {
		p, ok := pictureOf(data)
		if !ok {
			return textInstead(badImage), true, "an image that cannot be read was replaced by a text"
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
			shown := textInstead("[An image stood here that cannot be sent: " + why + ".]")
			return shown, true, "an image was replaced by a text: " + why
		}
		*o.left = o.left.plus(more)
		if esjson.Text(media) != p.media { // providers refuse this, too: a file's name does not decide its type
			media, fits = esjson.Quote(nil, p.media), false
		}
	}
	if fits {
		return contentPart{kind: image, raw: b}, true, ""
	}
	return contentPart{kind: image, raw: imageBlock(media, data), repaired: true}, true, ""
}

func checkToolUse(b []byte, f *fields, o Options) (contentPart, bool, string) {
	id, name := esjson.Text(f.id), esjson.Text(f.name)
	object := esjson.TypeOf(f.input) == esjson.TypeObject
	asIs := object && isName(id, o.idLength()) && name != "" && name == o.name(name)
	if f.count == 4 && asIs && esjson.TypeOf(f.id) == esjson.TypeString {
		return contentPart{kind: toolUse, raw: b, id: id, sent: id}, true, ""
	}
	note, input := "", f.input
	if !object {
		in := []byte(esjson.Text(f.input))
		if !esjson.Valid(in) || esjson.TypeOf(in) != esjson.TypeObject {
			in, note = []byte("{}"), "the input of a tool call is no object; it is sent as empty"
		}
		input, _ = tidy(in)
	}
	sent := safeName(id, "call", o.idLength())
	return contentPart{kind: toolUse, raw: esjson.ObjectOf("type", "tool_use", "id", sent,
		"name", o.name(name), "input", input), id: id, sent: sent, repaired: true}, true, note
}

func checkToolResult(b []byte, f *fields, o Options) (contentPart, bool, string) {
	p := contentPart{kind: toolResult, raw: b, id: esjson.Text(f.useID)}
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
				if q.kind == image && truthy(f.isError) {
					isError, same = false, false // no image may be in a result that is marked as failed
				}
			}
		}
		switch {
		case len(items) == 0:
			content, ok = esjson.Quote(nil, noResult), false
		case !same:
			content, ok = esjson.List(items), false
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
	if !isError {
		f.isError = nil
	}
	p.raw = esjson.ObjectOf("type", "tool_result", "tool_use_id", p.sent, "content", content, "is_error", f.isError)
	return p, true, note
}

// isBlank reports whether a value is no string, or a string of blanks alone.
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

// isLegacy reports whether a text begins like "[read_file for 'x'] Result:".
func isLegacy(raw []byte) bool {
	return len(raw) > 2 && raw[1] == '[' && bytes.Contains(raw[:min(len(raw), 4096)], []byte("] Result:"))
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func isName(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r > 'z' || !isNameByte(byte(r)) })
}

// safeName replaces the characters that the API refuses in ids and names.
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

// isBase64 reports whether raw is standard base64 of at least one byte, with or without padding.
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

// ImageLimits are a provider's limits for images. 0 = no limit; with the zero value images are not examined.
type ImageLimits struct {
	Count int // in one request
	Bytes int // of one image, as base64
	Total int // of all images of a request, as base64
	Side  int // pixels of an image's longer side

	// If there are more than Many images, none may have a side above ManySide.
	Many, ManySide int

	NoGIF bool
}

// picture is what an image's header states.
type picture struct {
	media         string
	width, height int
}

func (p picture) side() int { return max(p.width, p.height) }

// pictureOf reads the header of an image in a raw JSON string of base64. It decodes
// no pixels and reads no further than it must: a header may claim any size.
func pictureOf(data []byte) (picture, bool) {
	body := data[1 : len(data)-1]
	start := make([]byte, 32)
	n, _ := io.ReadFull(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(body)), start) // a short header is recognised by its kind
	start = start[:n]
	if len(start) >= 30 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP" {
		return webp(start)
	}
	c, format, err := pixels.DecodeConfig(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(body)))
	return picture{"image/" + format, c.Width, c.Height}, err == nil && c.Width > 0 && c.Height > 0
}

// webp reads the first 30 bytes of a WebP file: lossy, lossless or extended.
func webp(b []byte) (picture, bool) {
	p := picture{media: "image/webp"}
	switch string(b[12:16]) {
	case "VP8 ":
		p.width = int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff)
		p.height = int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(b[21:])
		p.width, p.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		p.width = 1 + (int(b[24]) | int(b[25])<<8 | int(b[26])<<16)
		p.height = 1 + (int(b[27]) | int(b[28])<<8 | int(b[29])<<16)
	}
	return p, p.width > 0 && p.height > 0
}

// tooMuch returns why one image cannot be sent, "" when it can.
func (l ImageLimits) tooMuch(p picture, size int) string {
	switch {
	case l.NoGIF && p.media == "image/gif":
		return "this provider takes no GIF"
	case l.Bytes > 0 && size > l.Bytes:
		return fmt.Sprintf("it has %d bytes, and this provider takes %d", size, l.Bytes)
	case l.Side > 0 && p.side() > l.Side:
		return fmt.Sprintf("it has %d x %d pixels, and this provider takes %d", p.width, p.height, l.Side)
	}
	return ""
}

// load is a number of images and their total size.
type load struct {
	count, size int
	large       int // images with a side above ManySide
}

func (a load) plus(b load) load {
	return load{a.count + b.count, a.size + b.size, a.large + b.large}
}

func (a load) minus(b load) load {
	return load{a.count - b.count, a.size - b.size, a.large - b.large}
}

// over reports whether the images exceed the limits of a request; part divides each limit (1 = all of it, 2 = half).
func (l ImageLimits) over(a load, part int) bool {
	return l.Count > 0 && a.count > l.Count/part || l.Total > 0 && a.size > l.Total/part ||
		l.Many > 0 && a.large > 0 && a.count > l.Many/part
}
