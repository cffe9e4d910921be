package contextwindow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/llm"
)

// What Roo would send goes through Build as well: it mends what a provider would refuse,
// and that is not under test here. So what is held against each other is the request of
// what is stored and the request of what Roo makes of that.
func TestVectorsEffectiveHistory(t *testing.T) {
	conformance.Run(t, "effective_history", func(t *testing.T, v conformance.Case) (choice bool) {
		in, want := v.Input.Get("messages").List(), v.Want.Get("messages").List()
		fn := v.Input.Str("fn")
		switch fn {
		case "effective":
			v.Same(t, fn, conformance.Array(Effective(in)), conformance.Array(want))
			return asSent(t, in, want)
		case "since_last_summary", "request_shape":
			return asSent(t, in, want)
		case "merge_users": // of what is sent already: nothing is hidden any more
			in, want = untagged(in), untagged(want)
			sameRequest(t, in, want)
		case "cleanup":
			v.Same(t, fn, conformance.Array(Cleaned(t, in)), conformance.Array(want))
			sameRequest(t, in, want)
		case "truncate":
			got, removed := Truncated(t, in, v.Input.Float("fraction"), v.Input.Str("new_id"), v.Input.Int("now", 0))
			if hidesHidden(in) {
				checkTruncate(t, v, got, removed)
				return true
			}
			if want := v.Want.Int("messages_removed", -1); want != int64(removed) {
				t.Errorf("removed %d, want %d", removed, want)
			}
			v.Same(t, fn, conformance.Array(got), conformance.Array(want))
			sameRequest(t, got, want)
		default:
			t.Fatalf("unknown function %q", fn)
		}
		return false
	})
}

// asSent: what is sent of a history is what Roo would send. It knows one thing more: a
// result behind a summary whose call stands before it is told as text, where Roo drops it
// and the model asks for the same again.
func asSent(t *testing.T, in, want [][]byte) (choice bool) {
	t.Helper()
	told := resultsBehindSummary(in, want)
	if len(told) == 0 {
		sameRequest(t, in, want)
		return false
	}
	sent := request(t, in)
	for _, text := range told {
		if !strings.Contains(sent, string(esjson.Quote(nil, "Tool result:\n"+text))) {
			t.Errorf("the result %q is not told: %.1500s", text, sent)
		}
	}
	sameRequest(t, Effective(in), want)
	return true
}

// resultsBehindSummary are the results behind the newest summary that answer a call before it,
// and that Roo drops.
func resultsBehindSummary(in, want [][]byte) (texts []string) {
	var kept []string // what Roo sends all the same
	for _, m := range want {
		content, _ := esjson.Get(m, "content")
		for b := range esjson.Array(content) {
			of, _ := esjson.GetString(b, "tool_use_id")
			kept = append(kept, of)
		}
	}
	var old, calls []string
	for _, m := range in {
		if summary, _ := esjson.GetBool(m, "isSummary"); summary {
			old, calls, texts = append(old, calls...), nil, nil
		}
		content, _ := esjson.Get(m, "content")
		for b := range esjson.Array(content) {
			id, _ := esjson.GetString(b, "id")
			of, _ := esjson.GetString(b, "tool_use_id")
			switch kind, _ := esjson.GetString(b, "type"); {
			case kind == "tool_use":
				calls = append(calls, id)
			case kind == "tool_result" && !slices.Contains(calls, of) && slices.Contains(old, of) && !slices.Contains(kept, of):
				texts = append(texts, resultText(b))
			}
		}
	}
	return texts
}

// sameRequest: two histories make one request.
func sameRequest(t *testing.T, a, b [][]byte) {
	t.Helper()
	if got, want := request(t, a), request(t, b); got != want {
		t.Errorf("the request differs\n got %.1500s\nwant %.1500s", got, want)
	}
}

// request is what is sent of a history, with a string as the one text that it is.
func request(t *testing.T, history [][]byte) string {
	t.Helper()
	messages, _, err := Build(history, Options{})
	if err != nil && err != ErrEmpty {
		t.Fatal(err)
	}
	saysAll(t, history, messages)
	for i, m := range messages {
		messages[i].Content = esjson.List(blocks(m.Content))
	}
	return show(messages)
}

