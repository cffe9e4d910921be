package usage

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func command(text string) string {
	return fmt.Sprintf(`{"ts":1,"type":"ask","ask":"command","text":%s}`, esjson.Quote(nil, text))
}

func output(kind, text string) string {
	return fmt.Sprintf(`{"ts":2,"type":%q,%q:"command_output","text":%s}`, kind, kind, esjson.Quote(nil, text))
}

func mcp(text string) string {
	return fmt.Sprintf(`{"ts":3,"type":"ask","ask":"use_mcp_server","text":%s}`, esjson.Quote(nil, text))
}

func response(text string) string {
	return fmt.Sprintf(`{"ts":4,"type":"say","say":"mcp_server_response","text":%s}`, esjson.Quote(nil, text))
}

const talk = `{"ts":5,"type":"say","say":"text","text":"so"}`

func texts(messages [][]byte) []string {
	out := []string{}
	for _, m := range messages {
		s, _ := esjson.GetString(m, "text")
		out = append(out, s)
	}
	return out
}

func TestJoinCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []string
		want []string // the texts of what is left
	}{
		{"nothing", nil, []string{}},
		{"a command without output", []string{command("ls"), talk}, []string{"ls", "so"}},
		{"asked and said", []string{command("ls"), output("ask", ""), output("say", "a"), output("ask", "a"), output("say", "b"), talk, output("say", "late")}, []string{"ls\nOutput:a\nb\nlate", "so"}},
		{"the same line twice from one side", []string{command("ls"), output("say", "a"), output("say", "a")}, []string{"ls\nOutput:a\na"}},
		{"the same line from both sides", []string{command("ls"), output("ask", "a"), output("say", "a")}, []string{"ls\nOutput:a"}},
		{"each command has its own", []string{command("a"), output("say", "1"), command("b"), output("say", "2")}, []string{"a\nOutput:1", "b\nOutput:2"}},
		{"a command that says Output: itself", []string{command("echo Output:"), output("say", "x"), output("say", "y")}, []string{"echo Output:\nOutput:x\ny"}},
		{"empty outputs", []string{command("true"), output("ask", ""), output("say", "")}, []string{"true\nOutput:"}},
		{"output of no command", []string{output("say", "lost"), talk}, []string{"so"}},
		{"a response of nobody", []string{response("lost"), talk}, []string{"so"}},
		{"one question, two responses", []string{mcp(`{"serverName":"s"}`), talk, response("1"), response("2")}, []string{`{"serverName":"s","response":"1\n2"}`, "so"}},
		{"a response for each question", []string{mcp(`{"a":1}`), response("1"), mcp(`{"b":1}`), response("2")}, []string{`{"a":1,"response":"1"}`, `{"b":1,"response":"2"}`}},
		{"a question whose text is broken", []string{mcp(`{bad`), response("1")}, []string{`{"response":"1"}`}},
		{"a question whose text is a list", []string{mcp(`[1]`), response("1")}, []string{`[1]`}},
		{"a question whose text is a number", []string{mcp(`7`), response("1")}, []string{`{"response":"1"}`}},
		{"a question without a response", []string{mcp(`{"a":1}`), talk}, []string{`{"a":1}`, "so"}},
		{"a question between a command and its output", []string{command("ls"), mcp(`{"a":1}`), response("r"), output("say", "x")}, []string{"ls\nOutput:x", `{"a":1,"response":"r"}`}},
	} {
		got := texts(JoinCommands(rows(c.rows...)))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Rows that take no part come back as the very bytes that went in.
func TestJoinLeavesTheOthersAlone(t *testing.T) {
	odd := rows(`{ "ts" : 1.0, "type":"say","say":"text","text":"x" , "novel":[1, 2] }`, `null`, `{`, ``, `7`, `{"type":"ask","ask":"tool","text":null}`)
	for _, join := range []func([][]byte) [][]byte{JoinCommands, JoinRequests} {
		got := join(odd)
		if len(got) != len(odd) {
			t.Fatalf("%d rows of %d", len(got), len(odd))
		}
		for i := range odd {
			if len(odd[i]) > 0 && &got[i][0] != &odd[i][0] {
				t.Errorf("row %d was copied: %s", i, got[i])
			}
		}
	}
	// A row that was joined keeps its other members and their order.
	got := JoinCommands(rows(`{"ts":1,"isProtected":false,"type":"ask","ask":"command","text":"ls","x":{"y": 1}}`, output("say", "a")))
	if want := `{"ts":1,"isProtected":false,"type":"ask","ask":"command","text":"ls\nOutput:a","x":{"y": 1}}`; string(got[0]) != want {
		t.Errorf("%s", got[0])
	}
}

func started(text string) string {
	return fmt.Sprintf(`{"ts":6,"type":"say","say":"api_req_started","text":%s}`, esjson.Quote(nil, text))
}

func finished(text string) string {
	return fmt.Sprintf(`{"ts":7,"type":"say","say":"api_req_finished","text":%s}`, esjson.Quote(nil, text))
}

func TestJoinRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"one row is returned as it is", []string{finished(`{"cost":1}`)}, []string{`{"cost":1}`}},
		{"a pair", []string{started(`{"request":"r"}`), finished(`{"cost":1}`)}, []string{`{"request":"r","cost":1}`}},
		{"the newest open one takes it", []string{started(`{"a":1}`), started(`{"b":1}`), finished(`{"cost":2}`), finished(`{"cost":3}`)}, []string{`{"a":1,"cost":3}`, `{"b":1,"cost":2}`}},
		{"finished twice", []string{started(`{"a":1}`), finished(`{"cost":2}`), finished(`{"cost":3}`)}, []string{`{"a":1,"cost":2}`}},
		{"finished before it started", []string{finished(`{"cost":2}`), started(`{"a":1}`)}, []string{`{"a":1}`}},
		{"the finished one wins", []string{started(`{"cost":1,"x":1}`), finished(`{"cost":2}`)}, []string{`{"cost":2,"x":1}`}},
		{"broken texts count as nothing", []string{started(`{bad`), finished(`{"cost":2}`)}, []string{`{"cost":2}`}},
		{"both broken", []string{started(`{bad`), finished(`worse`)}, []string{`{}`}},
		{"a list spreads by its places", []string{started(`{"a":1}`), finished(`["x",2]`)}, []string{`{"0":"x","1":2,"a":1}`}},
		{"a string spreads by its units", []string{started(`"a😀"`), finished(`{}`)}, []string{`{"0":"a","1":"\ud83d","2":"\ude00"}`}},
		{"a number spreads to nothing", []string{started(`7`), finished(`null`)}, []string{`{}`}},
		{"between others", []string{talk, started(`{"a":1}`), talk, finished(`{"cost":1}`), talk}, []string{"so", `{"a":1,"cost":1}`, "so", "so"}},
	} {
		got := texts(JoinRequests(rows(c.rows...)))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
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
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// The first row is the task's own words and never counts, whatever it says it is.
func TestTheFirstRowIsTheTask(t *testing.T) {
	all := Of(rows(started(`{"tokensIn":5}`), started(`{"tokensIn":7}`)))
	if got := all.Tokens().In; got != 7 {
		t.Errorf("%v tokens", got)
	}
	if all.Rows() != 2 {
		t.Errorf("%d rows", all.Rows())
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
			t.Errorf("%s:\n%s\n%s", c.name, got, c.want)
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
			t.Errorf("%q: %s", text, d)
		}
	}
	// The id follows content and status, so that the same line is the same todo.
	a, b := NewTodo("a", Pending), NewTodo("a", Completed)
	if a.ID == b.ID || a != NewTodo("a", Pending) || len(a.ID) != 32 || strings.ToLower(a.ID) != a.ID {
		t.Errorf("%+v %+v", a, b)
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
			t.Errorf("%s: %s", name, got)
		}
		if got := string(Of(all).Todos()); got != c.want {
			t.Errorf("%s, row by row: %s", name, got)
		}
	}
}

