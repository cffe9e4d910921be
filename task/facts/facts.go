// Package facts reads from a message's JSON what folding, counting and listing need. A folded state keeps the facts of
// each message and not its bytes.
package facts

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/usage"
)

// Facts is what a state keeps of a message's JSON. Of a message that is not JSON nothing is known.
type Facts struct {
	Kind    string
	TS      int64
	Partial bool
	Summary bool     // a condensed history, which is no reply
	Uses    []Use    // the tool calls it makes, in order
	Results []string // the ids of the calls it answers, in order
	Tags    *Tags    // nil when it has none, as nearly all have
	Spent   *usage.Spent
}

// Use is one tool call of a message: its id and the name of its tool.
type Use struct{ ID, Name string }

// Tags are Roo's marks on messages that a request leaves out. On an API message they name the summary or marker that
// hides it and the id under which it hides others. On a UI row they name the summary or marker that the row shows.
type Tags struct {
	Condensed string // condenseParent: the summary that hides the message
	Truncated string // truncationParent: the marker that hides it
	Summary   string // condenseId: of a summary, or of the row that shows one
	Marker    string // truncationId: of a marker, or of the row that shows one
	Marks     bool   // isTruncationMarker
}

// factsLevels is how many levels of a message are indexed: the deepest facts are members of its content's blocks.
const factsLevels = 3

// indexes lends memory for reading one message after the other.
var indexes = sync.Pool{New: func() any { return new(esjson.Index) }}

// Of reads a message once. api selects the rules of the API history, otherwise those of the UI history count.
func Of(api bool, raw []byte, kinds Kinds) Facts {
	x := indexes.Get().(*esjson.Index)
	x.Read(raw, factsLevels)
	var f Facts
	f.Read(api, x, kinds)
	x.Read(nil, 0) // it must not keep the message
	indexes.Put(x)
	return f
}

// Read does what Of does, for a message that x has indexed already.
func (f *Facts) Read(api bool, x *esjson.Index, kinds Kinds) {
	var typ, role, ask, say, text, condense []byte
	content := -1
	var marked Tags
	for i, end := within(x, 0); i < end; i = x.Next(i) {
		switch string(x.Name(i)) {
		case "ts":
			f.TS = intOf(x.Raw(i))
		case "type":
			typ = x.Raw(i)
		case "ask":
			ask = x.Raw(i)
		case "say":
			say = x.Raw(i)
		case "text":
			text = x.Raw(i)
		case "contextCondense":
			condense = x.Raw(i)
			marked.Summary = memberAt(x, i, "condenseId")
		case "contextTruncation":
			marked.Marker = memberAt(x, i, "truncationId")
		case "condenseParent":
			marked.Condensed = stringOf(x.Raw(i))
		case "truncationParent":
			marked.Truncated = stringOf(x.Raw(i))
		case "condenseId":
			marked.Summary = stringOf(x.Raw(i))
		case "truncationId":
			marked.Marker = stringOf(x.Raw(i))
		case "isTruncationMarker":
			marked.Marks = string(x.Raw(i)) == "true"
		case "partial":
			f.Partial = string(x.Raw(i)) == "true"
		case "isSummary":
			f.Summary = string(x.Raw(i)) == "true"
		case "role":
			role = x.Raw(i)
		case "content":
			content = i
		}
	}
	if marked != (Tags{}) {
		kept := marked // hardly any message has some: only those cost memory
		f.Tags = &kept
	}
	if api {
		f.Kind = kinds.word("", role)
		f.blocks(x, content, kinds)
		return
	}
	switch typ := kinds.word("", typ); typ {
	case "ask":
		f.Kind = kinds.word("ask:", ask)
	case "say":
		f.Kind = kinds.word("say:", say)
		if s, ok := usage.SpentOf(strings.TrimPrefix(f.Kind, "say:"), text, condense); ok {
			f.Spent = &s
		}
	default:
		f.Kind = kinds.word(typ+":", memberOf(x, typ))
	}
}

