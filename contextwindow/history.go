package contextwindow

import "github.com/roost-dev/roost/esjson"

// Effective is what of a stored history is sent: everything from the newest summary on, or, without one, everything
// that no existing summary or truncation marker hides. Tool results whose calls come before the summary are left out,
// and so are messages that become empty by that.
func Effective(messages [][]byte) [][]byte {
	all := readAll(messages)
	from := lastSummary(all)
	if from < 0 {
		// Without a summary no condenseParent refers to one, so it hides nothing.
		_, markers := tagIDs(all)
		out := make([][]byte, 0, len(messages))
		for i, t := range all {
			if !markers[t.truncated] {
				out = append(out, messages[i])
			}
		}
		return out
	}
	calls := make(map[string]bool)
	for _, t := range all[from:] {
		if t.role == "assistant" {
			for _, id := range toolUseIDs(t.content) {
				calls[id] = id != ""
			}
		}
	}
	var out [][]byte
	var kept []tags
	for i := from; i < len(messages); i++ {
		m, ok := dropOrphans(messages[i], all[i], calls)
		if ok {
			out, kept = append(out, m), append(kept, all[i])
		}
	}
	_, markers := tagIDs(kept)
	n := 0
	for i, m := range out {
		if !markers[kept[i].truncated] {
			out[n] = m
			n++
		}
	}
	return out[:n]
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
		if blockType(b) != "tool_result" || calls[memberStr(b, "tool_use_id")] {
			keep = append(keep, b)
		}
	}
	switch len(keep) {
	case 0:
		return nil, false
	case n:
		return raw, true
	}
	return esjson.Set(raw, "content", array(keep)), true
}

func lastSummary(all []tags) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].summary {
			return i
		}
	}
	return -1
}

// tagIDs are the ids of the summaries and markers that exist. The empty id is in
// neither set.
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
