package contextwindow

import (
	"github.com/roost-dev/roost/esjson"
)

// Interrupted is the result of a call that never got one.
const Interrupted = "Tool execution was interrupted before completion."

// RepairResults makes the tool results of a user message fit the calls of the
// last assistant message in history, for storing: one result for each call,
// results first. Results with wrong ids are matched by their place, as Roo does;
// unlike Roo, one that has no such place answers the next call that would
// otherwise get a placeholder, instead of being thrown away. A message that fits
// is returned as it is.
func RepairResults(message []byte, history [][]byte) []byte {
	t := read(message)
	if t.role != "user" || esjson.TypeOf(t.content) != esjson.TypeArray {
		return message
	}
	var uses []string
	for i := len(history) - 1; i >= 0; i-- {
		if h := read(history[i]); h.role == "assistant" {
			uses = toolUseIDs(h.content)
			break
		}
	}
	if len(uses) == 0 {
		return message
	}
	known := make(map[string]bool, len(uses))
	for _, id := range uses {
		known[id] = true
	}
	results, others := splitResults(t.content)
	used := make(map[string]bool, len(uses))
	type late struct{ at int }
	var spare []late
	fixed := make([][]byte, len(results))
	for k, r := range results {
		id := memberStr(r, "tool_use_id")
		switch {
		case known[id] && !used[id]:
			used[id], fixed[k] = true, r
		case k < len(uses) && !used[uses[k]]:
			used[uses[k]], fixed[k] = true, setID(r, uses[k])
		default:
			spare = append(spare, late{k})
		}
	}
	var front [][]byte
	for _, id := range uses {
		if used[id] {
			continue
		}
		used[id] = true
		if len(spare) > 0 {
			fixed[spare[0].at], spare = setID(results[spare[0].at], id), spare[1:]
			continue
		}
		front = append(front, resultBlock(id, Interrupted))
	}
	for _, r := range fixed {
		if r != nil {
			front = append(front, r)
		}
	}
	content := array(append(front, others...))
	if esjson.Equal(content, t.content) {
		return message
	}
	return esjson.Set(message, "content", content)
}

// splitResults parts the tool results of a content array from its other blocks.
// Of results with the same id the first one stays.
func splitResults(content []byte) (results, others [][]byte) {
	seen := make(map[string]bool)
	for b := range esjson.Array(content) {
		if blockType(b) != "tool_result" {
			others = append(others, b)
			continue
		}
		if id := memberStr(b, "tool_use_id"); !seen[id] {
			seen[id] = true
			results = append(results, b)
		}
	}
	return results, others
}

func setID(result []byte, id string) []byte {
	return esjson.Set(result, "tool_use_id", esjson.Quote(nil, id))
}

// Append adds a user message to a stored history, with ts now (Unix
// milliseconds). If what is sent of the history ends with an assistant message,
// the results are repaired against it; otherwise results have no call to answer
// and become text. history itself is not changed.
func Append(history [][]byte, message []byte, now int64) [][]byte {
	t := read(message)
	visible := Effective(history)
	if t.role == "user" {
		if len(visible) > 0 && read(visible[len(visible)-1]).role == "assistant" {
			message = RepairResults(message, visible)
		} else if esjson.TypeOf(t.content) == esjson.TypeArray {
			message = resultsToText(message, t.content)
		}
	}
	message = esjson.Set(message, "ts", esjson.Number(nil, float64(now)))
	return append(history[:len(history):len(history)], message)
}

func resultsToText(message, content []byte) []byte {
	var out [][]byte
	changed := false
	for b := range esjson.Array(content) {
		if blockType(b) == "tool_result" {
			b, changed = textOf("Tool result:\n"+resultText(b)), true
		}
		out = append(out, b)
	}
	if !changed {
		return message
	}
	return esjson.Set(message, "content", array(out))
}

func resultText(result []byte) string {
	content, _ := esjson.Get(result, "content")
	if esjson.TypeOf(content) == esjson.TypeString {
		return str(content)
	}
	text, err := esjson.Stringify(nil, content)
	if err != nil {
		return "(no content)"
	}
	return string(text)
}