func untagged(messages [][]byte) (out [][]byte) {
	for _, m := range messages {
		for _, key := range []string{"condenseParent", "truncationParent", "isSummary", "isTruncationMarker"} {
			m = esjson.Remove(m, key)
		}
		out = append(out, m)
	}
	return out
}

// hidesHidden: messages that a summary hides already would count as visible.
func hidesHidden(in [][]byte) bool {
	all := readAll(in)
	for _, m := range all[:max(0, lastSummary(all))] {
		if m.truncated == "" && !m.marker {
			return true
		}
	}
	return false
}

// checkTruncate: of what is still sent, from the summary on, so many messages are hidden as
// Roo hides of a history without a condense. Everything else stays.
func checkTruncate(t *testing.T, v conformance.Case, got [][]byte, removed int) {
	t.Helper()
	in, id := v.Input.Get("messages").List(), v.Input.Str("new_id")
	var sent []int
	for i, m := range in {
		if summary, _ := esjson.GetBool(m, "isSummary"); summary {
			sent = nil
		}
		_, hidden := esjson.GetString(m, "truncationParent")
		if marker, _ := esjson.GetBool(m, "isTruncationMarker"); !hidden && !marker {
			sent = append(sent, i)
		}
	}
	want := int(float64(len(sent)-1)*v.Input.Float("fraction")) / 2 * 2
	if want <= 0 {
		want = 0
	}
	if removed != want {
		t.Errorf("removed %d of the %d messages that are sent, want %d", removed, len(sent), want)
	}
	if want == 0 {
		v.Same(t, "nothing is hidden", conformance.Array(got), conformance.Array(in))
		return
	}
	left := [][]byte{} // without the marker
	for _, m := range got {
		if of, _ := esjson.GetString(m, "truncationId"); of != id {
			left = append(left, m)
		}
	}
	wanted := append([][]byte{}, in...)
	for _, i := range sent[1 : want+1] {
		wanted[i] = esjson.Set(wanted[i], "truncationParent", esjson.Quote(nil, id))
	}
	v.Same(t, "what is hidden", conformance.Array(left), conformance.Array(wanted))
	if len(left)+1 != len(got) {
		t.Errorf("%d markers", len(got)-len(left))
	}
}

// says is what is sent of the words and calls of a history, as the case itself has it: from
// the newest summary on, without what a tag hides.
func says(history [][]byte) (out []string) {
	for _, m := range history {
		if summary, _ := esjson.GetBool(m, "isSummary"); summary {
			out = nil
		}
		_, condensed := esjson.GetString(m, "condenseParent")
		_, truncated := esjson.GetString(m, "truncationParent")
		if role, _ := esjson.GetString(m, "role"); !condensed && !truncated && (role == "user" || role == "assistant") {
			content, _ := esjson.Get(m, "content")
			out = append(out, wordsAndCalls(role, content)...)
		}
	}
	return out
}

func wordsAndCalls(role string, content []byte) (out []string) {
	if text, err := esjson.Unquote(content); err == nil && strings.TrimSpace(text) != "" {
		return []string{role + " says " + text}
	}
	for b := range esjson.Array(content) {
		text, _ := esjson.GetString(b, "text")
		switch kind, _ := esjson.GetString(b, "type"); {
		case kind == "text" && strings.TrimSpace(text) != "":
			out = append(out, role+" says "+text)
		case kind == "tool_use":
			name, _ := esjson.GetString(b, "name")
			out = append(out, role+" calls "+name)
		}
	}
	return out
}

// saysAll: every word and call of a history is in its request, in order.
func saysAll(t *testing.T, history [][]byte, messages []llm.Message) {
	t.Helper()
	var sent []string
	for _, m := range messages {
		sent = append(sent, wordsAndCalls(m.Role, m.Content)...)
	}
	at := 0
	for _, w := range says(history) {
		i := slices.Index(sent[at:], w)
		if i < 0 {
			t.Errorf("%q is not sent, or not in its place, of\n%.1500s", w, strings.Join(sent, "\n"))
			return
		}
		at += i + 1
	}
}

