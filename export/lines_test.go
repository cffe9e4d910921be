package export

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// shown is a history as a terminal gets it, one message behind the other.
func shown(t *testing.T, v *store.View, o LinesOptions) string {
	t.Helper()
	list := v.State.UI()
	if o.API {
		list = v.State.API()
	}
	raws, err := v.State.Raws(list)
	fixture.NoError(t, err)
	var batch []Element
	for i, m := range list {
		batch = append(batch, Element{Number: i + 1, Raw: json.RawMessage(raws[i]), Message: m})
	}
	var out strings.Builder
	n := 0
	for i, lines := range NewLines(v, o).Of(batch) {
		if i != n {
			t.Fatalf("message %d comes after %d", i, n)
		}
		n++
		for _, l := range lines {
			out.WriteString(l.Text + "\n")
		}
	}
	if n != len(batch) {
		t.Errorf("%d of %d messages were shown", n, len(batch))
	}
	return out.String()
}

// What came back of a call stands below the row that asked for it, in a history of another
// tool as in one of our own.
func TestLinesShowResultsBelowTheirRows(t *testing.T) {
	v := newStorage(t, foreignTask).open("t1")
	got := shown(t, v, LinesOptions{})
	want := "#1 you\n  do it\n#2 tool read a.go\n  output\n    " + secret + " <script>of a.go\n#3 tool edit a.go\n  @@\n  -x <b>\n  +y\n  denied\n    The user denied this operation.\n#4 model (no words)\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("another tool's: %s", d)
	}

	s := newStorage(t, nil)
	k, err := s.st.Create(t.Context(), task.Created{Task: "own", Number: 1, CreatedAt: 1776200000000})
	fixture.NoError(t, err)
	result := func(call, text string) json.RawMessage {
		raw, err := json.Marshal(map[string]any{"type": "tool_result", "tool_use_id": call, "content": text})
		fixture.NoError(t, err)
		return raw
	}
	exit := 3
	calls := `{"role":"assistant","ts":1,"content":[{"type":"tool_use","id":"c1","name":"execute_command","input":{"command":"make"}},{"type":"tool_use","id":"c2","name":"read_file","input":{"path":"a"}},{"type":"thinking","thinking":"a\nb"}]}`
	for _, events := range [][]task.Event{
		{task.MessageAdded{History: task.API, Message: 1, Body: task.Body{Raw: []byte(calls)}}},
		{task.MessageAdded{History: task.UI, Message: 2, Body: task.Body{Raw: []byte(`{"ts":1,"type":"ask","ask":"command","text":"make"}`)}}},
		{task.MessageAdded{History: task.UI, Message: 3, Body: task.Body{Raw: []byte(`{"ts":2,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a\"}"}`)}}},
		{task.ToolStarted{Call: "c1", Name: "execute_command", Replay: "never", Message: 2}, task.ToolStarted{Call: "c2", Name: "read_file", Replay: "again", Message: 3}},
		{task.ToolFinished{Call: "c1", Name: "execute_command", Outcome: "ok", Exit: &exit, Result: result("c1", strings.Repeat("line\n", 20))}},
		{task.ToolFinished{Call: "c2", Name: "read_file", Outcome: "error", Result: result("c2", "no such file")}},
		{task.MessageAdded{History: task.API, Message: 4, Body: task.Body{Raw: fmt.Appendf(nil, `{"role":"user","ts":3,"content":[%s,%s]}`, result("c1", "x"), result("c2", "no such file"))}}},
	} {
		fixture.NoError(t, k.Commit(t.Context(), events...))
	}
	fixture.NoError(t, k.Close(t.Context()))
	v = s.open("own")
	want = "#1 tool $ make\n  output exit 3\n" + strings.Repeat("    line\n", bodyLines) + "    ... 8 more lines\n#2 tool read a\n  failed error\n    no such file\n"
	if d := cmp.Diff(strings.ReplaceAll(want, "failed error", "error"), shown(t, v, LinesOptions{})); d != "" {
		t.Errorf("our own: %s", d)
	}
	if whole := shown(t, v, LinesOptions{Whole: true}); strings.Count(whole, "    line\n") != 20 {
		t.Errorf("a whole one is cut: %s", whole)
	}
	api := shown(t, v, LinesOptions{API: true})
	for _, want := range []string{"tool execute_command make", "thinking (2 lines folded)", "result of execute_command", "result of read_file"} {
		if !strings.Contains(api, want) {
			t.Errorf("what the model saw lacks %s: %s", want, api)
		}
	}
	if strings.Contains(api, "exit 3") {
		t.Errorf("a result stands there twice: %s", api)
	}
	if whole := shown(t, v, LinesOptions{API: true, Whole: true}); !strings.Contains(whole, "    a\n    b\n") {
		t.Errorf("thinking is folded: %s", whole)
	}
}

// What would be sent belongs to no message of the store, and has no answers of its own.
func TestLinesOfWhatWouldBeSent(t *testing.T) {
	v := newStorage(t, foreignTask).open("t1")
	var out []string
	for _, lines := range NewLines(v, LinesOptions{Effective: true}).Of([]Element{{Number: 1, Raw: json.RawMessage(`{"role":"user","content":"do it"}`)}, {Number: 2, Raw: json.RawMessage(`7`)}}) {
		for _, l := range lines {
			out = append(out, string(l.Style)+" "+l.Text)
		}
	}
	if d := cmp.Diff([]string{string(view.Head) + " #1 you", "plain   do it", "head #2 ? not a message", "plain   7"}, out); d != "" {
		t.Error(d)
	}
	// Whoever has seen enough stops; the rest is not made.
	for i := range NewLines(v, LinesOptions{}).Of(make([]Element, 3)) {
		if i > 0 {
			t.Fatal("more was made than asked for")
		}
		break
	}
}
