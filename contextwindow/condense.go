package contextwindow

import (
	"errors"
	"math"
	"regexp"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// ErrTooShort says that a history holds nothing that is worth a summary: one
// message, or a summary and what answered it.
var ErrTooShort = errors.New("there is too little before the newest messages to condense")

// Condensation is which messages a summary is to stand for, and where it is put.
//
// The newest messages stay as they are, unlike with Roo, whose summary stands for
// everything: the model goes on with the words and results that it was about to use,
// and not with a tale of them. Roo reads such a history right: it sends what follows
// the newest summary.
type Condensation struct {
	Cover []int // indexes of the messages that it stands for, in order
	Sent  int   // how many of them were sent until now
	At    int   // the summary stands before this message; the length of the list = at its end
}

// PlanCondense chooses what to condense. Of the newest messages as many stay as have
// at most keep bytes together; a call stays with its results. What is still to be
// answered stays whatever its size: a person's words at the end, and calls without
// results.
func PlanCondense(messages [][]byte, keep int) (Condensation, error) {
	all := readAll(messages)
	at := tail(messages, all, keep)
	from := max(0, lastSummary(all))
	_, markers := tagIDs(all)
	summaries := livingSummaries(all)
	c := Condensation{At: at}
	for i, t := range all[:at] {
		if summaries[t.condensed] {
			continue // an older summary stands for it, and comes back before it
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

// tail is where the messages begin that stay.
func tail(messages [][]byte, all []tags, keep int) int {
	at, size := len(all), 0
	if n := len(all) - 1; n >= 0 && (all[n].role == "assistant" || begins(all[n])) {
		at = n
		size, _ = Weigh(messages[n])
	}
	for i := at - 1; i > 0; i-- {
		n, images := Weigh(messages[i])
		if size += n + images*imageBytes; size > keep {
			break
		}
		if all[i].role == "assistant" && !all[i].summary || begins(all[i]) {
			at = i
		}
	}
	return at
}

// imageBytes is about what an image weighs, in bytes of text.
const imageBytes = 5600

// begins reports whether a user message can be the first one that is sent: it answers
// no call.
func begins(t tags) bool {
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

// Summary is what stands for condensed messages.
type Summary struct {
	ID        string   // its condenseId
	Text      string   // the model's words
	Reminders []string // what holds on whatever the summary says, each a text of its own
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
		if f, ok := num(read(messages[c.At]).ts); ok {
			ts = f - 1
		}
	} else if n := len(messages); n > 0 {
		if f, ok := num(read(messages[n-1]).ts); ok {
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

// With is the list as it stands with the summary in it: what Roo's file holds.
func (c Condensation) With(messages [][]byte, summary []byte) [][]byte {
	id := esjson.Quote(nil, read(summary).condenseID)
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

// Commands are the slash commands that a history's first message holds, as they were
// spelled out for the model: they hold for the whole task. Those of one name count
// once.
func Commands(messages [][]byte) []string {
	if len(messages) == 0 {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, b := range blocks(read(messages[0]).content) {
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