// Roo repairs what it stores; here what is stored stays, and the request is right. Where
// results and calls can be matched by their ids the two requests are one. Else we choose:
// Roo gives a result with a wrong id to the call in its place, and drops what has none;
// ours is told as text, and its call as one that was interrupted.
func TestVectorsToolResultRepair(t *testing.T) {
	conformance.Run(t, "tool_result_repair", func(t *testing.T, v conformance.Case) (choice bool) {
		history, message := v.Input.Get("history").List(), v.Input.Get("message")
		stored := append(history[:len(history):len(history)], message)
		repaired := v.Want.Get("history").List()
		if v.Input.Str("fn") == "validate" {
			repaired = append(history[:len(history):len(history)], v.Want.Get("message"))
		}
		answers(t, history, message)
		got, want := request(t, stored), request(t, repaired)
		if got == want {
			return false
		}
		if !wrongIDs(history, message) && !between(history) {
			t.Errorf("the request differs without a rule\n got %.1500s\nwant %.1500s", got, want)
		}
		return true
	})
}

// wrongIDs: a result answers no call of the model's last message, or one that was
// answered before it.
func wrongIDs(history [][]byte, message []byte) bool {
	calls := map[string]bool{}
	for _, m := range history {
		if h := readTags(m); h.role == "assistant" {
			clear(calls)
			for _, id := range toolUseIDs(h.content) {
				calls[id] = true
			}
		}
	}
	for b := range esjson.Array(readTags(message).content) {
		if esjson.TextOf(b, "type") == "tool_result" {
			id := esjson.TextOf(b, "tool_use_id")
			if !calls[id] {
				return true
			}
			delete(calls, id)
		}
	}
	return false
}

// between: a message stands behind the last one of the model already.
func between(history [][]byte) bool {
	return len(history) > 0 && readTags(history[len(history)-1]).role == "user"
}

// answers: in the request each call of the model's last message has its own result, which is
// the first one that has its id, or is told as interrupted; a result that fits no call is told
// as text.
func answers(t *testing.T, history [][]byte, message []byte) {
	t.Helper()
	var calls []string
	var behind [][]byte // what stands behind the calls
	before := ""
	for _, m := range append(history[:len(history):len(history)], message) {
		content, _ := esjson.Get(m, "content")
		role, _ := esjson.GetString(m, "role")
		summary, _ := esjson.GetBool(m, "isSummary") // hides the calls before it
		if role == "assistant" && before != role || summary {
			calls, behind = nil, nil
		}
		before = role
		for b := range esjson.Array(content) {
			switch kind, _ := esjson.GetString(b, "type"); {
			case kind == "tool_use" && role == "assistant":
				id, _ := esjson.GetString(b, "id")
				calls = append(calls, id)
			case kind == "tool_result" && role == "user":
				behind = append(behind, b)
			}
		}
	}
	messages, _, err := Build(append(history[:len(history):len(history)], message), Options{})
	if err != nil || len(messages) == 0 {
		t.Fatal(err)
	}
	got, texts := map[string]string{}, ""
	for b := range esjson.Array(messages[len(messages)-1].Content) {
		text, _ := esjson.GetString(b, "text")
		texts += text + "\n"
		if kind, _ := esjson.GetString(b, "type"); kind == "tool_result" {
			id, _ := esjson.GetString(b, "tool_use_id")
			got[id] = resultText(b)
		}
	}
	want := map[string]string{}
	for _, b := range behind {
		id, _ := esjson.GetString(b, "tool_use_id")
		switch _, have := want[id]; {
		case have:
		case slices.Contains(calls, id):
			want[id] = resultText(b)
		case !strings.Contains(texts, "Tool result:\n"+resultText(b)):
			t.Errorf("%s answers no call, and is not told in %q", b, texts)
		}
	}
	for _, id := range calls {
		if _, have := want[id]; !have {
			want[id] = "Tool execution was interrupted before completion."
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
}

// resultText are the words of a result.
func resultText(b []byte) string {
	content, _ := esjson.Get(b, "content")
	if text, err := esjson.Unquote(content); err == nil {
		return text
	}
	var words []string
	for part := range esjson.Array(content) {
		text, _ := esjson.GetString(part, "text")
		words = append(words, text)
	}
	return strings.Join(words, "\n")
}

// toolUseIDs are the ids of the calls in a message's content, in order.
func toolUseIDs(content []byte) (ids []string) {
	for _, b := range blocks(content) {
		if esjson.TextOf(b, "type") == "tool_use" {
			ids = append(ids, esjson.TextOf(b, "id"))
		}
	}
	return ids
}
