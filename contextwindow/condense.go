package contextwindow

import (
	"errors"
	"math"
	"regexp"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// ErrTooShort: a history holds nothing that is worth a summary, only one message, or a summary and its answer.
var ErrTooShort = errors.New("there is too little before the newest messages to condense")

// Condensation is which messages a summary covers, and where it goes.
//
// The newest messages stay as they are, unlike with Roo, whose summary covers everything: the model continues with the
// words and results that it was about to use, and not with a description of them. Roo reads such a history correctly:
// it sends what follows the newest summary.
type Condensation struct {
	Cover []int // indexes of the covered messages, in order
	Sent  int   // how many of them were sent until now
	At    int   // the summary goes before this message; the length of the list = at its end
}

// PlanCondense chooses what to condense. As many of the newest messages stay as have at most keep bytes together; a
// call stays with its results. Unanswered messages stay at any size: a user's words at the end, and calls without
// results.
func PlanCondense(messages [][]byte, keep int) (Condensation, error) {
	all := readAll(messages)
	at := tailStart(messages, all, keep)
	from := max(0, lastSummary(all))
	_, markers := tagIDs(all)
	summaries := livingSummaries(all)
	c := Condensation{At: at}
	for i, t := range all[:at] {
		if summaries[t.condensed] {
			continue // an older summary covers it, and comes before it
		}
		c.Cover = append(c.Cover, i)
		if i >= from && !t.marker && !markers[t.truncated] {
			c.Sent++
		}
	}
	least := 2
	if lastSummary(all) >= 0 {
		least = 3
	}
	if c.Sent < least || lastSummary(all) >= at {
		return Condensation{}, ErrTooShort
	}
	return c, nil
}

func livingSummaries(all []tags) map[string]bool {
	summaries, _ := tagIDs(all)
	return summaries
}

// tailStart is where the messages begin that stay.
func tailStart(messages [][]byte, all []tags, keep int) int {
	at, size := len(all), 0
	if n := len(all) - 1; n >= 0 && (all[n].role == "assistant" || canBegin(all[n])) {
		at = n
		size, _ = Weigh(messages[n])
	}
	for i := at - 1; i > 0; i-- {
		n, images := Weigh(messages[i])
		if size += n + images*imageBytes; size > keep {
			break
		}
		if all[i].role == "assistant" && !all[i].summary || canBegin(all[i]) {
			at = i
		}
	}
	return at
}

// imageBytes is about what an image weighs, in bytes of text.
const imageBytes = 5600

// canBegin reports whether a user message can be the first one that is sent: it answers no call.
func canBegin(t tags) bool {
	if t.role != "user" || t.summary || t.marker {
		return false
	}
	if esjson.TypeOf(t.content) != esjson.TypeArray {
		return t.content != nil
	}
	for b := range esjson.Array(t.content) {
		if blockType(b) == "tool_result" {
			return false
		}
	}
	return true
}

// Summary is what replaces condensed messages.
type Summary struct {
	ID        string   // its condenseId
	Text      string   // the model's words
	Reminders []string // texts that hold in addition to the summary
	Ending    string   // a last text, such as the environment; "" = none
}

// Message is the summary as Roo stores it: a user message, with a time between those
// of its neighbours.
func (c Condensation) Message(messages [][]byte, s Summary, now int64) []byte {
	content := [][]byte{textOf("## Conversation Summary\n" + s.Text)}
	for _, r := range s.Reminders {
		content = append(content, textOf("<system-reminder>\n"+r+"\n</system-reminder>"))
	}
	if s.Ending != "" {
		content = append(content, textOf(s.Ending))
	}
	ts := float64(now)
	if c.At < len(messages) {
		if f, ok := num(readTags(messages[c.At]).ts); ok {
			ts = f - 1
		}
	} else if n := len(messages); n > 0 {
		if f, ok := num(readTags(messages[n-1]).ts); ok {
			ts = math.Max(f+1, 0)
		}
	}
	var o esjson.Object
	o.String("role", "user")
	o.Raw("content", array(content))
	o.Float("ts", ts)
	o.Bool("isSummary", true)
	o.String("condenseId", s.ID)
	return o.Bytes()
}

// With is the list with the summary in it: the content of Roo's file.
func (c Condensation) With(messages [][]byte, summary []byte) [][]byte {
	id := esjson.Quote(nil, readTags(summary).condenseID)
	out := make([][]byte, 0, len(messages)+1)
	cover := c.Cover
	for i, m := range messages {
		if i == c.At {
			out = append(out, summary)
		}
		if len(cover) > 0 && cover[0] == i {
			cover, m = cover[1:], esjson.Set(m, "condenseParent", id)
		}
		out = append(out, m)
	}
	if c.At == len(messages) {
		out = append(out, summary)
	}
	return out
}

var command = regexp.MustCompile(`(?s)<command[ >].*?</command>`)

// Commands are the expanded slash commands in a history's first message: they hold for the whole task. Those of one
// name count once.
func Commands(messages [][]byte) []string {
	if len(messages) == 0 {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, b := range blocks(readTags(messages[0]).content) {
		for _, text := range command.FindAllString(memberStr(b, "text"), -1) {
			head, _, _ := strings.Cut(text, ">")
			if !seen[head] {
				seen[head] = true
				out = append(out, text)
			}
		}
	}
	return out
}
