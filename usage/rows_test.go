package usage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// list makes raw messages of texts.
func rows(texts ...string) [][]byte {
	out := make([][]byte, len(texts))
	for i, s := range texts {
		out[i] = []byte(s)
	}
	return out
}

const talk = `{"ts":5,"type":"say","say":"text","text":"so"}`

func started(text string) string {
	return fmt.Sprintf(`{"ts":6,"type":"say","say":"api_req_started","text":%s}`, esjson.Quote(nil, text))
}

func finished(text string) string {
	return fmt.Sprintf(`{"ts":7,"type":"say","say":"api_req_finished","text":%s}`, esjson.Quote(nil, text))
}

// A task of 2024 tells of a request in two rows. The history row makes one of them, as
// Roo does; the sums add what both say, and count one whose first row is gone.
func TestRequestsInTwoRows(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []string
		item float64 // cost in the history row
		sum  float64 // and in the task's sums
	}{
		{"a pair", []string{started(`{"request":"r"}`), finished(`{"cost":1}`)}, 1, 1},
		{"two that are open", []string{started(`{}`), started(`{}`), finished(`{"cost":2}`), finished(`{"cost":3}`)}, 5, 5},
		{"finished twice", []string{started(`{}`), finished(`{"cost":2}`), finished(`{"cost":3}`)}, 2, 5},
		{"finished, never started", []string{finished(`{"cost":2}`), started(`{"cost":1}`)}, 1, 3},
		{"one that says it twice", []string{started(`{"cost":1,"tokensIn":1}`), finished(`{"cost":2}`)}, 2, 3},
		{"one that says it is nothing", []string{started(`{"cost":1}`), finished(`{"cost":null}`)}, 0, 1},
		{"broken texts", []string{started(`{bad`), finished(`{"cost":2}`), started(`{"cost":1}`), finished(`worse`)}, 3, 3},
		{"texts that are no object", []string{started(`7`), finished(`[{"cost":2}]`)}, 0, 0},
		{"one that is asked", []string{started(`{}`), `{"type":"ask","ask":"api_req_finished","text":"{\"cost\":9}"}`}, 0, 0},
	} {
		list := rows(append([]string{talk}, c.rows...)...)
		if got, _ := esjson.GetFloat(HistoryItem(list, Row{}), "totalCost"); got != c.item {
			t.Errorf("%s: %v in the history row, want %v", c.name, got, c.item)
		}
		if got := Sum(list).Cost; got != c.sum {
			t.Errorf("%s: %v in all, want %v", c.name, got, c.sum)
		}
	}
}

func TestSum(t *testing.T) {
	condense := `{"ts":8,"type":"say","say":"condense_context","contextCondense":{"cost":0.1,"newContextTokens":42}}`
	for _, c := range []struct {
		name string
		rows []string
		want Tokens
	}{
		{"nothing", nil, Tokens{}},
		{"a request", []string{started(`{"tokensIn":100,"tokensOut":10,"cacheReads":50,"cost":0.5}`)}, Tokens{In: 100, Out: 10, CacheReads: 50, Cost: 0.5, ContextTokens: 110, HasCacheReads: true}},
		{"then a condensation", []string{started(`{"tokensIn":100,"tokensOut":10,"cost":0.5}`), condense}, Tokens{In: 100, Out: 10, Cost: 0.6, ContextTokens: 42}},
		{"an empty request after it changes no size", []string{condense, started(`{}`)}, Tokens{Cost: 0.1, ContextTokens: 42}},
		{"a request that is broken", []string{condense, started(`{bad`)}, Tokens{Cost: 0.1, ContextTokens: 42}},
		{"a condensation without its member", []string{`{"type":"say","say":"condense_context"}`, `{"type":"say","say":"condense_context","contextCondense":null}`}, Tokens{}},
		{"numbers that are none", []string{started(`{"tokensIn":"5","tokensOut":null,"cacheWrites":true,"cost":[1]}`)}, Tokens{}},
		{"numbers beyond all bounds", []string{started(`{"tokensIn":1e999,"cost":-1e999,"tokensOut":2}`)}, Tokens{Out: 2, ContextTokens: 2}},
		{"a member twice: the last one counts", []string{started(`{"tokensIn":1,"tokensIn":2}`)}, Tokens{In: 2, ContextTokens: 2}},
		{"zero is a number", []string{started(`{"cacheWrites":0,"cacheReads":0}`)}, Tokens{HasCacheWrites: true, HasCacheReads: true}},
		{"rows that a restore deleted do not count", []string{`{"type":"say","say":"api_req_deleted","text":"{\"cost\":9}"}`}, Tokens{}},
		{"an ask of that name is no request", []string{`{"type":"ask","ask":"api_req_started","text":"{\"cost\":9}"}`}, Tokens{}},
	} {
		if d := cmp.Diff(c.want, Sum(rows(c.rows...))); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.name, d)
		}
	}
}

// The first row is the task's own words and never counts, whatever it says it is; nor
// does what a command put out.
func TestWhatAHistoryRowDoesNotCount(t *testing.T) {
	list := rows(started(`{"tokensIn":5}`), started(`{"tokensIn":7}`), `{"type":"say","ask":"command_output","say":"api_req_started","text":"{\"tokensIn\":9}"}`)
	if got, _ := esjson.GetFloat(HistoryItem(list, Row{}), "tokensIn"); got != 7 {
		t.Errorf("%v tokens", got)
	}
}

