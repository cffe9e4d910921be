package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
)

// Body is a request body in pieces, most of which are the messages' own bytes. As one piece, the body of a long
// history would be a megabyte that every turn allocates, copies and collects.
type Body struct {
	list [][]byte
	size int64
}

// NewBody begins a body with the members of the object head and, as the last member, an open list. The caller adds
// the elements and the end of the list. pieces is the number of pieces for which it allocates room.
func NewBody(head []byte, list string, pieces int) *Body {
	b := &Body{list: make([][]byte, 0, pieces)}
	b.Add(append(head[:len(head)-1], `,"`+list+`":[`...))
	return b
}

// Add adds a piece. Its bytes must not be changed from now on.
func (b *Body) Add(piece []byte) {
	if len(piece) > 0 {
		b.list = append(b.list, piece)
		b.size += int64(len(piece))
	}
}

// Tools returns the list of some tools, each in the form that describe returns; nil without any.
func Tools(tools []llm.ToolSpec, describe func(i int, t llm.ToolSpec) []byte) []byte {
	if len(tools) == 0 {
		return nil
	}
	list := make([][]byte, len(tools))
	for i, t := range tools {
		list[i] = describe(i, t)
	}
	return esjson.List(list)
}

// Size returns the body's length in bytes.
func (b *Body) Size() int64 { return b.size }

// Bytes returns the body in one piece.
func (b *Body) Bytes() []byte { return slices.Concat(b.list...) }

// Reader reads the body from its start. Each attempt has its own.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{list: b.list, left: b.size} }

// bodyReader reads one piece after the other. It only reads the bytes; the transport may still read when the reply
// has begun.
type bodyReader struct {
	list [][]byte
	at   int // index in the first piece
	left int64
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) && len(r.list) > 0 {
		c := copy(p[n:], r.list[0][r.at:])
		n, r.at = n+c, r.at+c
		if r.at == len(r.list[0]) {
			r.list, r.at = r.list[1:], 0
		}
	}
	r.left -= int64(n)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// gather hands the rest of the body to the connection without copying it.
func (r *bodyReader) gather(c *net.TCPConn) (int64, error) {
	// WriteTo uses its list up; this one is shared by all attempts.
	list := append(make(net.Buffers, 0, len(r.list)), r.list...)
	if len(list) > 0 {
		list[0] = list[0][r.at:]
	}
	r.list, r.at, r.left = nil, 0, 0
	n, err := list.WriteTo(c)
	return n, api.Failed(err, "send the request")
}

// Close does nothing: the reader holds no resource.
func (*bodyReader) Close() error { return nil }

// Block is a stored content block. Its values are raw JSON, because text that has the same form in both APIs is sent
// unchanged.
type Block struct {
	Type      string
	Raw       []byte
	Text      []byte // JSON string
	ID, Name  []byte // JSON strings; for a result, the id of its call
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
		var source []byte
		_, _ = esjson.Take(raw, "type", &b.Type, "text", &b.Text, "id", &b.ID, "tool_use_id", &b.ID, "name", &b.Name,
			"input", &b.Input, "content", &b.Content, "is_error", &b.IsError, "source", &source,
			"thoughtSignature", &b.Signature, "encrypted_content", &b.Encrypted)
		_, _ = esjson.Take(source, "media_type", &b.Media, "data", &b.Data)
		out = append(out, b)
	}
	return out
}

// DataURL returns an image as a data URL, as a JSON string.
func (b Block) DataURL() []byte {
	return esjson.Quote(nil, "data:"+b.Media+";base64,"+b.Data)
}

// Result returns a tool result as one JSON string, and its images.
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

// Object returns a call's input, or {} when the stored input is no object.
func (b Block) Object() []byte {
	if esjson.TypeOf(b.Input) != esjson.TypeObject {
		return []byte("{}")
	}
	return b.Input
}

// History keeps the messages of the last request in their sent form, so that a turn translates only new ones. Stored
// messages are never changed in place, so a message in the same memory is the same message.
type History struct {
	mu   sync.Mutex
	sent []sentMessage
}

type sentMessage struct {
	llm.Message
	wire []byte
}

