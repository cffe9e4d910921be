package catalog

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// The two histories of a task.
const (
	HistoryUI  = api.UI
	HistoryAPI = api.API
)

// Class is the kind of a piece of text.
type Class byte

// The classes.
const (
	Words  Class = 'w' // by the person or the model, thoughts included
	Tool   Class = 't' // input or output of a tool
	Path   Class = 'p' // a file that a tool was called with
	Called Class = 'n' // name of a tool that was called; only Used finds it
)

// Piece is a text in which a search looks for terms and phrases.
type Piece struct {
	Class Class
	Kind  string
	Text  string
}

// Message is the searchable text of one message. Number is the message's place in its visible history, from 1.
type Message struct {
	History string
	Number  int
	Place   int   // in the order in which the caller passes the messages of both histories
	TS      int64 // Unix milliseconds, 0 when the message has none
	Pieces  []Piece
}

// called adds the name of a tool that a message calls.
func (m *Message) called(kind, name string) { m.add(Called, kind, toolName(name)) }

// deep bounds how far into nested JSON the search for text goes.
const deep = 40

func (m *Message) add(c Class, kind, text string) {
	if text != "" {
		m.Pieces = append(m.Pieces, Piece{Class: c, Kind: kind, Text: text})
	}
}

// toolRows are the kinds of rows of the person's history whose text comes from a tool or is for one.
var toolRows = []string{
	"ask:tool", "say:tool", "ask:command", "say:command", "ask:command_output", "say:command_output", "ask:use_mcp_server",
	"say:use_mcp_server", "say:mcp_server_response", "say:user_edit_todos", "say:codebase_search_result", "say:browser_action",
	"say:browser_action_launch", "ask:browser_action_launch", "say:browser_action_result", "say:hook_output_stream",
}

// plainRows are the kinds of rows whose text is shown as it is, even if it is JSON.
var plainRows = []string{
	"say:text", "say:task", "say:user_feedback", "say:completion_result", "ask:completion_result", "say:error", "say:command",
	"ask:command", "say:command_output", "ask:command_output", "say:mcp_server_response",
}

// rowTools are the kinds of rows that show the call of one particular tool.
var rowTools = map[string]string{
	"ask:command": "execute_command", "ask:use_mcp_server": "use_mcp_tool", "ask:followup": "ask_followup_question",
	"say:completion_result": "attempt_completion", "say:user_edit_todos": "update_todo_list",
}

// begin splits an element into its members. An element that is not an object has no members; its bytes become text.
func begin(history string, raw []byte, number int) (Message, members) {
	m := Message{History: history, Number: number}
	if !object(raw) {
		m.add(Words, "invalid", string(raw))
		return m, nil
	}
	o := membersOf(raw)
	m.TS = o.int("ts")
	return m, o
}

// UI extracts the text of an element of the user's history. It leaves out the cost of a request, and the prompt that
// old rows repeat.
func UI(raw []byte, number int) Message {
	m, o := begin(HistoryUI, raw, number)
	if o == nil {
		return m
	}
	typ := o.str("type")
	kind := typ + ":" + o.str(typ)
	text := o.str("text")
	switch {
	case kind == "say:checkpoint_saved":
	case kind == "say:api_req_started":
		if inner := []byte(text); object(inner) {
			m.add(Words, kind, esjson.TextOf(inner, "streamingFailedMessage"))
		}
	case object([]byte(text)) && !slices.Contains(plainRows, kind):
		class := Words
		if slices.Contains(toolRows, kind) {
			class = Tool
			m.called(kind, esjson.TextOf([]byte(text), "tool"))
		}
		m.values(class, kind, []byte(text))
	case slices.Contains(toolRows, kind):
		m.add(Tool, kind, text)
	default:
		m.add(Words, kind, text)
	}
	m.called(kind, rowTools[kind])
	m.add(Words, kind, o.str("reasoning"))
	if info := o["contextCondense"]; esjson.TypeOf(info) == esjson.TypeObject {
		m.add(Words, kind, esjson.TextOf(info, "summary"))
	}
	return m
}

