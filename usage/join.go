package usage

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

const outputMark = "Output:"

// JoinCommands joins each command row with its output rows and each MCP
// question with its response rows, as they are shown. The rows that were joined
// and all orphaned output rows are left out; all others are the slices given.
func JoinCommands(messages [][]byte) [][]byte {
	rows := make([]row, len(messages))
	for i, m := range messages {
		rows[i] = parseRow(m)
	}
	out := make([][]byte, 0, len(rows))
	for i, r := range rows {
		switch {
		case r.isOutput() || r.say == "mcp_server_response":
			continue
		case r.isAsk("use_mcp_server"):
			out = append(out, joinMCP(r, rows[i+1:]))
		case r.isAsk("command"):
			out = append(out, joinCommand(r, rows[i+1:]))
		default:
			out = append(out, r.raw)
		}
	}
	return out
}

// joinMCP takes the responses up to the next MCP question.
func joinMCP(ask row, rest []row) []byte {
	var parts []string
	for _, r := range rest {
		if r.isAsk("use_mcp_server") {
			break
		}
		if r.say == "mcp_server_response" {
			parts = append(parts, r.textString())
		}
	}
	if len(parts) == 0 {
		return ask.raw
	}
	text := []byte(ask.textString())
	if !esjson.Valid(text) {
		text = []byte("{}")
	}
	switch esjson.TypeOf(text) {
	case esjson.TypeObject:
		text = esjson.Set(text, "response", esjson.Quote(nil, strings.Join(parts, "\n")))
	case esjson.TypeArray: // an array forgets members when it is written
	default:
		text = esjson.Set([]byte("{}"), "response", esjson.Quote(nil, strings.Join(parts, "\n")))
	}
	return setText(ask.raw, text)
}

// joinCommand takes the output rows up to the next command, whatever lies
// between them.
func joinCommand(ask row, rest []row) []byte {
	var b strings.Builder
	command := ask.textString()
	b.WriteString(command)
	var prevType, prevText string
	seen := false
	// Where the text ends right after its first "Output:", no newline is put in.
	mark := strings.Index(command+"\n"+outputMark, outputMark) + len(outputMark)
	for _, r := range rest {
		if r.isAsk("command") {
			break
		}
		if !r.isOutput() {
			continue
		}
		if !seen {
			b.WriteString("\n" + outputMark)
		}
		text := r.textString()
		if text != "" && (!seen || prevType == r.typ || prevText != text) {
			if seen && b.Len() > mark {
				b.WriteByte('\n')
			}
			b.WriteString(text)
		}
		seen, prevType, prevText = true, r.typ, text
	}
	return esjson.Set(ask.raw, "text", esjson.Quote(nil, b.String()))
}

// setText stores JSON text, written as JSON.stringify would, as the row's text.
func setText(raw, text []byte) []byte {
	compact, err := esjson.Node(nil, text)
	if err != nil {
		return raw
	}
	return esjson.Set(raw, "text", esjson.Quote(nil, string(compact)))
}

// JoinRequests merges each api_req_finished row (old tasks) into the newest
// api_req_started row before it that has none yet, and drops the finished rows.
func JoinRequests(messages [][]byte) [][]byte {
	if len(messages) < 2 {
		return messages
	}
	out := make([][]byte, 0, len(messages))
	var open []int
	for _, m := range messages {
		r := parseRow(m)
		switch {
		case r.isSay("api_req_finished"):
			if len(open) == 0 {
				continue
			}
			at := open[len(open)-1]
			open = open[:len(open)-1]
			merged := spread([]byte("{}"), []byte(parseRow(out[at]).textString()))
			merged = spread(merged, []byte(r.textString()))
			out[at] = setText(out[at], merged)
			continue
		case r.isSay("api_req_started"):
			open = append(open, len(out))
		}
		out = append(out, m)
	}
	return out
}

// spread is {...obj, ...JSON.parse(text)}: arrays and strings spread by index,
// other values and bad JSON add nothing.
func spread(obj, text []byte) []byte {
	if !esjson.Valid(text) {
		return obj
	}
	text = trimJSON(text)
	switch esjson.TypeOf(text) {
	case esjson.TypeObject:
		for key, val := range esjson.Members(text) {
			obj = esjson.Set(obj, key, val)
		}
	case esjson.TypeArray:
		i := 0
		for val := range esjson.Array(text) {
			obj = esjson.Set(obj, index(i), val)
			i++
		}
	case esjson.TypeString:
		s, _ := esjson.Unquote(text)
		i := 0
		for unit := range units(s) {
			obj = esjson.Set(obj, index(i), esjson.Quote(nil, unit))
			i++
		}
	}
	return obj
}

// units yields the UTF-16 code units of s, each as a string of its own.
func units(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > 0 {
			r, n := utf8.DecodeRuneInString(s)
			if r == utf8.RuneError && n == 1 && len(s) >= 3 { // a lone surrogate
				n = 3
			}
			if r >= 0x10000 {
				hi, lo := utf16.EncodeRune(r)
				if !yield(surrogate(hi)) || !yield(surrogate(lo)) {
					return
				}
			} else if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

func surrogate(r rune) string {
	return string([]byte{0xE0 | byte(r>>12), 0x80 | byte(r>>6)&0x3F, 0x80 | byte(r)&0x3F})
}
