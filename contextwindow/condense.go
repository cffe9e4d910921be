package contextwindow

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Effective returns the messages of a stored history that are sent: everything from the newest summary on, or,
// without a summary, everything that no existing summary or truncation marker hides. It leaves out tool results whose
// calls come before the summary, and messages that become empty by that.
func Effective(messages [][]byte) [][]byte {
	kept := readAll(messages)
	// Without a summary no condenseParent refers to one, so it hides nothing.
	if from := lastSummary(kept); from >= 0 {
		messages, kept = fromSummary(messages[from:], kept[from:])
	}
	_, markers := tagIDs(kept)
	out := make([][]byte, 0, len(messages))
	for i, m := range messages {
		if !markers[kept[i].truncated] {
			out = append(out, m)
		}
	}
	return out
}

// fromSummary returns the messages from a summary on, without results of earlier calls, and their tags.
func fromSummary(messages [][]byte, all []tags) (out [][]byte, kept []tags) {
	calls := make(map[string]bool)
	for _, t := range all {
		if t.role == "assistant" {
			for _, b := range blocks(t.content) {
				if id := esjson.TextOf(b, "id"); id != "" && esjson.TextOf(b, "type") == "tool_use" {
					calls[id] = true
				}
			}
		}
	}
	for i, raw := range messages {
		if m, ok := dropOrphans(raw, all[i], calls); ok {
			out, kept = append(out, m), append(kept, all[i])
		}
	}
	return out, kept
}

// dropOrphans removes results of unknown calls from a user message; ok is false when nothing is left of it.
func dropOrphans(raw []byte, t tags, calls map[string]bool) (out []byte, ok bool) {
	if t.role != "user" || esjson.TypeOf(t.content) != esjson.TypeArray {
		return raw, true
	}
	var keep [][]byte
	n := 0
	for b := range esjson.Array(t.content) {
		n++
		if esjson.TextOf(b, "type") != "tool_result" || calls[esjson.TextOf(b, "tool_use_id")] {
			keep = append(keep, b)
		}
	}
	switch len(keep) {
	case 0:
		return nil, false
	case n:
		return raw, true
	}
	return esjson.Set(raw, "content", esjson.List(keep)), true
}

// lastSummary returns the index of the newest summary, -1 when there is none.
func lastSummary(all []tags) int {
	for i, t := range slices.Backward(all) {
		if t.summary {
			return i
		}
	}
	return -1
}

// tagIDs returns the ids of the summaries and markers that exist. The empty id is in neither set.
func tagIDs(all []tags) (summaries, markers map[string]bool) {
	summaries, markers = make(map[string]bool), make(map[string]bool)
	for _, t := range all {
		if t.summary && t.condenseID != "" {
			summaries[t.condenseID] = true
		}
		if t.marker && t.truncationID != "" {
			markers[t.truncationID] = true
		}
	}
	return summaries, markers
}

// ErrTooShort: a history holds nothing worth a summary: only one message, or a summary and its answer.
var ErrTooShort = errors.New("there is too little before the newest messages to condense")

// Condensation is the plan of a summary: the messages that it covers, and its place.
//
// The newest messages stay as they are, so that the model continues with the words and results that it was about to
// use, and not with a description of them; Roo's summary covers everything. Roo reads such a history correctly: it
// sends what follows the newest summary.
type Condensation struct {
	Cover []int // indexes of the covered messages, in order
	Sent  int   // number of them that were sent until now
	At    int   // the summary goes before this message; the length of the list = at its end
}

// PlanCondense chooses what to condense. It keeps as many of the newest messages as fit in keep bytes; a call stays
// with its results. Unanswered messages stay at any size: a user's words at the end, and calls without results.
func PlanCondense(messages [][]byte, keep int) (Condensation, error) {
	all := readAll(messages)
	at := tailStart(messages, all, keep)
	from := max(0, lastSummary(all))
	summaries, markers := tagIDs(all)
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

// tailStart returns the index of the first message that stays.
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

// imageBytes is the approximate size of an image, in bytes of text.
const imageBytes = 5600

// canBegin reports whether a user message can be sent first: it answers no call.
func canBegin(t tags) bool {
	if t.role != "user" || t.summary || t.marker {
		return false
	}
	if esjson.TypeOf(t.content) != esjson.TypeArray {
		return t.content != nil
	}
	for b := range esjson.Array(t.content) {
		if esjson.TextOf(b, "type") == "tool_result" {
			return false
		}
	}
	return true
}

// Summary replaces condensed messages.
type Summary struct {
	ID        string   // its condenseId
	Text      string   // the model's words
	Reminders []string // texts that hold in addition to the summary
	Ending    string   // a last text, such as the environment; "" = none
}

// Message returns the summary as Roo stores it: a user message with a time between those of its neighbours.
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
		if f, ok := esjson.Double(readTags(messages[c.At]).ts); ok {
			ts = f - 1
		}
	} else if n := len(messages); n > 0 {
		if f, ok := esjson.Double(readTags(messages[n-1]).ts); ok {
			ts = math.Max(f+1, 0)
		}
	}
	return esjson.ObjectOf("role", "user", "content", esjson.List(content), "ts", ts, "isSummary", true,
		"condenseId", s.ID)
}

// With returns the list with the summary in it: the content of Roo's file.
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

var command = lazyregexp.New(`(?s)<command[ >].*?</command>`)

