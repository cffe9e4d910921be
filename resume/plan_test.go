package resume

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/contextwindow/rules"
	"github.com/roost-dev/roost/esjson"
)

func lists(lines ...string) (out [][]byte) {
	for _, l := range lines {
		out = append(out, []byte(l))
	}
	return out
}

// A plan for any two lists ends in a history from which a valid request is made.
func TestPlanAlwaysSendable(t *testing.T) {
	uiRow := rapid.SampledFrom([]string{`{"ts":1,"type":"say","say":"text","text":"do"}`, `{"ts":2,"type":"say","say":"api_req_started","text":"{}"}`,
		`{"ts":2,"type":"say","say":"api_req_started","text":"null"}`, `{"ts":3,"type":"say","say":"reasoning","text":"r","partial":true}`,
		`{"ts":4,"type":"ask","ask":"completion_result"}`, `{"ts":5,"type":"ask","ask":"resume_task"}`, `null`, `{`, ``, `{"ts":`, `5`})
	apiRow := rapid.SampledFrom([]string{`{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"},{"type":"text","text":"x"}]}`,
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t2","content":"r"}]}`, `{"role":"user","content":[]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}},{"type":"tool_use","id":"t2","name":"n","input":{}}]}`,
		`{"role":"assistant","content":"hm"}`, `{"role":"system","content":"s"}`, `{"content":"s"}`, `{"role":"user","content":"s","isSummary":true,"condenseId":"c"}`,
		`null`, `{`, `{"role":`, ``, `{"role":"user"}`})
	outcome := rapid.SampledFrom([]Outcome{{}, {State: Finished, Text: "done"}, {State: Finished}, {State: NotStarted}, {State: Unknown}})
	rapid.Check(t, func(t *rapid.T) {
		var ui, api [][]byte
		for _, s := range rapid.SliceOfN(uiRow, 0, 8).Draw(t, "ui") {
			ui = append(ui, []byte(s))
		}
		for _, s := range rapid.SliceOfN(apiRow, 0, 8).Draw(t, "api") {
			api = append(api, []byte(s))
		}
		reply := Reply{Kind: rapid.SampledFrom([]string{Yes, No, Message, "?"}).Draw(t, "kind")}
		if rapid.Bool().Draw(t, "text") {
			s := rapid.SampledFrom([]string{"", " ", "go", "\xed\xa0\x80"}).Draw(t, "words")
			reply.Text = &s
		}
		if rapid.Bool().Draw(t, "images") {
			reply.Images = []string{"data:image/png;base64,iVBORw0KGgo=", "junk"}
		}
		o := Options{Outcomes: map[string]Outcome{"t1": outcome.Draw(t, "t1")}, ClosePartial: rapid.Bool().Draw(t, "close")}
		p := Make(ui, api, reply, 10, 20, o)
		if got := len(p.UI()); got != len(ui)-len(p.Hidden)+len(p.Added) {
			t.Fatalf("%d rows: hidden %v of %d", got, p.Hidden, len(ui))
		}
		history := p.Append(p.Content, 30)
		built, _, err := contextwindow.Build(history, contextwindow.Options{})
		if err == nil {
			err = rules.Validate(built)
		}
		if err != nil && !errors.Is(err, contextwindow.ErrEmpty) {
			t.Fatalf("%v\n%s", err, history)
		}
		if err != nil && reply.Text != nil && *reply.Text == "go" {
			t.Fatal("the person's text is not sent")
		}
	})
}

func TestOutcomesCloseCutCalls(t *testing.T) {
	api := lists(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}},{"type":"tool_use","id":"b","name":"n","input":{}},{"type":"tool_use","id":"c","name":"n","input":{}},{"type":"tool_use","id":"d","name":"n","input":{}}]}`)
	p := Make(nil, api, Reply{Kind: Yes}, 1, 2, Options{Outcomes: map[string]Outcome{
		"a": {State: Finished, Text: "ok"}, "b": {State: NotStarted}, "c": {State: Unknown}}})
	want := []struct {
		id, part string
		isError  bool
	}{{"a", "ok", false}, {"b", "no effect", false}, {"c", "not known", true}, {"d", "interrupted before", false}}
	i := 0
	for b := range esjson.Array(p.Content) {
		isError, _ := esjson.GetBool(b, "is_error")
		if w := want[i]; member(b, "tool_use_id") != w.id || !strings.Contains(member(b, "content"), w.part) || isError != w.isError {
			t.Errorf("%s, want %+v", b, w)
		}
		i++
	}
	if i != len(want) || p.Replace != -1 {
		t.Errorf("%d results, replaces %d", i, p.Replace)
	}
}

func TestRows(t *testing.T) {
	ui := lists(`{"ts":1,"type":"say","say":"text","text":"do"}`, `{"ts":2,"type":"say","say":"text","text":"cut","partial":true}`,
		`{"ts":3,"type":"say","say":"api_req_started","text":"{}"}`, `{"ts":4,"type":"say","say":"reasoning","text":"r","partial":true}`, `{"ts":5,"type":"ask","ask":"resume_task"}`)
	p := Make(ui, nil, Reply{Kind: Yes}, 90, 91, Options{ClosePartial: true})
	got := string(array(p.UI()))
	want := `[{"ts":1,"type":"say","say":"text","text":"do"},{"ts":2,"type":"say","say":"text","text":"cut","partial":false},{"ts":90,"type":"ask","ask":"resume_task"}]`
	if got != want || fmt.Sprint(p.Hidden) != "[2 3 4]" {
		t.Errorf("%v\n got %s\nwant %s", p.Hidden, got, want)
	}
	if string(p.Content) != `[{"type":"text","text":"<user_message>\ndo\n</user_message>"}]` {
		t.Errorf("%s", p.Content)
	}
}

func ExampleMake() {
	api := lists(`{"role":"user","content":"list files"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"list_files","input":{}}]}`)
	words := "go on"
	p := Make(nil, api, Reply{Kind: Yes, Text: &words}, 100, 200, Options{})
	fmt.Println(p.Ask)
	fmt.Printf("%s\n", p.Content)
	// Output:
	// resume_task
	// [{"type":"tool_result","tool_use_id":"t1","content":"Task was interrupted before this tool call could be completed."},{"type":"text","text":"<user_message>\ngo on\n</user_message>"}]
}
