package contextwindow

import (
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
)

func TestVectorsEffectiveHistory(t *testing.T) {
	conformance.Run(t, "effective_history", func(t *testing.T, v conformance.Case) (choice bool) {
		in := v.Input.Get("messages").List()
		var got [][]byte
		fn := v.Input.Str("fn")
		switch fn {
		case "effective":
			got = Effective(in)
		case "since_last_summary":
			got = SinceLastSummary(in)
		case "cleanup":
			got = Cleanup(in)
		case "merge_users":
			got = MergeUsers(in)
		case "request_shape":
			got = Shape(in)
		case "truncate":
			var removed int
			got, removed = Truncate(in, v.Input.Float("fraction"), v.Input.Str("new_id"), v.Input.Int("now", 0))
			if hidesHidden(in) {
				checkTruncate(t, in, got, removed)
				return true
			}
			if want := v.Want.Int("messages_removed", -1); want != int64(removed) {
				t.Errorf("removed %d, want %d", removed, want)
			}
		default:
			t.Fatalf("unknown function %q", fn)
		}
		v.Same(t, fn, conformance.Array(got), v.Want.Get("messages"))
		return false
	})
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

func TestVectorsToolResultRepair(t *testing.T) {
	conformance.Run(t, "tool_result_repair", func(t *testing.T, v conformance.Case) (choice bool) {
		history := v.Input.Get("history").List()
		message := v.Input.Get("message")
		var got, want []byte
		if v.Input.Str("fn") == "validate" {
			got, want = RepairResults(message, history), v.Want.Get("message")
		} else {
			all := Append(history, message, v.Input.Int("now", 0))
			wanted := v.Want.Get("history").List()
			v.Same(t, "the history was changed", conformance.Array(all[:len(all)-1]), conformance.Array(wanted[:len(wanted)-1]))
			got, want = all[len(all)-1], wanted[len(wanted)-1]
		}
		if esjson.Equal(got, want) {
			return false
		}
		ownRepair(t, message, got, want)
		return true
	})
}

// ownRepair holds where we differ from Roo, and only there: results that were
// not in front are, and results that Roo threw away while it put in placeholders
// answer the calls that lacked one.
func ownRepair(t *testing.T, message, got, want []byte) {
	gotResults, gotOthers := splitResults(read(got).content)
	wantResults, wantOthers := splitResults(read(want).content)
	inResults, _ := splitResults(read(message).content)
	front := conformance.Array(append(append([][]byte{}, gotResults...), gotOthers...))
	if !esjson.Equal(front, read(got).content) {
		t.Fatalf("results are not in front: %s", got)
	}
	if !esjson.Equal(conformance.Array(gotOthers), conformance.Array(wantOthers)) {
		t.Fatalf("other blocks changed: %s", got)
	}
	if esjson.Equal(conformance.Array(gotResults), conformance.Array(wantResults)) {
		return // only the order of kinds differs
	}
	placeholders := func(results [][]byte) (n int) {
		for _, r := range results {
			if resultText(r) == Interrupted {
				n++
			}
		}
		return n
	}
	lost := len(inResults) - (len(wantResults) - placeholders(wantResults))
	if lost == 0 || placeholders(wantResults) == 0 || len(gotResults) != len(wantResults) ||
		placeholders(gotResults) != max(0, placeholders(wantResults)-lost) {
		t.Errorf("differs without a rule\n got %s\nwant %s", got, want)
	}
}