// API extracts the text of an element of the model's history. It leaves out the environment's details: nearly every
// message of the user repeats them, and few searches are for them.
func API(raw []byte, number int) Message {
	m, o := begin(HistoryAPI, raw, number)
	if o == nil {
		return m
	}
	role := o.str("role")
	if role == "" {
		role = o.str("type") // reasoning in a message of its own
		m.add(Words, role, o.str("text"))
		if list := o["summary"]; list != nil {
			m.values(Words, role, list)
		}
	}
	m.add(Words, "reasoning", o.str("reasoning_content"))
	content := o["content"]
	if s, err := esjson.Unquote(content); err == nil {
		m.said(role, s, false)
	}
	result := false // of a tool, in text blocks: older histories have no blocks for it
	for block := range esjson.Array(content) {
		result = m.block(role, block, result)
	}
	if esjson.TypeOf(content) == esjson.TypeObject {
		m.values(Words, role, content) // no known program writes an object here, but a search finds its text
	}
	return m
}

func (m *Message) block(role string, block []byte, result bool) bool {
	if esjson.TypeOf(block) != esjson.TypeObject {
		m.add(Words, "invalid", string(block))
		return false
	}
	o := membersOf(block)
	switch kind := o.str("type"); kind {
	case "text":
		text := o.str("text")
		head := resultHead().MatchString(text)
		m.said(role, text, role == "user" && (head || result && !strings.HasPrefix(text, "<")))
		return head
	case "thinking", "reasoning":
		m.add(Words, kind, o.str("thinking"))
		m.add(Words, kind, o.str("text"))
		if list := o["summary"]; list != nil {
			m.values(Words, kind, list)
		}
	case "redacted_thinking", "image", "thoughtSignature":
	case "tool_use":
		m.add(Tool, kind, o.str("name"))
		m.called(kind, o.str("name"))
		if input := o["input"]; input != nil {
			m.values(Tool, kind, input)
		}
	case "tool_result":
		m.result(kind, o["content"])
	default:
		m.values(Tool, kind, block)
	}
	return false
}

// result adds the result of a tool: a text, blocks, or anything else.
func (m *Message) result(kind string, content []byte) {
	if s, err := esjson.Unquote(content); err == nil {
		m.add(Tool, kind, s)
		return
	}
	if esjson.TypeOf(content) == esjson.TypeObject {
		m.values(Tool, kind, content)
	}
	for b := range esjson.Array(content) {
		switch {
		case esjson.TypeOf(b) != esjson.TypeObject:
			m.values(Tool, kind, b)
		case esjson.TextOf(b, "type") == "text":
			m.add(Tool, kind, esjson.TextOf(b, "text"))
		case esjson.TextOf(b, "type") != "image":
			m.values(Tool, kind, b)
		}
	}
}

var (
	pathTag    = lazyregexp.New(`<path>([^<\n]+)</path>`)
	callTag    = lazyregexp.New(`(?m)^<([a-z]+(?:_[a-z]+)+)>`) // a tool that is called in the text
	resultHead = lazyregexp.New(`^\[(\w+)[^\n]*\] Result:`)
)

// withoutEnvironment removes the blocks with the environment's details from a text. (A regular expression took a
// tenth of the time of indexing.)
func withoutEnvironment(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<environment_details>")
		_, after, closed := strings.Cut(rest, "</environment_details>")
		if !found || !closed {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		text = after
	}
}

