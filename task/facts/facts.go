// Package facts reads from a message's JSON what folding, counting and listing need. A folded state keeps the facts of
// each message and not its bytes.
package facts

import (
	"encoding/json"
	"slices"
	"strings"

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
	Spent   *usage.Tokens
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

// Of reads a message once. api selects the rules of the API history, otherwise those of the UI history count.
func Of(api bool, raw []byte, kinds Kinds) (f Facts) {
	x := new(esjson.Index)
	x.Read(raw, factsLevels)
	f.Read(api, x, kinds)
	return f
}

// Read does what Of does, for a message that x has indexed already.
func (f *Facts) Read(api bool, x *esjson.Index, kinds Kinds) {
	var typ, role, ask, say, text, condense []byte
	content := -1
	var marked Tags
	for name, i := range x.Parts(0) {
		switch val := x.Raw(i); string(name) {
		case "ts":
			f.TS, _ = esjson.Int(val)
		case "type":
			typ = val
		case "ask":
			ask = val
		case "say":
			say = val
		case "text":
			text = val
		case "contextCondense":
			condense = val
			marked.Summary = esjson.Text(member(x, i, "condenseId"))
		case "contextTruncation":
			marked.Marker = esjson.Text(member(x, i, "truncationId"))
		case "condenseParent":
			marked.Condensed = esjson.Text(val)
		case "truncationParent":
			marked.Truncated = esjson.Text(val)
		case "condenseId":
			marked.Summary = esjson.Text(val)
		case "truncationId":
			marked.Marker = esjson.Text(val)
		case "isTruncationMarker":
			marked.Marks = string(val) == "true"
		case "partial":
			f.Partial = string(val) == "true"
		case "isSummary":
			f.Summary = string(val) == "true"
		case "role":
			role = val
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
		f.Kind = kinds.word(typ+":", member(x, 0, typ))
	}
}

// Kinds are the kinds of messages and blocks and the names of tools, each once, however many there are of it.
type Kinds map[string]string

// word joins the prefix and the string that a JSON literal stands for; of a literal that is no string it is the prefix
// alone.
func (w Kinds) word(prefix string, lit []byte) string {
	word := prefix + esjson.Text(lit)
	if known, ok := w[word]; ok {
		return known
	}
	if w != nil {
		w[word] = word
	}
	return word
}

// member is a member of object i as raw JSON, nil when there is none.
func member(x *esjson.Index, i int, key string) (val []byte) {
	for name, k := range x.Parts(i) {
		if name != nil && string(name) == key {
			val = x.Raw(k)
		}
	}
	return val
}

func (f *Facts) blocks(x *esjson.Index, content int, kinds Kinds) {
	if content < 0 || esjson.TypeOf(x.Raw(content)) != esjson.TypeArray {
		return
	}
	for _, block := range x.Parts(content) {
		var typ, id, name, answers []byte
		for key, i := range x.Parts(block) {
			switch string(key) {
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
			f.Uses = append(f.Uses, Use{esjson.Text(id), kinds.word("", name)})
		case "tool_result":
			f.Results = append(f.Results, esjson.Text(answers))
		}
	}
}

// SameCalls reports whether two states of a message make the same calls and hold the same results. Then the rest of
// the history needs no new look.
func (f Facts) SameCalls(g Facts) bool {
	return f.Kind == g.Kind && f.Summary == g.Summary && slices.Equal(f.Uses, g.Uses) && slices.Equal(f.Results, g.Results)
}

// Blocks calls visit for each block of a message's content. A content that is a plain string has none.
func Blocks(raw json.RawMessage, visit func(typ string, block []byte)) {
	content, ok := esjson.Get(raw, "content")
	if !ok || esjson.TypeOf(content) != esjson.TypeArray {
		return
	}
	for block := range esjson.Array(content) {
		visit(esjson.TextOf(block, "type"), block)
	}
}