// Add adds the messages to a body, separated by commas. It calls translate only for new messages; it leaves out a
// message whose translation is nil.
func (h *History) Add(body *Body, messages []llm.Message, translate func(llm.Message) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	same := 0
	for same < len(h.sent) && same < len(messages) && sameMessage(h.sent[same].Message, messages[same]) {
		same++
	}
	h.sent = h.sent[:same:same]
	for _, m := range messages[same:] {
		h.sent = append(h.sent, sentMessage{Message: m, wire: translate(m)})
	}
	var between []byte
	for _, m := range h.sent {
		if len(m.wire) > 0 {
			body.Add(between)
			body.Add(m.wire)
			between = comma
		}
	}
}

var comma = []byte(",")

func sameMessage(a, b llm.Message) bool {
	return a.Role == b.Role && len(a.Content) > 0 && len(a.Content) == len(b.Content) && &a.Content[0] == &b.Content[0] &&
		// Whether a server gets them back may change, the content not.
		len(a.ReasoningDetails) == len(b.ReasoningDetails) && len(a.ReasoningContent) == len(b.ReasoningContent)
}

// pathStep is one index of a path such as messages.12.content.3 or contents[4].parts[2].
var pathStep = lazyregexp.New(`^(?:\.([a-z_]+))?(?:\.(\d+)|\[(\d+)\])`)

// Path finds the path into a list of the request that a refusal names: its indexes, outermost first, and for each
// index the name of the list. Both are nil when the refusal names no path.
func Path(refusal, list string) (indexes []int, names []string) {
	for rest := refusal; ; {
		at := strings.Index(rest, list)
		if at < 0 {
			return nil, nil
		}
		inWord := at > 0 && isWord(rest[at-1])
		rest = rest[at+len(list):]
		if inWord {
			continue
		}
		name := list
		for m := pathStep().FindStringSubmatch(rest); m != nil; m = pathStep().FindStringSubmatch(rest) {
			n, err := strconv.Atoi(m[2] + m[3])
			if err != nil {
				break
			}
			if m[1] != "" {
				name = m[1]
			} else if len(indexes) > 0 {
				break
			}
			indexes, names = append(indexes, n), append(names, name)
			rest = rest[len(m[0]):]
		}
		if len(indexes) > 0 {
			return indexes, names
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Locate finds the message of the last request, and the block in it, that a refusal
// is about. list is the name of the list of messages in the request; skip is how many
// of its elements come before the first message.
func (h *History) Locate(refusal, list string, skip int) (message, block int, ok bool) {
	path, names := Path(refusal, list)
	if path == nil {
		return 0, 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := path[0] - skip
	if n < 0 { // the system prompt, or another element before the messages
		return 0, 0, false
	}
	for i, m := range h.sent {
		for item := range esjson.Array(bytes.Join([][]byte{{'['}, m.wire, {']'}}, nil)) {
			if n--; n >= 0 {
				continue
			}
			for k, index := range path[1:] {
				item = elementOf(item, names[k+1], index)
			}
			return i, blockOf(item, m.Message, refusal), true
		}
	}
	return 0, 0, false
}

// elementOf returns an element of a list in an item; the item itself when there is no such element.
func elementOf(item []byte, name string, index int) []byte {
	for e := range esjson.Array(esjson.Member(item, name)) {
		if index == 0 {
			return e
		}
		index--
	}
	return item
}

// blockOf finds the block from which a part of the request was made; -1 when the part was made from several and the
// refusal does not single one out.
func blockOf(item []byte, m llm.Message, refusal string) int {
	found := -1
	picture := strings.Contains(strings.ToLower(refusal), "image")
	for i, b := range Blocks(m.Content) {
		switch {
		case picture && containsImage(item, b):
			return i
		case !contains(item, b):
		case found >= 0:
			found = len(m.Content) // more than one
		default:
			found = i
		}
	}
	if found == len(m.Content) {
		return -1
	}
	return found
}

// containsImage reports whether the item contains an image of the block.
func containsImage(item []byte, b Block) bool {
	images := []Block{b}
	if b.Type == "tool_result" {
		_, images = b.Result()
	} else if b.Type != "image" {
		return false
	}
	return slices.ContainsFunc(images, func(i Block) bool { return i.Data != "" && bytes.Contains(item, []byte(i.Data)) })
}

func contains(item []byte, b Block) bool {
	switch b.Type {
	case "text":
		return bytes.Contains(item, b.Text)
	case "tool_use", "tool_result":
		return len(b.ID) > 2 && bytes.Contains(item, b.ID)
	case "reasoning":
		return len(b.Encrypted) > 2 && bytes.Contains(item, b.Encrypted)
	}
	return containsImage(item, b)
}