func TestPriceOfBothStyles(t *testing.T) {
	p := Prices{Input: 3, Output: 15, CacheWrites: 3.75, CacheReads: 0.3}
	for _, c := range []struct {
		style Style
		r     Request
		input int64
		usd   float64
	}{
		{Anthropic, Request{Input: 1000, Output: 500, CacheWrites: 2000, CacheReads: 3000}, 6000, 0.0189},
		{OpenAI, Request{Input: 6000, Output: 500, CacheWrites: 2000, CacheReads: 3000}, 6000, 0.0189},
		{OpenAI, Request{Input: 1000, Output: 500, CacheWrites: 2000, CacheReads: 3000}, 1000, 0.0159},
		{OpenAI, Request{}, 0, 0},
	} {
		got := Price(c.style, p, c.r)
		if got.Input != c.input || math.Abs(got.USD-c.usd) > 1e-12 || got.Micros != int64(math.Round(c.usd*1e6)) || got.Output != c.r.Output {
			t.Errorf("%s %+v: %+v", c.style, c.r, got)
		}
	}
}

func TestLongContextTiers(t *testing.T) {
	half, two := 0.5, 2.0
	for name, c := range map[string]struct {
		tiers []string
		tier  string
		input int64
		want  int64
	}{
		"below":                      {nil, "", 100, 100},
		"above":                      {nil, "", 101, 202},
		"a tier it is meant for":     {[]string{"flex", "default"}, "flex", 200, 400},
		"no tier is the default":     {[]string{"default"}, "", 200, 400},
		"a tier it is not meant for": {[]string{"default"}, "priority", 200, 200},
		"no tier at all":             {[]string{}, "", 200, 200},
	} {
		p := Prices{Input: 1, Output: 4, LongContext: &LongContext{Threshold: 100, Input: &two, Output: &half, Tiers: c.tiers}}
		if got := Price(OpenAI, p, Request{Input: c.input, Tier: c.tier}).Micros; got != c.want {
			t.Errorf("%s: %d", name, got)
		}
		if p.Input != 1 || p.Output != 4 {
			t.Errorf("%s: the prices themselves changed", name)
		}
	}
}

