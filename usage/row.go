package usage

import (
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// row is what the metrics need of a UI message. Strings are only decoded where a kind is compared; other text stays
// raw until it is needed.
type row struct {
	typ     string
	ask     string
	say     string
	text    []byte // raw JSON value, nil when absent
	ts      []byte // raw JSON value, nil when absent
	condens []byte // raw contextCondense, nil when absent
}

func parseRow(raw []byte) row {
	var r row
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return r
	}
	for key, val := range esjson.Members(raw) {
		switch key {
		case "type":
			r.typ = stringOf(val)
		case "ask":
			r.ask = stringOf(val)
		case "say":
			r.say = stringOf(val)
		case "text":
			r.text = val
		case "ts":
			r.ts = val
		case "contextCondense":
			r.condens = val
		}
	}
	return r
}

// textString is the decoded text, "" when it is absent or no string.
func (r row) textString() string { return stringOf(r.text) }

func (r row) isSay(kind string) bool { return r.typ == "say" && r.say == kind }

func (r row) isAsk(kind string) bool { return r.typ == "ask" && r.ask == kind }

func (r row) isOutput() bool { return r.ask == "command_output" || r.say == "command_output" }

// isResume reports whether the row only records that a task was opened again.
func (r row) isResume() bool { return r.ask == "resume_task" || r.ask == "resume_completed_task" }

func stringOf(raw []byte) string {
	if esjson.TypeOf(raw) != esjson.TypeString {
		return ""
	}
	s, err := esjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// isSpace is ECMAScript's \s, which is also what trim() removes.
func isSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200A,
		r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000, r == 0xFEFF:
		return true
	}
	return false
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }
