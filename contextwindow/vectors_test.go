package contextwindow

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
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
				checkTruncate(t, in, got, removed)
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
	if told := request(t, in); told == request(t, want) || !strings.Contains(told, "Tool result:") {
		sameRequest(t, in, want)
		return false
	}
	sameRequest(t, Effective(in), want)
	return true
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
	for i, m := range messages {
		messages[i].Content = array(blocks(m.Content))
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

// checkTruncate: what was removed is gone from what is sent, and nothing else.
func checkTruncate(t *testing.T, in, got [][]byte, removed int) {
	before, after := len(Effective(in)), len(Effective(got))
	if removed == 0 {
		if len(in) != len(got) {
			t.Errorf("%d messages became %d", len(in), len(got))
		}
		return
	}
	// The marker is new; orphaned results may take a message with them.
	if after > before-removed+1 || len(got) != len(in)+1 {
		t.Errorf("%d sent before, %d after, %d removed", before, after, removed)
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
		got, want := request(t, stored), request(t, repaired)
		if got == want {
			return false
		}
		if !wrongIDs(history, message) {
			t.Errorf("the request differs without a rule\n got %.1500s\nwant %.1500s", got, want)
		}
		for b := range esjson.Array(read(message).content) {
			text, _ := esjson.Get(b, "text")
			if blockType(b) == "tool_result" {
				text, _ = esjson.Get(b, "content")
			}
			raw, quoted := strings.Trim(string(text), `"`), strings.Trim(string(esjson.Quote(nil, str(text))), `"`)
			if !strings.Contains(got, raw) && !strings.Contains(got, quoted) && !twice(message, b) {
				t.Errorf("%s is lost: %.1500s", b, got)
			}
		}
		return true
	})
}

// wrongIDs: a result answers no call of the model's last message, or one that was
// answered before it.
func wrongIDs(history [][]byte, message []byte) bool {
	calls := map[string]bool{}
	for _, m := range history {
		if h := read(m); h.role == "assistant" {
			clear(calls)
			for _, id := range toolUseIDs(h.content) {
				calls[id] = true
			}
		}
	}
	for b := range esjson.Array(read(message).content) {
		if blockType(b) == "tool_result" {
			id := memberStr(b, "tool_use_id")
			if !calls[id] {
				return true
			}
			delete(calls, id)
		}
	}
	return false
}

// twice: the block is a result of a call that a block before it answers.
func twice(message, block []byte) bool {
	for b := range esjson.Array(read(message).content) {
		switch {
		case &b[0] == &block[0]:
			return false
		case blockType(b) == "tool_result" && memberStr(b, "tool_use_id") == memberStr(block, "tool_use_id"):
			return true
		}
	}
	return false
}
