package task

import (
	"math"
	"strconv"

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
	spent   *usage.Spent
}

type use struct{ id, name string }

// factsOf reads a message once. kinds gives each kind one string, however many
// messages are of it.
func factsOf(h History, raw []byte, kinds map[string]string) facts {
	var f facts
	var typ, role string
	var named [2][]byte // values of "ask" and "say"
	var content []byte
	if esjson.TypeOf(raw) != esjson.TypeObject {
		raw = []byte("{}")
	}
	for key, val := range esjson.Members(raw) {
		switch key {
		case "ts":
			f.ts = intOf(val)
		case "type":
			typ = stringOf(val)
		case "ask":
			named[0] = val
		case "say":
			named[1] = val
		case "partial":
			f.partial = string(val) == "true"
		case "isSummary":
			f.summary = string(val) == "true"
		case "role":
			role = stringOf(val)
		case "content":
			content = val
		}
	}
	if h == API {
		f.kind = role
		f.blocks(content)
	} else {
		f.kind = typ + ":" + kindOf(raw, typ, named)
		switch f.kind {
		case "say:api_req_started", "say:condense_context":
			if s, ok := usage.SpentIn(raw); ok {
				f.spent = &s
			}
		}
	}
	if kind, ok := kinds[f.kind]; ok {
		f.kind = kind
	} else if kinds != nil {
		kinds[f.kind] = f.kind
	}
	return f
}

func kindOf(raw []byte, typ string, named [2][]byte) string {
	switch typ {
	case "ask":
		return stringOf(named[0])
	case "say":
		return stringOf(named[1])
	}
	kind, _ := esjson.GetString(raw, typ)
	return kind
}

func (f *facts) blocks(content []byte) {
	if esjson.TypeOf(content) != esjson.TypeArray {
		return
	}
	for block := range esjson.Array(content) {
		var typ, id, name, answers string
		if esjson.TypeOf(block) != esjson.TypeObject {
			continue
		}
		for key, val := range esjson.Members(block) {
			switch key {
			case "type":
				typ = stringOf(val)
			case "id":
				id = stringOf(val)
			case "name":
				name = stringOf(val)
			case "tool_use_id":
				answers = stringOf(val)
			}
		}
		switch typ {
		case "tool_use":
			f.uses = append(f.uses, use{id, name})
		case "tool_result":
			f.results = append(f.results, answers)
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