func TestHistoryItem(t *testing.T) {
	first := `{"ts":11,"type":"say","say":"text","text":" \n do it\t"}`
	for _, c := range []struct {
		name string
		rows []string
		row  Row
		want string
	}{
		{"no messages", nil, Row{ID: "a", Number: 2, Size: 9, Now: 77}, `{"id":"a","number":2,"ts":77,"task":"Task #2 (No messages)","tokensIn":0,"tokensOut":0,"cacheWrites":0,"cacheReads":0,"totalCost":0,"size":0}`},
		{"the title is trimmed and whole", []string{first}, Row{ID: "a", Number: 1}, `{"id":"a","number":1,"ts":11,"task":"do it","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
		{"no title", []string{`{"ts":11,"type":"say","say":"text","text":"\u2003\ufeff"}`}, Row{ID: "a", Number: 3}, `{"id":"a","number":3,"ts":11,"task":"Task #3 (Incomplete)","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
		{"resume questions are no activity", []string{first, `{"ts":20,"type":"say","say":"text"}`, `{"ts":30,"type":"ask","ask":"resume_task"}`, `{"ts":40,"type":"ask","ask":"resume_completed_task"}`}, Row{ID: "a"}, `{"id":"a","number":0,"ts":20,"task":"do it","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
		{"only resume questions", []string{`{"ts":30,"type":"ask","ask":"resume_task"}`}, Row{ID: "a"}, `{"id":"a","number":0,"ts":30,"task":"Task #0 (Incomplete)","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
		{"everything", []string{first}, Row{ID: "a", RootTask: "r", ParentTask: "p", Number: 1, Size: 5, Workspace: "/w", Mode: "code", Profile: "default", Status: "active"},
			`{"id":"a","rootTaskId":"r","parentTaskId":"p","number":1,"ts":11,"task":"do it","tokensIn":0,"tokensOut":0,"totalCost":0,"size":5,"workspace":"/w","mode":"code","apiConfigName":"default","status":"active"}`},
		{"a ts that is no number passes through", []string{`{"ts":"soon","type":"say","say":"text","text":"x"}`}, Row{ID: "a"}, `{"id":"a","number":0,"ts":"soon","task":"x","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
		{"half a character in the title", []string{`{"ts":1,"type":"say","say":"text","text":"a\ud800"}`}, Row{ID: "a"}, `{"id":"a","number":0,"ts":1,"task":"a\ud800","tokensIn":0,"tokensOut":0,"totalCost":0,"size":0}`},
	} {
		if got := string(HistoryItem(rows(c.rows...), c.row)); got != c.want {
			t.Errorf("%s: got %s\n%s, want got = %v", c.name, got, c.want, c.want)
		}
	}
}

func TestParseTodos(t *testing.T) {
	for text, want := range map[string][]string{
		"[ ] a\n[x] b\n[-] c\n[~] d\n[X] e": {"pending a", "completed b", "in_progress c", "in_progress d", "completed e"},
		"- [ ] with a dash\n-[x]  two":      {"pending with a dash", "completed two"},
		"  [ ] indented \r\n\t[x] tab\t":    {"pending indented", "completed tab"},
		"[] no mark\n[y] odd mark\n[ ]none": nil,
		"[ ]\n[ ] \nplain\n\n* [ ] star":    nil,
		"[ x ] blanks around":               {"completed blanks around"},
		"[\t] a tab is no mark":             nil,
		"[ ] a [x] b":                       {"pending a [x] b"},
	} {
		var got []string
		for _, todo := range ParseTodos(text) {
			got = append(got, todo.Status+" "+todo.Content)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", text, d)
		}
	}
	// The id follows content and status, so that the same line is the same todo.
	a, b := NewTodo("a", Pending), NewTodo("a", Completed)
	if a.ID == b.ID || a != NewTodo("a", Pending) || len(a.ID) != 32 || strings.ToLower(a.ID) != a.ID {
		t.Errorf("got %+v %+v, want a.ID != b.ID and a = NewTodo(\"a\", Pending) and len(a.ID) = 32 and strings.ToLower(a.ID) = a.ID",
			a, b)
	}
	if NewTodo("x\xed\xa0\x80", Pending).ID != NewTodo("x\uFFFD", Pending).ID {
		t.Error("half a character is hashed as another one than Node writes")
	}
}

// The newest list counts, whoever wrote it and however it was answered.
func TestLastTodos(t *testing.T) {
	list := func(kind, text string) string {
		typ, k, _ := strings.Cut(kind, ":")
		return fmt.Sprintf(`{"ts":1,"type":%q,%q:%q,"text":%s}`, typ, typ, k, esjson.Quote(nil, text))
	}
	one, two := `{"tool":"updateTodoList","todos":[{"id":"1"}]}`, `{"tool":"updateTodoList","todos":[]}`
	for name, c := range map[string]struct {
		rows []string
		want string
	}{
		"none":                          {[]string{talk}, ""},
		"one":                           {[]string{list("ask:tool", one), talk}, `[{"id":"1"}]`},
		"emptied":                       {[]string{list("ask:tool", one), list("ask:tool", two)}, `[]`},
		"changed by the person":         {[]string{list("ask:tool", two), list("say:user_edit_todos", one)}, `[{"id":"1"}]`},
		"another tool's":                {[]string{list("ask:tool", one), list("ask:tool", `{"tool":"readFile","todos":[7]}`)}, `[{"id":"1"}]`},
		"a list that is none":           {[]string{list("ask:tool", one), list("ask:tool", `{"tool":"updateTodoList","todos":"x"}`)}, `[{"id":"1"}]`},
		"a row that only looks like it": {[]string{list("ask:tool", one), list("say:tool", two), list("ask:followup", two)}, `[{"id":"1"}]`},
		"broken":                        {[]string{list("ask:tool", one), list("ask:tool", two[:20])}, `[{"id":"1"}]`},
	} {
		all := rows(c.rows...)
		if got := string(LastTodos(all)); got != c.want {
			t.Errorf("%s: got %s, want got = %v", name, got, c.want)
		}
	}
}