// Commands returns the expanded slash commands in a history's first message: they hold for the whole task. Of several
// with one name it returns one.
func Commands(messages [][]byte) []string {
	if len(messages) == 0 {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, b := range blocks(readTags(messages[0]).content) {
		for _, text := range command().FindAllString(esjson.TextOf(b, "text"), -1) {
			head, _, _ := strings.Cut(text, ">")
			if !seen[head] {
				seen[head] = true
				out = append(out, text)
			}
		}
	}
	return out
}

// Cut is the plan of a truncation: the messages it hides, and the place of the marker that replaces them.
type Cut struct {
	Hide   []int // indexes of the hidden messages, in order
	At     int   // the marker goes before this message; the length of the list = at its end
	ID     string
	Marker []byte
}

// CutOldest hides the given fraction of the visible messages, oldest first: an even number of them, never the first
// one. id is the marker's truncationId; now (Unix milliseconds) is its ts when no message follows it. It hides
// nothing when too few messages are left.
//
// Only messages that are still sent count as visible. Roo, after a condense, hides messages that the summary hides
// already, and the request stays as long as it was.
func CutOldest(messages [][]byte, fraction float64, id string, now int64) Cut {
	all := readAll(messages)
	var visible []int
	for i := max(0, lastSummary(all)); i < len(all); i++ {
		if all[i].truncated == "" && !all[i].marker {
			visible = append(visible, i)
		}
	}
	removed := int(math.Floor(float64(len(visible)-1) * fraction))
	removed -= removed % 2
	if removed <= 0 || removed >= len(visible) {
		return Cut{}
	}
	c := Cut{Hide: visible[1 : removed+1], At: len(messages), ID: id}
	ts := float64(now) - 1
	if removed+1 < len(visible) {
		c.At = visible[removed+1]
		if f, ok := esjson.Double(all[c.At].ts); ok {
			ts = f - 1
		}
	}
	c.Marker = esjson.ObjectOf("role", "user",
		"content", "[Sliding window truncation: "+strconv.Itoa(removed)+" messages hidden to reduce context]",
		"ts", ts, "isTruncationMarker", true, "truncationId", id)
	return c
}

// Transcript renders a history as one text, for a model that cannot take the history itself: the history is too long,
// or holds calls of tools that the model is not given. The text has at most about room bytes: calls and results are
// cut in their middle first, all to the same length, then whole messages in the middle are left out.
func Transcript(messages [][]byte, room int) string {
	var parts []string
	for limit := room; ; limit /= 2 {
		parts = parts[:0]
		total := 0
		for _, m := range messages {
			if t := messageText(m, max(limit, leastPart)); t != "" {
				parts = append(parts, t)
				total += len(t) + 2
			}
		}
		if total <= room {
			return strings.Join(parts, "\n\n")
		}
		if limit <= leastPart {
			return strings.Join(dropMiddle(parts, room), "\n\n")
		}
	}
}

// leastPart is the shortest length to which a part of a message is cut, in bytes.
const leastPart = 200

// dropMiddle leaves out parts from the middle: the beginning holds the task, the end its current state.
func dropMiddle(parts []string, room int) []string {
	first := 0
	size := 0
	for first < len(parts) && size+len(parts[first]) <= room/4 {
		size += len(parts[first]) + 2
		first++
	}
	last := len(parts)
	for last > first && size+len(parts[last-1]) <= room {
		size += len(parts[last-1]) + 2
		last--
	}
	if last == first {
		return parts
	}
	note := fmt.Sprintf("[%d messages are left out here]", last-first)
	return slices.Concat(parts[:first], []string{note}, parts[last:])
}

// messageText returns one message as text; "" when it has no content.
func messageText(raw []byte, limit int) string {
	t := readTags(raw)
	who := "User"
	if t.role == "assistant" {
		who = "Assistant"
	}
	parts := api.Some(blocks(t.content), func(b []byte) (string, bool) {
		text := blockText(b, limit)
		return text, text != ""
	})
	if len(parts) == 0 {
		return ""
	}
	return who + ":\n" + strings.Join(parts, "\n")
}

func blockText(b []byte, limit int) string {
	switch esjson.TextOf(b, "type") {
	case "text":
		return cutMiddle(esjson.TextOf(b, "text"), limit)
	case "tool_use":
		input, _ := esjson.Get(b, "input")
		lines := []string{"[Tool Use: " + esjson.TextOf(b, "name") + "]"}
		if esjson.TypeOf(input) == esjson.TypeObject {
			for key, val := range esjson.Members(input) {
				text := string(val)
				if esjson.TypeOf(val) == esjson.TypeString {
					text = esjson.Text(val)
				}
				lines = append(lines, key+": "+cutMiddle(text, limit))
			}
		}
		return strings.Join(lines, "\n")
	case "tool_result":
		head := "[Tool Result]"
		if esjson.IsTrue(b, "is_error") {
			head = "[Tool Result (Error)]"
		}
		content, _ := esjson.Get(b, "content")
		lines := []string{head}
		parts := blocks(content)
		if esjson.TypeOf(content) == esjson.TypeArray {
			parts = ResultParts(content)
		}
		for _, inner := range parts {
			if text := blockText(inner, limit); text != "" {
				lines = append(lines, text)
			}
		}
		return strings.Join(lines, "\n")
	case "image", "image_url":
		return "[image]"
	}
	return "" // thoughts are the model's own
}

// cutMiddle shortens a text in its middle.
func cutMiddle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit/2, len(s)-limit/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", s[:head], tail-head, s[tail:])
}
