package resume

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

const (
	firstRow  = `{"ts":1,"type":"say","say":"text","text":"do it"}`
	asked     = `{"ts":2,"type":"say","say":"api_req_started","text":"{\"cost\":0.1}"}`
	hanging   = `{"ts":3,"type":"say","say":"api_req_started","text":"{\"tokensIn\":5}"}`
	thinking  = `{"ts":4,"type":"say","say":"reasoning","text":"hm"}`
	completed = `{"ts":5,"type":"ask","ask":"completion_result","text":""}`
	resumed   = `{"ts":6,"type":"ask","ask":"resume_task"}`
	redone    = `{"ts":7,"type":"ask","ask":"resume_completed_task"}`
)

// Which rows go, and which question is asked. Indices are those of the rows given.
func TestWhichRowsGo(t *testing.T) {
	for name, c := range map[string]struct {
		ui   []string
		gone string
		ask  string
	}{
		"nothing at all":                  {nil, "[]", AskTask},
		"a finished request stays":        {[]string{firstRow, asked}, "[]", AskTask},
		"a request that never came back":  {[]string{firstRow, asked, hanging}, "[2]", AskTask},
		"only the last request is judged": {[]string{firstRow, hanging, asked}, "[]", AskTask},
		"a hanging one before other rows": {[]string{firstRow, hanging, thinking}, "[1 2]", AskTask},
		"old questions at the end":        {[]string{firstRow, asked, resumed, redone, resumed}, "[2 3 4]", AskTask},
		"a question in the middle stays":  {[]string{firstRow, resumed, asked}, "[]", AskTask},
		"reasoning before the questions":  {[]string{firstRow, asked, thinking, thinking, resumed}, "[2 3 4]", AskTask},
		"reasoning in the middle stays":   {[]string{firstRow, thinking, asked}, "[]", AskTask},
		"completed":                       {[]string{firstRow, asked, completed}, "[]", AskCompleted},
		"completed, asked before":         {[]string{firstRow, asked, completed, redone}, "[3]", AskCompleted},
		"completed, then more":            {[]string{firstRow, completed, asked}, "[]", AskTask},
		"only questions":                  {[]string{resumed, redone}, "[]", AskTask}, // as Roo does
		"a request without text":          {[]string{firstRow, `{"type":"say","say":"api_req_started"}`}, "[1]", AskTask},
		"one that was cancelled":          {[]string{firstRow, `{"type":"say","say":"api_req_started","text":"{\"cancelReason\":\"user_cancelled\"}"}`}, "[]", AskTask},
		"one that cannot be read":         {[]string{firstRow, `{"type":"say","say":"api_req_started","text":"{\"cos"}`}, "[]", AskTask},
		"one that cost nothing":           {[]string{firstRow, `{"type":"say","say":"api_req_started","text":"{\"cost\":0}"}`}, "[]", AskTask},
		"rows that are no rows":           {[]string{"null", "5", `"x"`, "[]", "{"}, "[]", AskTask},
	} {
		p := Make(lists(c.ui...), nil, Reply{Kind: Yes}, 100, 200, Options{})
		if got := fmt.Sprint(p.Hidden); got != c.gone || p.Ask != c.ask {
			t.Errorf("%s: %s go and %s is asked, wanted %s and %s", name, got, p.Ask, c.gone, c.ask)
		}
		if last := p.UI()[len(p.UI())-1]; member(last, "ask") != c.ask {
			t.Errorf("%s: the last row is %s", name, last)
		}
	}
}