// Kinds are the kinds of messages and blocks and the names of tools, each once, however many there are of it.
type Kinds map[string]string

// word joins the prefix and the string that a JSON literal stands for; of a literal that is no string it is the prefix
// alone. A known word costs no memory.
func (w Kinds) word(prefix string, lit []byte) string {
	var room [64]byte
	text := append(room[:0], prefix...)
	if esjson.TypeOf(lit) == esjson.TypeString {
		text, _ = esjson.AppendUnquoted(text, lit)
	}
	if known, ok := w[string(text)]; ok {
		return known
	}
	word := string(text)
	if w != nil {
		w[word] = word
	}
	return word
}

// within is Index.Within of an object; anything else has no members.
func within(x *esjson.Index, i int) (first, end int) {
	if esjson.TypeOf(x.Raw(i)) != esjson.TypeObject {
		return 0, 0
	}
	return x.Within(i)
}

// memberOf is a member as raw JSON, nil when there is none.
func memberOf(x *esjson.Index, key string) (val []byte) {
	for i, end := within(x, 0); i < end; i = x.Next(i) {
		if string(x.Name(i)) == key {
			val = x.Raw(i)
		}
	}
	return val
}

// memberAt is a string in an object that is a member itself, "" when there is none.
func memberAt(x *esjson.Index, object int, key string) (val string) {
	for i, end := within(x, object); i < end; i = x.Next(i) {
		if string(x.Name(i)) == key {
			val = stringOf(x.Raw(i))
		}
	}
	return val
}

func (f *Facts) blocks(x *esjson.Index, content int, kinds Kinds) {
	if content < 0 || esjson.TypeOf(x.Raw(content)) != esjson.TypeArray {
		return
	}
	for block, last := x.Within(content); block < last; block = x.Next(block) {
		var typ, id, name, answers []byte
		for i, end := within(x, block); i < end; i = x.Next(i) {
			switch string(x.Name(i)) {
			case "type":
				typ = x.Raw(i)
			case "id":
				id = x.Raw(i)
			case "name":
				name = x.Raw(i)
			case "tool_use_id":
				answers = x.Raw(i)
			}
		}
		switch kinds.word("", typ) {
		case "tool_use":
			f.Uses = append(f.Uses, Use{stringOf(id), kinds.word("", name)})
		case "tool_result":
			f.Results = append(f.Results, stringOf(answers))
		}
	}
}

// SameCalls reports whether two states of a message make the same calls and hold the same results. Then the rest of
// the history needs no new look.
func (f Facts) SameCalls(g Facts) bool {
	if f.Kind != g.Kind || f.Summary != g.Summary || len(f.Uses) != len(g.Uses) || len(f.Results) != len(g.Results) {
		return false
	}
	for i := range f.Uses {
		if f.Uses[i] != g.Uses[i] {
			return false
		}
	}
	for i := range f.Results {
		if f.Results[i] != g.Results[i] {
			return false
		}
	}
	return true
}

func stringOf(val []byte) string {
	if esjson.TypeOf(val) != esjson.TypeString {
		return ""
	}
	s, _ := esjson.Unquote(val)
	return s
}

// intOf reads a whole number in any spelling, as esjson.GetInt does.
func intOf(val []byte) int64 {
	if esjson.TypeOf(val) != esjson.TypeNumber {
		return 0
	}
	if n, err := strconv.ParseInt(string(val), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(val), 64)
	if err != nil || f != math.Trunc(f) || f < -(1<<63) || f >= 1<<63 {
		return 0
	}
	return int64(f)
}

// Blocks calls visit for each block of a message's content. A content that is a plain string has none.
func Blocks(raw json.RawMessage, visit func(typ string, block []byte)) {
	content, ok := esjson.Get(raw, "content")
	if !ok || esjson.TypeOf(content) != esjson.TypeArray {
		return
	}
	for block := range esjson.Array(content) {
		typ, _ := esjson.GetString(block, "type")
		visit(typ, block)
	}
}
