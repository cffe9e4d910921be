// Package facts reads from a message's JSON what folding, counting and listing need. A folded state keeps the facts of
// each message and not its bytes.
package facts

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/usage"
)

// Facts is what a state keeps of a message's JSON. For a message that is not JSON, all facts are empty.
type Facts struct {
	Kind    string
	TS      int64
	Partial bool
	Summary bool     // a condensed history, which is no reply
	Uses    []Use    // the tool calls it makes, in order
	Results []string // the ids of the calls it answers, in order
	Tags    *Tags    // nil when it has none, like nearly all messages
	Spent   *usage.Tokens
	// Behind is Cline's record in a row: one more than the number of messages that the model's history held when the
	// row came. 0 = there is none.
	Behind int64
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

// maxCalls bounds the calls and results of one message, because comparing two messages takes time that grows with the
// square of their number. Models make at most some dozens at once.
const maxCalls = 1000

// factsLevels is how many levels of a message are indexed: the deepest facts are members of its content's blocks.
const factsLevels = 3

// Of reads a message once. api selects the rules of the API history, otherwise those of the UI history count.
func Of(api bool, raw []byte, kinds Kinds) (f Facts) {
	x := new(esjson.Index)
	x.Read(raw, factsLevels)
	f.Read(api, x, kinds)
	return f
}

// Read is Of for a message that x has indexed already.
func (f *Facts) Read(api bool, x *esjson.Index, kinds Kinds) {
	var ts, typ, role, ask, say, text, condense, truncation, newest []byte
	var marked Tags
	_, _ = x.Take(0, "ts", &ts, "type", &typ, "ask", &ask, "say", &say, "text", &text, "role", &role,
		"contextCondense", &condense, "contextTruncation", &truncation, "condenseParent", &marked.Condensed,
		"truncationParent", &marked.Truncated, "condenseId", &marked.Summary, "truncationId", &marked.Marker,
		"isTruncationMarker", &marked.Marks, "partial", &f.Partial, "isSummary", &f.Summary,
		"conversationHistoryIndex", &newest)
	f.TS, _ = esjson.Int(ts)
	if n, ok := esjson.Int(newest); ok && n >= -1 && n < math.MaxInt32 {
		f.Behind = n + 2
	}
	marked.Summary = cmp.Or(esjson.TextOf(condense, "condenseId"), marked.Summary)
	marked.Marker = cmp.Or(esjson.TextOf(truncation, "truncationId"), marked.Marker)
	if marked != (Tags{}) {
		f.Tags = new(marked) // a copy: hardly any message has tags, and only those cost memory
	}
	if api {
		f.Kind = kinds.word("", role)
		f.blocks(x, x.Find(0, "content"), kinds)
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
		f.Kind = kinds.word(typ+":", x.Raw(x.Find(0, typ)))
	}
}

// Kinds holds each kind of message and block, and each name of a tool, once, so that equal strings share memory.
type Kinds map[string]string

// word joins the prefix and the string in a JSON literal; for a literal that is no string it returns the prefix
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

func (f *Facts) blocks(x *esjson.Index, content int, kinds Kinds) {
	if content < 0 || esjson.TypeOf(x.Raw(content)) != esjson.TypeArray {
		return
	}
	for _, block := range x.Parts(content) {
		var typ, id, name, answers []byte
		_, _ = x.Take(block, "type", &typ, "id", &id, "name", &name, "tool_use_id", &answers)
		switch kind := kinds.word("", typ); {
		case len(f.Uses)+len(f.Results) == maxCalls:
			return
		case kind == "tool_use":
			f.Uses = append(f.Uses, Use{esjson.Text(id), kinds.word("", name)})
		case kind == "tool_result":
			f.Results = append(f.Results, esjson.Text(answers))
		}
	}
}

// SameCalls reports whether two states of a message make the same calls and hold the same results. If so, the rest of
// the history need not be folded again.
func (f Facts) SameCalls(g Facts) bool {
	return f.Kind == g.Kind && f.Summary == g.Summary && slices.Equal(f.Uses, g.Uses) && slices.Equal(f.Results, g.Results)
}