// What is answered to the question is shown and reaches the model; an empty message
// is shown and says nothing.
func TestAnswers(t *testing.T) {
	words, nothing := "use tabs", ""
	api := lists(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`)
	const picture = "data:image/png;base64,iVBORw0KGgo="
	for name, c := range map[string]struct {
		reply Reply
		rows  string // what is added after the question
		sent  string
	}{
		"yes":                   {Reply{Kind: Yes}, ``, `[{"type":"text","text":"[TASK RESUMPTION] Resuming task..."}]`},
		"no":                    {Reply{Kind: No}, ``, `[{"type":"text","text":"[TASK RESUMPTION] Resuming task..."}]`},
		"words":                 {Reply{Kind: Message, Text: &words}, `{"ts":200,"type":"say","say":"user_feedback","text":"use tabs"}`, `[{"type":"text","text":"<user_message>\nuse tabs\n</user_message>"}]`},
		"words with the button": {Reply{Kind: Yes, Text: &words}, `{"ts":200,"type":"say","say":"user_feedback","text":"use tabs"}`, `[{"type":"text","text":"<user_message>\nuse tabs\n</user_message>"}]`},
		"an empty message":      {Reply{Kind: Message, Text: &nothing, Images: []string{}}, `{"ts":200,"type":"say","say":"user_feedback","text":"","images":[]}`, `[{"type":"text","text":"[TASK RESUMPTION] Resuming task..."}]`},
		"a picture only":        {Reply{Kind: Yes, Images: []string{picture}}, `{"ts":200,"type":"say","say":"user_feedback","images":["` + picture + `"]}`, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`},
	} {
		p := Make(nil, api, c.reply, 100, 200, Options{})
		if got := string(bytes.Join(p.Added[1:], nil)); got != c.rows {
			t.Errorf("%s: the rows %s, wanted %s", name, got, c.rows)
		}
		if string(p.Content) != c.sent {
			t.Errorf("%s: %s is sent, wanted %s", name, p.Content, c.sent)
		}
	}
}

