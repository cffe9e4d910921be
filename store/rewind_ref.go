package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// Row is a message as it is named to a person.
type Row struct {
	Number int    `json:"number"` // as show prints it, from 1
	TS     int64  `json:"ts"`
	Kind   string `json:"kind"`
	Text   string `json:"text"` // its first words
}

// RefError: a reference to a message fits none, or several.
type RefError struct {
	Given      string
	Why        string
	Ambiguous  bool
	Malformed  bool
	Candidates []Row
}

func (e *RefError) Error() string { return fmt.Sprintf("message %s: %s", e.Given, e.Why) }

// target is what a reference means: a row, or so many turns back.
type target struct {
	row     int  // in the UI history, from 0
	turns   int  // 0 = row counts
	between bool // a moment is meant: the one before the row
}

// candidates is how many messages a wrong reference is answered with.
const candidates = 5

// findRow reads a reference: #12 or 12, ~2 or -2, a checkpoint such as c3, or a ts.
func findRow(s *task.State, given string) (target, error) {
	text := strings.TrimSpace(given)
	if text == "" {
		return target{turns: 1}, nil
	}
	bad := &RefError{Given: given}
	if text[0] == '~' || text[0] == '-' {
		n, err := strconv.Atoi(text[1:])
		if text == "~" {
			n, err = 1, nil
		}
		if err != nil || n < 1 {
			bad.Malformed, bad.Why = true, "want a number of turns such as ~2"
			return target{}, bad
		}
		return target{turns: n}, nil
	}
	if to, ok, err := atCheckpoint(s, text, bad); ok {
		return to, err
	}
	digits, numbered := strings.CutPrefix(text, "#")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		bad.Malformed, bad.Why = true, "want a message's number such as #12, turns back such as ~2, a checkpoint such as c3, or a ts"
		bad.Candidates = someRows(s, len(s.UI()))
		return target{}, bad
	}
	if numbered || n <= int64(len(s.UI())) {
		if n < 1 || n > int64(len(s.UI())) {
			bad.Why = fmt.Sprintf("the task has the messages #1 to #%d", len(s.UI()))
			bad.Candidates = someRows(s, len(s.UI()))
			return target{}, bad
		}
		return target{row: int(n) - 1}, nil
	}
	return byTS(s, n, bad)
}

// byTS finds the row of a time. Where there is none, one with a message of the model's
// side of that time is said: those are not what a person is shown.
func byTS(s *task.State, ts int64, bad *RefError) (target, error) {
	var fits []int
	near := 0
	for i, m := range s.UI() {
		if m.TS() == ts {
			fits = append(fits, i)
		}
		if m.TS() <= ts {
			near = i
		}
	}
	switch len(fits) {
	case 1:
		return target{row: fits[0]}, nil
	case 0:
		bad.Why = "no message has that ts"
		bad.Candidates = someRows(s, near+candidates/2+1)
		return target{}, bad
	}
	bad.Ambiguous, bad.Why = true, fmt.Sprintf("%d messages have that ts", len(fits))
	for _, i := range fits[:min(len(fits), candidates)] {
		bad.Candidates = append(bad.Candidates, rowAt(s, i))
	}
	return target{}, bad
}

// someRows are the messages before a place.
func someRows(s *task.State, end int) []Row {
	end = min(end, len(s.UI()))
	var out []Row
	for i := max(0, end-candidates); i < end; i++ {
		out = append(out, rowAt(s, i))
	}
	return out
}

func rowAt(s *task.State, i int) Row { return namedRow(s, s.UI()[i], i+1) }

// namedRow names a message. One whose bytes are gone has no words.
func namedRow(s *task.State, m *task.Message, number int) Row {
	out := Row{Number: number, TS: m.TS(), Kind: m.Kind()}
	if raws, err := s.Raws([]*task.Message{m}); err == nil {
		text, _ := esjson.GetString(raws[0], "text")
		out.Text = firstWords(plainText(text))
	}
	return out
}

// plainText is a row's text for people: what a tool's row or a request's holds as JSON
// is named by what it is about.
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
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
