package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

func raws(list ...string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

// readAll gives what a person reads of a made history.
func readAll(list [][]byte, item func([]byte, int) Item) string {
	var out []string
	for i, raw := range list {
		for _, l := range Lines(item(raw, i+1), 0) {
			out = append(out, l.Text)
		}
	}
	return strings.Join(out, "\n")
}

func TestRowsFromTheModelsHistory(t *testing.T) {
	t.Parallel()
	rows := UIFromAPI(raws(
		`{"role":"user","content":[{"type":"text","text":"<user_message>\nrun ls\n</user_message>"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"<environment_details>\nx\n</environment_details>"}],"ts":1}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"execute_command","input":{"command":"ls"}},{"type":"tool_use","id":"b","name":"search_files","input":{"path":"src","regex":"x"}},{"type":"redacted_thinking","data":"?"}],"ts":2}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"a.txt"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"src/a:1"}]},{"type":"text","text":"<feedback>good</feedback>"}],"ts":3}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"w","name":"write_to_file","input":{"path":"n","content":"new"}},{"type":"tool_use","id":"q","name":"ask_followup_question","input":{"question":"which?"}},{"type":"hologram","x":1}],"ts":4}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"w","content":"denied","is_error":true},{"type":"tool_result","tool_use_id":"q","content":"<answer>\nred\n</answer>"}],"ts":5}`,
		`{"role":"user","content":[{"type":"text","text":"so far"}],"ts":6,"isSummary":true}`,
		`not JSON`, `7`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"z","name":"attempt_completion","input":{"result":"Done."}}],"ts":7}`,
	))
	want := `#1 you [1 image: png 3 B]
  run ls
#2 thinking
  hm
#3 model
  I look.
#4 tool $ ls
#5 tool search x src
  src/a:1
#6 output
  a.txt
#7 you
  good
#8 tool create n
  +new
#9 question
  which?
#10 ? say:unknown hologram
  type: hologram
  x: 1
#11 error
  denied
#12 you
  red
#13 · older history was condensed
  so far
#14 result
  Done.
#15 · waiting for the next word`
	if d := cmp.Diff(want, readAll(rows, UI)); d != "" {
		t.Error(d)
	}
	var times []int64
	for _, raw := range rows {
		if yes, _ := esjson.GetBool(raw, "inferred"); !yes || !esjson.Valid(raw) {
			t.Errorf("not marked: %s", raw)
		}
		ts, _ := esjson.GetInt(raw, "ts")
		times = append(times, ts)
	}
	if d := cmp.Diff([]int64{1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 7, 7}, times); d != "" {
		t.Error(d)
	}
}

// Before tools had blocks of their own, results were text of the person's turns.
func TestRowsFromTextResults(t *testing.T) {
	t.Parallel()
	rows := UIFromAPI(raws(
		`{"role":"user","content":[{"type":"text","text":"<task>read</task>"}],"ts":1}`,
		`{"role":"assistant","content":"<read_file><path>a</path></read_file>","ts":2}`,
		`{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:"},{"type":"text","text":"line 1"},{"type":"text","text":"<feedback>\nand b\n</feedback>"},{"type":"text","text":"<environment_details>x</environment_details>"}],"ts":3}`,
		`{"role":"user","content":"[not a result] of anything","ts":4}`,
	))
	want := `#1 you
  read
#2 tool read a
#3 output
  line 1
#4 you
  and b
#5 you
  [not a result] of anything`
	if d := cmp.Diff(want, readAll(rows, UI)); d != "" {
		t.Error(d)
	}
}