// What becomes of the end of the model's side, by what it is.
func TestTheEndOfTheModelsSide(t *testing.T) {
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}},{"type":"tool_use","id":"t2","name":"n","input":{}}]}`
	result := func(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}` }
	closed := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":"` + textGeneric + `"}`
	}
	for name, c := range map[string]struct {
		api     []string
		replace int
		sent    string
	}{
		"a reply in words":          {[]string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`}, -1, ""},
		"a reply with calls":        {[]string{call}, -1, closed("t1") + "," + closed("t2")},
		"a user turn":               {[]string{`{"role":"user","content":[{"type":"text","text":"x"}]}`}, 0, `{"type":"text","text":"x"}`},
		"a user turn as a string":   {[]string{`{"role":"user","content":"x"}`}, 0, `{"type":"text","text":"x"}`},
		"half of the results":       {[]string{call, `{"role":"user","content":[` + result("t2") + `,{"type":"text","text":"x"}]}`}, 1, result("t2") + "," + closed("t1") + `,{"type":"text","text":"x"}`},
		"words before a result":     {[]string{call, `{"role":"user","content":[{"type":"text","text":"x"},` + result("t1") + "," + result("t2") + `]}`}, 1, `{"type":"text","text":"x"},` + result("t1") + "," + result("t2")},
		"a summary":                 {[]string{call, `{"role":"user","content":"s","isSummary":true}`}, -1, ""},
		"an unknown role":           {[]string{call, `{"role":"system","content":"s"}`}, -1, closed("t1") + "," + closed("t2")},
		"an unknown role, answered": {[]string{call, `{"role":"user","content":[` + result("t1") + `]}`, `{"role":"system","content":"s"}`}, -1, ""},
		"only an unknown role":      {[]string{`{"role":"system","content":"s"}`}, -1, ""},
		"nothing that can be read":  {[]string{`{`, `null`}, -1, ""},
	} {
		p := Make(nil, lists(c.api...), Reply{Kind: Yes}, 1, 2, Options{})
		want := "[" + c.sent + "]"
		if c.sent == "" {
			want = `[{"type":"text","text":"[TASK RESUMPTION] Resuming task..."}]`
		}
		if p.Replace != c.replace || string(p.Content) != want {
			t.Errorf("%s: replaces %d with\n%s, wanted %d and\n%s", name, p.Replace, p.Content, c.replace, want)
		}
	}
}

// A task whose model's side is gone begins again with its first words and pictures.
func TestBeginningAgain(t *testing.T) {
	words := "and more"
	first := `{"ts":1,"type":"say","say":"text","text":"paint","images":["data:image/png;base64,AAAA",5,"data:image/gif;base64,BBBB,CC"]}`
	p := Make(lists(first, asked), nil, Reply{Kind: Message, Text: &words}, 1, 2, Options{})
	var got []string
	for b := range esjson.Array(p.Content) {
		got = append(got, string(b))
	}
	want := []string{
		`{"type":"text","text":"<user_message>\npaint\n</user_message>"}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"BBBB"}}`,
		`{"type":"text","text":"<user_message>\nand more\n</user_message>"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, ui := range [][]string{nil, {asked, firstRow}, {`{"type":"say","say":"text","text":""}`}} {
		p := Make(lists(ui...), nil, Reply{Kind: Yes}, 1, 2, Options{})
		if !strings.Contains(string(p.Content), "[TASK RESUMPTION]") {
			t.Errorf("%s begins with %s", ui, p.Content)
		}
	}
}

// Partial rows are closed only where that is asked for, hidden ones not at all, and
// nothing else of a row changes.
func TestPartialRows(t *testing.T) {
	half := `{"ts":2,"type":"say","say":"text","partial":true,"text":"cut","unknown":[1.0]}`
	ui := lists(firstRow, half, `{"ts":3,"type":"say","say":"reasoning","partial":true,"text":"r"}`)
	if p := Make(ui, nil, Reply{Kind: Yes}, 1, 2, Options{}); len(p.Changed) != 0 {
		t.Errorf("changed %v", p.Changed)
	}
	p := Make(ui, nil, Reply{Kind: Yes}, 1, 2, Options{ClosePartial: true})
	if len(p.Changed) != 1 || p.Changed[0].Index != 1 || string(p.Changed[0].Row) != strings.Replace(half, "true", "false", 1) {
		t.Errorf("changed %+v", p.Changed)
	}
	if !bytes.Contains(ui[1], []byte("true")) {
		t.Error("the row that was given is another one now")
	}
}

// Whatever the lists: nothing is lost and nothing invented. Each row is kept, changed
// but for its mark, or hidden; each message stays but for the last, whose blocks are
// in the new one; and the lists that were given are left as they were.
func TestNothingIsLost(t *testing.T) {
	row := rapid.SampledFrom([]string{firstRow, asked, hanging, thinking, completed, resumed, redone, "null", "{", `{"ts":9,"type":"say","say":"text","text":"x","partial":true}`})
	message := rapid.SampledFrom([]string{
		`{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"b"}]}`, `{"role":"assistant","content":"c"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}`,
		`{"role":"user","content":"s","isSummary":true}`, `{"role":"tool","content":"x"}`, "null", "[",
	})
	rapid.Check(t, func(t *rapid.T) {
		ui, api := lists(rapid.SliceOfN(row, 0, 9).Draw(t, "ui")...), lists(rapid.SliceOfN(message, 0, 6).Draw(t, "api")...)
		before := string(bytes.Join(ui, nil)) + string(bytes.Join(api, nil))
		p := Make(ui, api, Reply{Kind: Yes}, 50, 51, Options{ClosePartial: rapid.Bool().Draw(t, "close")})
		if !slices.IsSorted(p.Hidden) || len(p.Added) != 1 {
			t.Fatalf("hidden %v, %d rows added", p.Hidden, len(p.Added))
		}
		shown := p.UI()
		at := 0
		for i, r := range ui {
			if slices.Contains(p.Hidden, i) {
				continue
			}
			if want := bytes.Replace(r, []byte(`"partial":true`), []byte(`"partial":false`), 1); !bytes.Equal(shown[at], r) && !bytes.Equal(shown[at], want) {
				t.Fatalf("row %d was %s and is %s", i, r, shown[at])
			}
			at++
		}
		kept := p.API()
		if gone := len(api) - len(kept); gone > 1 || gone == 1 && p.Replace != len(api)-1 {
			t.Fatalf("%d messages of %d stay, %d is replaced", len(kept), len(api), p.Replace)
		}
		if p.Replace >= 0 {
			for _, b := range contentBlocks(api[p.Replace]) {
				if !bytes.Contains(p.Content, b) {
					t.Fatalf("%s is in neither list", b)
				}
			}
		}
		// Resuming what a resume left hides its question and asks the same.
		again := Make(shown, kept, Reply{Kind: Yes}, 60, 61, Options{})
		other := slices.ContainsFunc(shown, func(r []byte) bool { return !isResume(r) })
		if again.Ask != p.Ask && len(p.Hidden) == 0 || other && !slices.Contains(again.Hidden, len(shown)-1) {
			t.Fatalf("asks %s, then %s; hides %v of %d", p.Ask, again.Ask, again.Hidden, len(shown))
		}
		if after := string(bytes.Join(ui, nil)) + string(bytes.Join(api, nil)); after != before {
			t.Fatal("the lists that were given have changed")
		}
	})
}