// said adds the text of a message; tool marks the result of a tool. From calls that an assistant wrote as tags it also adds
// the names of the tools and the paths.
func (m *Message) said(role, text string, tool bool) {
	if role == "user" && strings.Contains(text, "<environment_details>") {
		text = strings.TrimSpace(withoutEnvironment(text))
	}
	class := Words
	if tool {
		class = Tool
	}
	m.add(class, role, text)
	if role != "assistant" || !strings.Contains(text, "</") {
		return
	}
	for _, at := range callTag().FindAllStringSubmatch(text, 64) {
		if strings.Contains(text, "</"+at[1]+">") {
			m.called(role, at[1])
		}
	}
	if strings.Contains(text, "<path>") {
		for _, at := range pathTag().FindAllStringSubmatch(text, 64) {
			m.add(Path, role, strings.TrimSpace(at[1]))
		}
	}
}

// pathKeys are the members whose strings are paths of files or folders.
var pathKeys = []string{"path", "paths", "file", "files", "filePath", "file_path", "filepath", "filename", "directory", "dir", "cwd"}

// values adds the strings and numbers inside a JSON value: each path as a piece, all others together.
func (m *Message) values(c Class, kind string, raw []byte) {
	var all []string
	m.walk(&all, kind, "", raw, 0)
	m.add(c, kind, strings.Join(all, "\n"))
}

func (m *Message) walk(all *[]string, kind, key string, raw []byte, depth int) {
	if depth > deep {
		*all = append(*all, string(raw))
		return
	}
	switch esjson.TypeOf(raw) {
	case esjson.TypeObject:
		for name, val := range esjson.Members(raw) {
			switch name {
			case "images", "signature", "data", "encrypted_content":
				continue // pictures, and what only a provider can read
			}
			m.walk(all, kind, name, val, depth+1)
		}
	case esjson.TypeArray:
		for val := range esjson.Array(raw) {
			m.walk(all, kind, key, val, depth+1)
		}
	case esjson.TypeString:
		s, err := esjson.Unquote(raw)
		switch {
		case err != nil || strings.HasPrefix(s, "data:image/"):
		case slices.Contains(pathKeys, key):
			m.add(Path, kind, s)
		default:
			*all = append(*all, s)
		}
	case esjson.TypeNumber:
		*all = append(*all, string(raw))
	}
}

func object(raw []byte) bool { return esjson.TypeOf(raw) == esjson.TypeObject && esjson.Valid(raw) }

// members are the members of an object; of several with one name the last one, as in JSON.parse.
type members map[string][]byte

func membersOf(obj []byte) members { return maps.Collect(esjson.Members(obj)) }

func (m members) str(name string) string {
	s, err := esjson.Unquote(m[name])
	if err != nil {
		return ""
	}
	return s
}

func (m members) int(name string) int64 {
	n, _ := esjson.Int(m[name])
	return n
}

// toolName spells the name of a tool as the catalogue keeps it.
func toolName(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// A text is runs of word characters, with something or nothing between them. What is
// not ASCII counts as a word character. An underscore does not: the words of
// identifiers are few, the identifiers are many. Scripts that write words with one or two
// characters make runs of their own, which are kept as single characters and pairs.

const (
	longWord = 64 // bytes; a longer word is kept in overlapping pieces
	halfWord = longWord / 2
	edge     = 3 // bytes of each run in a joint

	jointBits = 18 // of a joint's number
)

type runeClass byte

const (
	between runeClass = iota
	letter
	ideograph
)

// classAt returns the class of the rune at the beginning of a folded text, and its length.
func classAt(s string) (runeClass, int) {
	if c := s[0]; c < utf8.RuneSelf {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return letter, 1
		}
		return between, 1
	}
	c, n := utf8.DecodeRuneInString(s)
	if c >= 0x1100 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
		return ideograph, n
	}
	return letter, n
}

// run is a part of a text whose characters have one class.
type run struct {
	class    runeClass
	from, to int
}

// runs yields the runs of a text, in their order.
func runs(s string) iter.Seq[run] {
	return func(yield func(run) bool) {
		for at := 0; at < len(s); {
			class, n := classAt(s[at:])
			r := run{class, at, at + n}
			for class != between && r.to < len(s) {
				c, n := classAt(s[r.to:])
				if c != class {
					break
				}
				r.to += n
			}
			if at = r.to; class != between && !yield(r) {
				return
			}
		}
	}
}

