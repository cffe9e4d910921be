package view

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// toolRow is a row of Roo's that asks for a tool.
func toolRow(ts int64, tool, path string) []byte {
	inner := fmt.Sprintf(`{"tool":%q,"path":%q}`, tool, path)
	return fmt.Appendf(nil, `{"ts":%d,"type":"ask","ask":"tool","text":%s}`, ts, esjson.Quote(nil, inner))
}

func callMessage(ts int64, id, name, path string) []byte {
	return fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":{"path":%q}}],"ts":%d}`, id, name, path, ts)
}

func resultMessage(ts int64, id, text string) []byte {
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}],"ts":%d}`, id, text, ts)
}

// answersOf are the answers as "row: text".
func answersOf(rows, messages [][]byte) map[int]string {
	out := map[int]string{}
	for i, it := range Answers(rows, messages, 0) {
		out[i] = string(it.Class) + " " + it.Title + it.Body
	}
	return out
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	read := toolRow(100, "readFile", "src/a.go")
	user := []byte(`{"role":"user","content":"do","ts":90}`)
	for name, tt := range map[string]struct {
		rows, messages [][]byte
		want           map[int]string
	}{
		"a file that was read": {
			[][]byte{read}, [][]byte{user, callMessage(95, "c", "read_file", "src/a.go"), resultMessage(110, "c", "1 | x")},
			map[int]string{0: "output 1 | x"},
		},
		"by tags": {
			[][]byte{read}, [][]byte{
				user, []byte(`{"role":"assistant","content":"<read_file>\n<path>src/a.go</path>\n</read_file>","ts":95}`),
				[]byte(`{"role":"user","content":[{"type":"text","text":"[read_file for 'src/a.go'] Result:"},{"type":"text","text":"1 | x"}],"ts":110}`),
			},
			map[int]string{0: "output 1 | x"},
		},
		"a path as the model wrote it": {
			[][]byte{toolRow(100, "readFile", "src/a.go")}, [][]byte{user, callMessage(95, "c", "read_file", `C:\w\src\a.go`), resultMessage(110, "c", "x")},
			map[int]string{0: "output x"},
		},
		"another file":           {[][]byte{read}, [][]byte{user, callMessage(95, "c", "read_file", "src/ba.go"), resultMessage(110, "c", "x")}, map[int]string{}},
		"another tool":           {[][]byte{read}, [][]byte{user, callMessage(95, "c", "list_files", "src/a.go"), resultMessage(110, "c", "x")}, map[int]string{}},
		"an hour before":         {[][]byte{read}, [][]byte{[]byte(`{"role":"user","content":"do","ts":3600090}`), callMessage(3600095, "c", "read_file", "src/a.go"), resultMessage(3600110, "c", "x")}, map[int]string{}},
		"an hour later":          {[][]byte{toolRow(3600100, "readFile", "src/a.go")}, [][]byte{user, callMessage(95, "c", "read_file", "src/a.go"), resultMessage(110, "c", "x")}, map[int]string{}},
		"no result yet":          {[][]byte{read}, [][]byte{user, callMessage(95, "c", "read_file", "src/a.go")}, map[int]string{}},
		"without any time":       {[][]byte{read}, [][]byte{callMessage(0, "c", "read_file", "src/a.go"), resultMessage(0, "c", "x")}, map[int]string{}},
		"an edit says it":        {[][]byte{toolRow(100, "appliedDiff", "a")}, [][]byte{user, callMessage(95, "c", "apply_diff", "a"), resultMessage(110, "c", "saved")}, map[int]string{}},
		"a refusal does not":     {[][]byte{toolRow(100, "appliedDiff", "a")}, [][]byte{user, callMessage(95, "c", "apply_diff", "a"), resultMessage(110, "c", `{"status":"denied","message":"The user denied this operation."}`)}, map[int]string{0: "failure deniedThe user denied this operation."}},
		"a refusal of old":       {[][]byte{toolRow(100, "newFileCreated", "a")}, [][]byte{user, callMessage(95, "c", "write_to_file", "a"), resultMessage(110, "c", "The user denied this operation.")}, map[int]string{0: "failure deniedThe user denied this operation."}},
		"words with an approval": {[][]byte{toolRow(100, "readFile", "a")}, [][]byte{user, callMessage(95, "c", "read_file", "a"), resultMessage(110, "c", `{"status":"approved","message":"ok","feedback":"but slowly"}`)}, map[int]string{0: "output message: ok\nfeedback: but slowly"}},
		"the same file twice": {
			[][]byte{toolRow(100, "readFile", "a"), toolRow(120, "readFile", "a")},
			[][]byte{user, callMessage(95, "c", "read_file", "a"), resultMessage(110, "c", "first"), callMessage(115, "d", "read_file", "a"), resultMessage(130, "d", "second")},
			map[int]string{0: "output first", 1: "output second"},
		},
		"what is no row and no message": {[][]byte{[]byte(`7`), []byte(`{"type":"ask","ask":"tool","text":"{"}`), read}, [][]byte{[]byte(`"x"`), user, []byte(`null`), callMessage(95, "c", "read_file", "src/a.go"), resultMessage(110, "c", "x")}, map[int]string{2: "output x"}},
	} {
		if d := cmp.Diff(tt.want, answersOf(tt.rows, tt.messages)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

// A command's row is answered when no row behind it shows what it gave out.
func TestAnswersOfCommands(t *testing.T) {
	t.Parallel()
	row := []byte(`{"ts":100,"type":"ask","ask":"command","text":"make"}`)
	request := []byte(`{"ts":120,"type":"say","say":"api_req_started","text":"{}"}`)
	messages := [][]byte{
		[]byte(`{"role":"user","content":"do","ts":90}`),
		[]byte(`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"execute_command","input":{"command":"make"}}],"ts":95}`), resultMessage(115, "c", "built"),
	}
	for output, want := range map[string]map[int]string{
		`{"ts":105,"type":"say","say":"command_output","text":"built"}`: {},
		`{"ts":105,"type":"ask","ask":"command_output","text":"built"}`: {},
		`{"ts":105,"type":"ask","ask":"command_output","text":""}`:      {0: "output built"},
		`{"ts":105,"type":"say","say":"text","text":"on it"}`:           {0: "output built"},
	} {
		if d := cmp.Diff(want, answersOf([][]byte{row, []byte(output), request}, messages)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", output, d)
		}
	}
	if got := answersOf([][]byte{row}, messages); len(got) != 0 { // what comes behind the page is not known
		t.Errorf("the last row of a page: %v", got)
	}
}

// Cline's messages have no times; its rows say which message was the last one.
func TestAnswersByPlace(t *testing.T) {
	t.Parallel()
	row := func(behind int) []byte {
		return []byte(fmt.Sprintf(`{"ts":1000,"type":"say","say":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a\"}","conversationHistoryIndex":%d}`, behind))
	}
	var messages [][]byte
	for i := range 3 {
		id := fmt.Sprint("c", i)
		messages = append(messages, callMessage(0, id, "read_file", "a"), resultMessage(0, id, id))
	}
	times := make([]int64, len(messages))
	for behind, want := range map[int]string{-1: "", 0: "c0", 1: "c1", 3: "c2", 4: "c2", 5: "", 1 << 40: ""} {
		rows := [][]byte{row(behind)}
		got := ""
		for _, it := range Answers(rows, messages, 0) {
			got = it.Body
		}
		if got != want {
			t.Errorf("behind message %d stands %q, want %q", behind, got, want)
		}
		from, to := Stretch(rows, times)
		if from < 0 || to > len(messages) || from > to && behind >= 0 {
			t.Errorf("behind message %d: %d to %d", behind, from, to)
		}
	}
}

// Of a long history only the stretch beside the rows is looked at; what is answered from
// it is the same as from the whole.
func TestStretchIsEnoughAndBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var rows, messages [][]byte
		var times []int64
		ts := int64(1_776_200_000_000)
		add := func(raw []byte, ts int64) { messages, times = append(messages, raw), append(times, ts) }
		add([]byte(fmt.Sprintf(`{"role":"user","content":"do","ts":%d}`, ts)), ts)
		for n := range rapid.IntRange(1, 60).Draw(t, "turns") {
			ts += rapid.Int64Range(1, 20_000).Draw(t, "pause")
			id, path := fmt.Sprint("c", n), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "path")
			rows = append(rows, toolRow(ts, "readFile", path))
			add(callMessage(ts+1, id, "read_file", path), ts+1)
			ts += rapid.Int64Range(2, 5_000).Draw(t, "work")
			add(resultMessage(ts, id, id), ts)
		}
		from := rapid.IntRange(0, len(rows)-1).Draw(t, "from")
		page := rows[from:rapid.IntRange(from+1, len(rows)).Draw(t, "to")]
		low, high := Stretch(page, times)
		if high-low > 2*len(page)+12 {
			t.Fatalf("%d messages for %d rows", high-low, len(page))
		}
		got := Answers(page, messages[low:high], low)
		for i := range page {
			if want := fmt.Sprint("c", from+i); got[i].Body != want {
				t.Fatalf("row %d of the page from %d is answered by %q, want %q; messages %d to %d of %d", i, from, got[i].Body, want, low, high, len(messages))
			}
		}
	})
}
