package contextwindow

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/esjson"
)

// vector is one conformance case.
type vector struct {
	name        string
	input, want []byte
}

// each runs every case of a family. check returns whether the case passed, and
// whether it passed by being right where Roo is not.
func each(t *testing.T, family string, check func(t *testing.T, v vector) (ok, byChoice bool)) {
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	raw, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 64<<20)
	cases, passed, choices := 0, 0, 0
	for sc.Scan() {
		line := bytes.Clone(sc.Bytes())
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cases++
		v := vector{}
		v.name, _ = esjson.GetString(line, "name")
		v.input, _ = esjson.Get(line, "input")
		v.want, _ = esjson.Get(line, "want")
		ok, choice := check(t, v)
		if ok {
			passed++
		}
		if choice {
			choices++
		}
	}
	fmt.Printf("vectors: %s %d/%d (by choice %d)\n", family, passed, cases, choices)
	if cases == 0 || passed != cases {
		t.Errorf("%s: %d of %d passed", family, passed, cases)
	}
}

func member(obj []byte, key string) []byte {
	v, _ := esjson.Get(obj, key)
	return v
}

func list(raw []byte) [][]byte {
	var out [][]byte
	for m := range esjson.Array(raw) {
		out = append(out, m)
	}
	return out
}

func joined(messages [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
}

func same(t *testing.T, v vector, what string, got, want []byte) bool {
	t.Helper()
	if esjson.Equal(got, want) {
		return true
	}
	t.Errorf("%s: %s\n got %.1500s\nwant %.1500s", v.name, what, got, want)
	return false
}

func TestVectorsEffectiveHistory(t *testing.T) {
	each(t, "effective_history", func(t *testing.T, v vector) (ok, choice bool) {
		in := list(member(v.input, "messages"))
		var got [][]byte
		fn, _ := esjson.GetString(v.input, "fn")
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
			fraction, _ := esjson.GetFloat(v.input, "fraction")
			id, _ := esjson.GetString(v.input, "new_id")
			now, _ := esjson.GetInt(v.input, "now")
			var removed int
			got, removed = Truncate(in, fraction, id, now)
			if hidesHidden(in) {
				return checkTruncate(t, v, in, got, removed), true
			}
			if want, _ := esjson.GetInt(v.want, "messages_removed"); want != int64(removed) {
				t.Errorf("%s: removed %d, want %d", v.name, removed, want)
				return false, false
			}
		}
		return same(t, v, fn, joined(got), member(v.want, "messages")), false
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
func checkTruncate(t *testing.T, v vector, in, got [][]byte, removed int) bool {
	before, after := len(Effective(in)), len(Effective(got))
	if removed == 0 {
		return len(in) == len(got)
	}
	// The marker is new; orphaned results may take a message with them.
	if after > before-removed+1 || len(got) != len(in)+1 {
		t.Errorf("%s: %d sent before, %d after, %d removed", v.name, before, after, removed)
		return false
	}
	return true
}

func TestVectorsToolResultRepair(t *testing.T) {
	each(t, "tool_result_repair", func(t *testing.T, v vector) (ok, choice bool) {
		history := list(member(v.input, "history"))
		message := member(v.input, "message")
		fn, _ := esjson.GetString(v.input, "fn")
		var got, want []byte
		if fn == "validate" {
			got, want = RepairResults(message, history), member(v.want, "message")
		} else {
			now, _ := esjson.GetInt(v.input, "now")
			all := Append(history, message, now)
			wanted := list(member(v.want, "history"))
			if !esjson.Equal(joined(all[:len(all)-1]), joined(wanted[:len(wanted)-1])) {
				t.Errorf("%s: the history was changed", v.name)
				return false, false
			}
			got, want = all[len(all)-1], wanted[len(wanted)-1]
		}
		if esjson.Equal(got, want) {
			return true, false
		}
		return ownRepair(t, v, message, history, got, want), true
	})
}

// ownRepair holds where we differ from Roo, and only there: results that were
// not in front are, and results that Roo threw away while it put in placeholders
// answer the calls that lacked one.
func ownRepair(t *testing.T, v vector, message []byte, history [][]byte, got, want []byte) bool {
	gotResults, gotOthers := splitResults(read(got).content)
	wantResults, wantOthers := splitResults(read(want).content)
	inResults, _ := splitResults(read(message).content)
	front := joined(append(append([][]byte{}, gotResults...), gotOthers...))
	if !esjson.Equal(front, read(got).content) {
		t.Errorf("%s: results are not in front: %s", v.name, got)
		return false
	}
	if !esjson.Equal(joined(gotOthers), joined(wantOthers)) {
		t.Errorf("%s: other blocks changed: %s", v.name, got)
		return false
	}
	if esjson.Equal(joined(gotResults), joined(wantResults)) {
		return true // only the order of kinds differs
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
		t.Errorf("%s: differs without a rule\n got %s\nwant %s", v.name, got, want)
		return false
	}
	return true
}
