package task

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/usage"
)

// facts is what a state keeps of a message's JSON, so that folding, counting and
// listing a long task need not hold its bytes.
type facts struct {
	kind    string
	ts      int64
	partial bool
	summary bool     // a condensed history, which is no reply
	uses    []use    // the tool calls it makes, in order
	results []string // the ids of the calls it answers, in order
	tags    *tags    // nil when it has none, as nearly all have
	spent   *usage.Spent
}

type use struct{ id, name string }

// factsLevels is how deep facts lie in a message: members of its content's blocks.
const factsLevels = 3

// indexes lends memory for reading one message after the other.
var indexes = sync.Pool{New: func() any { return new(esjson.Index) }}

// factsOf reads a message once; of one that is not JSON nothing is known.
func factsOf(h History, raw []byte, kinds words) facts {
	x := indexes.Get().(*esjson.Index)
	x.Read(raw, factsLevels)
	var f facts
	f.read(h, x, kinds)
	x.Read(nil, 0) // it must not keep the message
	indexes.Put(x)
	return f
}

// read is factsOf for a message that was read already, into memory that is there.
func (f *facts) read(h History, x *esjson.Index, kinds words) {
	var typ, role, ask, say, text, condense []byte
	content := -1
	var marked tags
	for i, end := within(x, 0); i < end; i = x.Next(i) {
		switch string(x.Name(i)) {
		case "ts":
			f.ts = intOf(x.Raw(i))
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
			marked.summary = memberAt(x, i, "condenseId")
		case "contextTruncation":
			marked.marker = memberAt(x, i, "truncationId")
		case "condenseParent":
			marked.condensed = stringOf(x.Raw(i))
		case "truncationParent":
			marked.truncated = stringOf(x.Raw(i))
		case "condenseId":
			marked.summary = stringOf(x.Raw(i))
		case "truncationId":
			marked.marker = stringOf(x.Raw(i))
		case "isTruncationMarker":
			marked.marks = string(x.Raw(i)) == "true"
		case "partial":
			f.partial = string(x.Raw(i)) == "true"
		case "isSummary":
			f.summary = string(x.Raw(i)) == "true"
		case "role":
			role = x.Raw(i)
		case "content":
			content = i
		}
	}
	if marked != (tags{}) {
		kept := marked // hardly any message has some: only those cost memory
		f.tags = &kept
	}
	if h == API {
		f.kind = kinds.word("", role)
		f.blocks(x, content, kinds)
		return
	}
	switch typ := kinds.word("", typ); typ {
	case "ask":
		f.kind = kinds.word("ask:", ask)
	case "say":
		f.kind = kinds.word("say:", say)
		if s, ok := usage.SpentOf(strings.TrimPrefix(f.kind, "say:"), text, condense); ok {
			f.spent = &s
		}
	default:
		f.kind = kinds.word(typ+":", memberOf(x, typ))
	}
}

// words are the kinds of messages and blocks and the names of tools, each once, however many there are of it.
type words map[string]string

// word is the prefix and the string that a literal means, nothing for what is no string. A word that is known costs no memory.
func (w words) word(prefix string, lit []byte) string {
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

func (f *facts) blocks(x *esjson.Index, content int, kinds words) {
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
			f.uses = append(f.uses, use{stringOf(id), kinds.word("", name)})
		case "tool_result":
			f.results = append(f.results, stringOf(answers))
		}
	}
}

// sameCalls reports whether two states of a message say the same of calls and
// replies, so that the rest of the history need not be looked at.
func (f facts) sameCalls(g facts) bool {
	if f.kind != g.kind || f.summary != g.summary || len(f.uses) != len(g.uses) || len(f.results) != len(g.results) {
		return false
	}
	for i := range f.uses {
		if f.uses[i] != g.uses[i] {
			return false
		}
	}
	for i := range f.results {
		if f.results[i] != g.results[i] {
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