// More tokens never cost less, and parts never cost more than the whole by more
// than their rounding.
func TestPriceIsMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Float64Range(0, 1000)
		p := Prices{price.Draw(t, "input"), price.Draw(t, "output"), price.Draw(t, "writes"), price.Draw(t, "reads"), nil}
		tokens := rapid.Int64Range(0, 1<<40)
		a := Request{Input: tokens.Draw(t, "a in"), Output: tokens.Draw(t, "a out"), CacheWrites: tokens.Draw(t, "a writes"), CacheReads: tokens.Draw(t, "a reads")}
		b := Request{Input: a.Input + tokens.Draw(t, "more"), Output: a.Output, CacheWrites: a.CacheWrites, CacheReads: a.CacheReads}
		ca, cb := Price(Anthropic, p, a), Price(Anthropic, p, b)
		if ca.Micros < 0 || cb.Micros < ca.Micros || cb.USD < ca.USD {
			t.Fatalf("%+v costs %+v, %+v costs %+v", a, ca, b, cb)
		}
		if diff := math.Abs(float64(ca.Micros) - ca.USD*1e6); diff > 1+ca.USD*1e-6+float64(a.Input+a.Output+a.CacheWrites+a.CacheReads)*1e-6 {
			t.Fatalf("%d micros are not %v USD", ca.Micros, ca.USD)
		}
	})
}

// An update of any row that is no open request is refused and changes nothing.
func TestUpdateRefuses(t *testing.T) {
	all := rows(`{"ts":1,"type":"say","say":"text","text":"do"}`, started(`{"tokensIn":5,"cost":1}`), talk, started(`{"tokensIn":7}`), finished(`{"cost":2}`))
	next := []byte(started(`{"tokensIn":100}`))
	for at, want := range map[int]bool{0: false, 1: true, 2: false, 3: false, 4: false, 5: false, -1: false} {
		x := Of(all)
		before := x.Tokens()
		if got := x.Update(at, next); got != want {
			t.Errorf("row %d: %v", at, got)
		} else if !want && x.Tokens() != before {
			t.Errorf("row %d: refused, and counted", at)
		}
	}
	x := Of(all)
	if x.Update(1, []byte(talk)) || x.Update(1, []byte(`{`)) || x.Update(1, nil) {
		t.Error("a request row became something else")
	}
}
