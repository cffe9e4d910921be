package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// ReferenceError: a reference to a message is malformed, or matches no message or several.
type ReferenceError struct {
	Given      string
	Why        string
	Ambiguous  bool
	Malformed  bool
	Candidates []api.Row
}

func (e *ReferenceError) Error() string { return fmt.Sprintf("message %s: %s", e.Given, e.Why) }

// target is what a reference means: a row, or a number of turns back.
type target struct {
	row     int  // in the UI history, from 0
	turns   int  // 0: row counts
	between bool // the reference names the moment before the row, not the row
}

// maxCandidates bounds the messages that a ReferenceError suggests: they fit on a screen.
const maxCandidates = 5

// resolve reads a reference: #12 or 12, ~2 or -2, a checkpoint such as c3, or a ts. "" is one turn back.
func resolve(s *task.State, given string) (target, error) {
	text := strings.TrimSpace(given)
	if text == "" {
		return target{turns: 1}, nil
	}
	wrong := &ReferenceError{Given: given}
	if text[0] == '~' || text[0] == '-' {
		n, err := strconv.Atoi(text[1:])
		if text == "~" {
			n, err = 1, nil
		}
		if err != nil || n < 1 {
			wrong.Malformed, wrong.Why = true, "want a number of turns such as ~2"
			return target{}, wrong
		}
		return target{turns: n}, nil
	}
	if to, ok, err := resolveCheckpoint(s, text, wrong); ok {
		return to, err
	}
	digits, numbered := strings.CutPrefix(text, "#")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		wrong.Malformed = true
		wrong.Why = "want a message's number such as #12, turns back such as ~2, a checkpoint such as c3, or a ts"
		wrong.Candidates = candidatesBefore(s, len(s.UI()))
		return target{}, wrong
	}
	if numbered || n <= int64(len(s.UI())) {
		if n < 1 || n > int64(len(s.UI())) {
			wrong.Why = fmt.Sprintf("the task has the messages #1 to #%d", len(s.UI()))
			wrong.Candidates = candidatesBefore(s, len(s.UI()))
			return target{}, wrong
		}
		return target{row: int(n) - 1}, nil
	}
	return resolveTS(s, n, wrong)
}

// callRows are the kinds of rows that show a tool call.
var callRows = map[string]bool{"ask:tool": true, "say:tool": true, "ask:command": true, "ask:use_mcp_server": true}

// resolveCheckpoint reads a reference such as c3; ok is false when the text is no such reference. A checkpoint means the
// moment at which it was taken: a rewind removes what came after it. For a checkpoint that was taken before a change, it
// also removes the row that shows the change, with its outcome, so that histories and files are of the same moment.
func resolveCheckpoint(s *task.State, text string, wrong *ReferenceError) (to target, ok bool, err error) {
	digits, named := strings.CutPrefix(text, "c")
	n, err := strconv.Atoi(digits)
	if !named || err != nil || n < 0 {
		return target{}, false, nil
	}
	ui := s.UI()
	c := s.Checkpoint(n)
	switch {
	case len(s.Checkpoints) == 0:
		wrong.Why = "the task has no checkpoints"
	case c == nil:
		wrong.Why = fmt.Sprintf("the task has the checkpoints c1 to c%d", s.Checkpoints[len(s.Checkpoints)-1].Number)
	case s.RewoundCheckpoint(*c):
		wrong.Why = fmt.Sprintf("%s was rewound with its messages; use roost checkpoint restore to restore the files alone", text)
	default:
		row, _ := slices.BinarySearchFunc(ui, c.Seq, func(m *task.Message, seq uint64) int {
			if m.Seq <= seq {
				return -1
			}
			return 1
		})
		if c.Reason == task.ReasonBefore && row > 0 && callRows[ui[row-1].Kind()] {
			row--
		}
		if row < len(ui) {
			return target{row: row, between: true}, true, nil
		}
		wrong.Why = fmt.Sprintf("no message follows %s", text)
	}
	wrong.Candidates = candidatesBefore(s, len(ui))
	return target{}, true, wrong
}

// resolveTS finds the row that has a time. Where no row has it, the candidates are the rows around that time: a message
// of the model's history may have it, and the user does not see those.
func resolveTS(s *task.State, ts int64, wrong *ReferenceError) (target, error) {
	var matches []int
	near := 0
	for i, m := range s.UI() {
		if m.TS() == ts {
			matches = append(matches, i)
		}
		if m.TS() <= ts {
			near = i
		}
	}
	switch len(matches) {
	case 1:
		return target{row: matches[0]}, nil
	case 0:
		wrong.Why = "no message has that ts"
		wrong.Candidates = candidatesBefore(s, near+maxCandidates/2+1)
		return target{}, wrong
	}
	wrong.Ambiguous, wrong.Why = true, fmt.Sprintf("%d messages have that ts", len(matches))
	for _, i := range matches[:min(len(matches), maxCandidates)] {
		wrong.Candidates = append(wrong.Candidates, rowAt(s, i))
	}
	return target{}, wrong
}

// tooManyTurns is the error for a reference to more turns than the task has.
func tooManyTurns(s *task.State, given string) error {
	return &ReferenceError{
		Given:      given,
		Why:        fmt.Sprintf("the model has replied %d times", s.Replies),
		Candidates: candidatesBefore(s, len(s.UI())),
	}
}

// candidatesBefore are the last messages before a row.
func candidatesBefore(s *task.State, end int) []api.Row {
	end = min(end, len(s.UI()))
	var out []api.Row
	for i := max(0, end-maxCandidates); i < end; i++ {
		out = append(out, rowAt(s, i))
	}
	return out
}

func rowAt(s *task.State, i int) api.Row { return newRow(s, s.UI()[i], i+1) }

// newRow names a message. The text of a message whose bytes are lost is empty.
func newRow(s *task.State, m *task.Message, number int) api.Row {
	out := api.Row{Number: number, TS: m.TS(), Kind: m.Kind()}
	if raws, err := s.Raws([]*task.Message{m}); err == nil {
		text, _ := esjson.GetString(raws[0], "text")
		out.Text = firstWords(plainText(text))
	}
	return out
}

// plainText is a row's text for the user. A text that is JSON, of a tool call or a request, becomes the name of what it
// is about.
func plainText(text string) string {
	if !strings.HasPrefix(text, "{") || !esjson.Valid([]byte(text)) {
		return text
	}
	for _, key := range []string{"tool", "question", "command"} {
		if name, ok := esjson.GetString([]byte(text), key); ok {
			path, _ := esjson.GetString([]byte(text), "path")
			return strings.TrimSpace(name + " " + path)
		}
	}
	return ""
}

// firstWords is the beginning of a text on one line.
func firstWords(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const maxRunes = 80 // a terminal's width
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return text
}