// features collects the index entries of a part: its words, and its joints, which show which words follow each other.
// A bitmap makes the joints cheap.
type features struct {
	seen   map[string]struct{}
	words  []byte // each followed by a line break
	joined [1 << jointBits / 64]uint64
	joints []uint32
}

func (f *features) word(w string) {
	if _, ok := f.seen[w]; ok {
		return
	}
	if f.seen == nil {
		f.seen = map[string]struct{}{}
	}
	f.seen[w] = struct{}{}
	f.words = append(append(f.words, w...), '\n')
}

func (f *features) joint(n uint32) {
	if f.joined[n/64]&(1<<(n%64)) == 0 {
		f.joined[n/64] |= 1 << (n % 64)
		f.joints = append(f.joints, n)
	}
}

// reset empties the set in time that grows only with its content.
func (f *features) reset() {
	clear(f.seen)
	for _, n := range f.joints {
		f.joined[n/64] = 0
	}
	f.words, f.joints = f.words[:0], f.joints[:0]
}

// text adds the features of a folded text.
func (f *features) text(s string) {
	last := run{}
	for r := range runs(s) {
		f.run(s[r.from:r.to], r.class)
		if last.to > 0 {
			f.joint(joint(s[last.from:last.to], s[last.to:r.from], s[r.from:r.to]))
		}
		last = r
	}
}

func (f *features) run(s string, class runeClass) {
	if class == ideograph {
		each(s, func(one, two string) {
			f.word(one)
			if two != "" {
				f.word(two)
			}
		})
		return
	}
	// Each stretch of half a piece's length is whole in one piece.
	for len(s) > longWord {
		f.word(s[:longWord])
		s = s[halfWord:]
	}
	f.word(s)
}

// each passes every character of a run to f, alone and together with the character before it.
func each(s string, f func(one, two string)) {
	before := -1
	for i, c := range s {
		end := i + utf8.RuneLen(c)
		two := ""
		if before >= 0 {
			two = s[before:end]
		}
		f(s[i:end], two)
		before = i
	}
}

// joint returns a hash of the boundary between two neighbouring runs of characters: the end of a, the gap and the
// beginning of b.
func joint(a, gap, b string) uint32 {
	h := uint64(14695981039346656037)
	add := func(s string) {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	add(a[max(0, len(a)-edge):])
	add(gap)
	add(b[:min(edge, len(b))])
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> (64 - jointBits))
}

// wanted lists what a part must have to contain a query's text.
type wanted struct {
	words  []string // as they are searched in a list of words, each between line breaks
	joints []uint32
}

// want adds the words and joints of every text that contains the given one.
func (w *wanted) want(term string) {
	last := run{}
	for r := range runs(term) {
		w.run(term, r)
		if last.to > 0 && (last.from > 0 || last.to-last.from >= edge) && (r.to < len(term) || r.to-r.from >= edge) {
			w.joints = append(w.joints, joint(term[last.from:last.to], term[last.to:r.from], term[r.from:r.to]))
		}
		last = r
	}
}

// run adds the terms of one run. At the ends of the given text, the run may be longer in the text of a part.
func (w *wanted) run(term string, r run) {
	s := term[r.from:r.to]
	if r.class == ideograph {
		n := 0
		each(s, func(_, two string) {
			if n++; two != "" {
				w.words = append(w.words, "\n"+two+"\n")
			}
		})
		if n == 1 {
			w.words = append(w.words, "\n"+s+"\n")
		}
		return
	}
	if len(s) > halfWord {
		for ; len(s) > halfWord; s = s[halfWord:] {
			w.words = append(w.words, s[:halfWord])
		}
		return
	}
	if r.from > 0 {
		s = "\n" + s
	}
	if r.to < len(term) {
		s += "\n"
	}
	w.words = append(w.words, s)
}
