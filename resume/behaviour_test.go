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
		"one whose text is null":          {[]string{firstRow, `{"type":"say","say":"api_req_started","text":"null"}`}, "[]", AskTask},
		"one whose text is no object":     {[]string{firstRow, `{"type":"say","say":"api_req_started","text":"7"}`}, "[1]", AskTask},
		"rows that are no rows":           {[]string{"null", "5", `"x"`, "[]", "{"}, "[]", AskTask},
	} {
		p := Rows(lists(c.ui...))
		if got := fmt.Sprint(p.Hidden); got != c.gone || p.Ask != c.ask {
			t.Errorf("%s: %s go and %s is asked, wanted %s and %s", name, got, p.Ask, c.gone, c.ask)
		}
	}
}

// A task whose model's side is gone begins again with its first words and pictures.
func TestBeginningAgain(t *testing.T) {
	first := `{"ts":1,"type":"say","say":"text","text":"paint","images":["data:image/png;base64,AAAA",5,"data:image/gif;base64,BBBB,CC"]}`
	var got []string
	for _, b := range FirstWords(lists(first, asked)) {
		got = append(got, string(b))
	}
	want := []string{
		`{"type":"text","text":"<user_message>\npaint\n</user_message>"}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"BBBB"}}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, ui := range [][]string{nil, {asked, firstRow}, {`{"type":"say","say":"text","text":""}`}} {
		if got := esjson.List(FirstWords(lists(ui...))); string(got) != `[{"type":"text","text":"[TASK RESUMPTION] Resuming task..."}]` {
			t.Errorf("%s begins with %s", ui, got)
		}
	}
}

// Partial rows are closed, hidden ones not at all, and nothing else of a row changes.
func TestPartialRows(t *testing.T) {
	half := `{"ts":2,"type":"say","say":"text","partial":true,"text":"cut","unknown":[1.0]}`
	ui := lists(firstRow, half, `{"ts":3,"type":"say","say":"reasoning","partial":true,"text":"r"}`)
	p := Rows(ui)
	if len(p.Changed) != 1 || p.Changed[0].Index != 1 || string(p.Changed[0].Row) != strings.Replace(half, "true", "false", 1) {
		t.Errorf("changed %+v", p.Changed)
	}
	if !bytes.Contains(ui[1], []byte("true")) {
		t.Error("the row that was given is another one now")
	}
}

// carriedOut is the list as it is shown when the plan was followed, without its question.
func carriedOut(ui [][]byte, p Plan) (out [][]byte) {
	changed := map[int][]byte{}
	for _, c := range p.Changed {
		changed[c.Index] = c.Row
	}
	for i, row := range ui {
		if with, ok := changed[i]; ok {
			row = with
		}
		if !slices.Contains(p.Hidden, i) {
			out = append(out, row)
		}
	}
	return out
}

// Whatever the rows: each is kept, changed but for its mark, or hidden; and the list that
// was given is left as it was.
func TestNothingIsLost(t *testing.T) {
	row := rapid.SampledFrom([]string{firstRow, asked, hanging, thinking, completed, resumed, redone, "null", "{", "", "5", `{"ts":9,"type":"say","say":"text","text":"x","partial":true}`})
	rapid.Check(t, func(t *rapid.T) {
		ui := lists(rapid.SliceOfN(row, 0, 9).Draw(t, "ui")...)
		before := string(bytes.Join(ui, nil))
		p := Rows(ui)
		if !slices.IsSorted(p.Hidden) || len(slices.Compact(slices.Clone(p.Hidden))) != len(p.Hidden) {
			t.Fatalf("hidden %v", p.Hidden)
		}
		for _, c := range p.Changed {
			if want := bytes.Replace(ui[c.Index], []byte(`"partial":true`), []byte(`"partial":false`), 1); !bytes.Equal(c.Row, want) || slices.Contains(p.Hidden, c.Index) {
				t.Fatalf("row %d was %s and is %s", c.Index, ui[c.Index], c.Row)
			}
		}
		// Resuming what a resume left hides its question and asks the same.
		shown := append(carriedOut(ui, p), []byte(`{"ts":50,"type":"ask","ask":"`+p.Ask+`"}`))
		again := Rows(shown)
		other := slices.ContainsFunc(shown, func(r []byte) bool { return !isResume(r) })
		if again.Ask != p.Ask && len(p.Hidden) == 0 || other && !slices.Contains(again.Hidden, len(shown)-1) {
			t.Fatalf("asks %s, then %s; hides %v of %d", p.Ask, again.Ask, again.Hidden, len(shown))
		}
		if after := string(bytes.Join(ui, nil)); after != before {
			t.Fatal("the rows that were given have changed")
		}
	})
}