func TestMessagesFromThePersonsRows(t *testing.T) {
	t.Parallel()
	messages := APIFromUI(raws(
		`{"ts":1,"type":"say","say":"text","text":"run ls","images":["data:image/png;base64,AAAA"]}`,
		`{"ts":2,"type":"say","say":"api_req_started","text":"{}"}`,
		`{"ts":3,"type":"say","say":"reasoning","text":"hm"}`,
		`{"ts":4,"type":"say","say":"text","text":"I look."}`,
		`{"ts":5,"type":"ask","ask":"command","text":"ls"}`,
		`{"ts":6,"type":"say","say":"command_output","text":"a.txt"}`,
		`{"ts":7,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a.txt\"}"}`,
		`{"ts":8,"type":"ask","ask":"followup","text":"{\"question\":\"which?\"}"}`,
		`{"ts":9,"type":"say","say":"user_feedback","text":"red"}`,
		`oops`,
		`{"ts":10,"type":"say","say":"completion_result","text":"Done."}`,
		`{"ts":11,"type":"ask","ask":"completion_result"}`,
	))
	want := `#1 you
  run ls
  you image [1 image: image/png 3 B]
#2 model
  thinking
    hm
  I look.
  tool execute_command ls
#3 output
  output result
    a.txt
#4 model
  tool read_file a.txt
    tool: readFile
#5 output
  output result
    (the result is not known)
#6 model
  question ask_followup_question
    which?
#7 you
  output result
    (the result is not known)
  red
#8 model
  result attempt_completion
    Done.`
	if d := cmp.Diff(strings.ReplaceAll(want, "image/png", "png"), readAll(messages, API)); d != "" {
		t.Error(d)
	}
}

// Whatever rows a damaged folder holds: nothing fails, every element is JSON, roles
// take turns, and each call has its one result in the next message.
func TestMadeHistoriesArePairedProperty(t *testing.T) {
	t.Parallel()
	kinds := []string{"say:text", "say:reasoning", "ask:command", "say:command_output", "ask:tool", "ask:followup", "say:user_feedback", "say:completion_result", "ask:completion_result", "say:novel", "x:y"}
	rapid.Check(t, func(t *rapid.T) {
		var rows [][]byte
		for i := range rapid.IntRange(0, 14).Draw(t, "rows") {
			typ, kind, _ := strings.Cut(rapid.SampledFrom(kinds).Draw(t, "kind"), ":")
			var o esjson.Object
			o.Int("ts", int64(i))
			o.String("type", typ)
			o.String(typ, kind)
			o.String("text", rapid.SampledFrom([]string{"", "words", `{"tool":"readFile"}`, "{", "\x00\xff"}).Draw(t, "text"))
			rows = append(rows, o.Bytes())
		}
		messages := APIFromUI(rows)
		last, open := "", map[string]bool{}
		for i, raw := range messages {
			role := str(raw, "role")
			if !esjson.Valid(raw) || role == last {
				t.Fatalf("message %d, after one of the %s: %s", i+1, last, raw)
			}
			last = role
			for block := range blocksOf(raw) {
				switch str(block, "type") {
				case "tool_use":
					open[str(block, "id")] = true
				case "tool_result":
					if id := str(block, "tool_use_id"); !open[id] {
						t.Fatalf("message %d answers %s, which nobody called", i+1, id)
					} else {
						delete(open, id)
					}
				}
			}
			if role == "user" && len(open) > 0 {
				t.Fatalf("message %d leaves calls open: %v", i+1, open)
			}
		}
		if len(open) > 1 {
			t.Fatalf("%d calls have no result", len(open))
		}
		for _, raw := range UIFromAPI(messages) {
			if !esjson.Valid(raw) {
				t.Fatalf("no JSON: %s", raw)
			}
		}
	})
}

// A tool without a row of its own gets one by its name.
func TestTheRowOfAToolWithoutOne(t *testing.T) {
	t.Parallel()
	rows := UIFromAPI(raws(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"frobnicate","input":{"path":"p"}}],"ts":1}`))
	want := `{"tool":"frobnicate","path":"p"}`
	if len(rows) == 0 || esjson.TextOf(rows[0], "text") != want {
		t.Errorf("got %s, want one with the text %s", rows, want)
	}
}
