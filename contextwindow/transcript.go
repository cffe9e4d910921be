package contextwindow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// Transcript renders a history as one text, for a model that cannot be sent the history itself: the history is too long
// for it, or holds calls of tools that it is not given. The text has at most about room bytes: calls and results are
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
	out := append([]string{}, parts[:first]...)
	out = append(out, fmt.Sprintf("[%d messages are left out here]", last-first))
	return append(out, parts[last:]...)
}

// messageText is one message as text; "" when it has no content.
func messageText(raw []byte, limit int) string {
	t := readTags(raw)
	who := "User"
	if t.role == "assistant" {
		who = "Assistant"
	}
	var parts []string
	for _, b := range blocks(t.content) {
		if text := blockText(b, limit); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return who + ":\n" + strings.Join(parts, "\n")
}

func blockText(b []byte, limit int) string {
	switch blockType(b) {
	case "text":
		return cutMiddle(memberStr(b, "text"), limit)
	case "tool_use":
		input, _ := esjson.Get(b, "input")
		lines := []string{"[Tool Use: " + memberStr(b, "name") + "]"}
		if esjson.TypeOf(input) == esjson.TypeObject {
			for key, val := range esjson.Members(input) {
				text := string(val)
				if esjson.TypeOf(val) == esjson.TypeString {
					text = str(val)
				}
				lines = append(lines, key+": "+cutMiddle(text, limit))
			}
		}
		return strings.Join(lines, "\n")
	case "tool_result":
		head := "[Tool Result]"
		if v, _ := esjson.Get(b, "is_error"); string(v) == "true" {
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

// cutMiddle cuts a text in its middle.
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
