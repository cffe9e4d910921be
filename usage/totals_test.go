package usage

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

func genRow(t *rapid.T) []byte {
	text := rapid.SampledFrom([]string{`{"tokensIn":100,"tokensOut":7,"cost":0.1}`, `{"tokensIn":3,"cacheReads":5,"cost":0.7}`, `{"cost":1e300}`,
		`{"apiProtocol":"anthropic"}`, `{bad`, ``, `null`, `[1]`, `"ab"`, `{"tokensIn":"5","cost":null}`, `{"cost":1e999}`, `{"cacheWrites":0}`,
		`{"tool":"updateTodoList","todos":[{"id":"a","content":"b","status":"pending"}]}`}).Draw(t, "text")
	kind := rapid.SampledFrom([]string{`"type":"say","say":"api_req_started"`, `"type":"say","say":"api_req_started"`, `"type":"say","say":"api_req_finished"`,
		`"type":"say","say":"condense_context","contextCondense":{"cost":0.3,"newContextTokens":9}`, `"type":"ask","ask":"command"`,
		`"type":"say","say":"command_output"`, `"type":"ask","ask":"use_mcp_server"`, `"type":"say","say":"mcp_server_response"`,
		`"type":"ask","ask":"tool"`, `"type":"ask","ask":"resume_task"`, `"type":"say","say":"text"`,
		`"type":"say","ask":"command_output","say":"api_req_started"`}).Draw(t, "kind")
	if rapid.IntRange(0, 40).Draw(t, "junk") == 0 {
		return []byte(rapid.SampledFrom([]string{`null`, `{`, ``, `{"type":`, `5`}).Draw(t, "raw"))
	}
	return fmt.Appendf(nil, `{"ts":%d,%s,"text":%s}`, rapid.IntRange(1, 9).Draw(t, "ts"), kind, esjson.Quote(nil, text))
}

// What is added row by row is what the joined list adds up to, to the last digit.
func TestTotalsEqualFullScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages [][]byte
		var inc Totals
		for range rapid.IntRange(0, 25).Draw(t, "rows") {
			m := genRow(t)
			messages = append(messages, m)
			inc.Add(m)
			want := Sum(JoinRequests(JoinCommands(messages[1:])))
			if diff := cmp.Diff(want, inc.Tokens()); diff != "" {
				t.Fatalf("after %d rows: %s", len(messages), diff)
			}
			if got, want := string(inc.Todos()), string(LastTodos(messages)); got != want {
				t.Fatalf("todos %s, want %s", got, want)
			}
		}
	})
}

// A row that is written again counts as if it had been so from the start.
func TestUpdateEqualsFullScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := [][]byte{[]byte(`{"ts":1,"type":"say","say":"text","text":"do"}`)}
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			messages = append(messages, genRow(t))
		}
		inc := Of(messages)
		at := rapid.IntRange(0, len(messages)-1).Draw(t, "at")
		next := []byte(`{"ts":77,"type":"say","say":"api_req_started","text":"{\"tokensIn\":41,\"tokensOut\":1,\"cost\":0.2,\"cacheWrites\":3}"}`)
		before := inc.Tokens()
		if !inc.Update(at, next) {
			if inc.Tokens() != before {
				t.Fatal("a refused update changed the sums")
			}
			return
		}
		messages[at] = next
		full := Of(messages)
		if diff := cmp.Diff(full.Tokens(), inc.Tokens()); diff != "" {
			t.Fatal(diff)
		}
		r := Row{ID: "x", Number: 1, Size: 4}
		if diff := cmp.Diff(string(full.HistoryItem(r)), string(inc.HistoryItem(r))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPriceMicros(t *testing.T) {
	two := 2.0
	for _, tc := range []struct {
		name  string
		style Style
		p     Prices
		r     Request
		want  int64
	}{
		{"whole", Anthropic, Prices{Input: 3, Output: 15}, Request{Input: 1000, Output: 10}, 3150},
		{"half goes up", OpenAI, Prices{Input: 0.5}, Request{Input: 1}, 1},
		{"below half goes down", OpenAI, Prices{Input: 0.3}, Request{Input: 1}, 0},
		{"parts are rounded once, together", Anthropic, Prices{Input: 0.3, Output: 0.3}, Request{Input: 1, Output: 1}, 1},
		{"cache is not input in OpenAI's counting", OpenAI, Prices{Input: 10, CacheReads: 1}, Request{Input: 100, CacheReads: 90}, 190},
		{"long context", Anthropic, Prices{Input: 1, LongContext: &LongContext{Threshold: 9, Input: &two}}, Request{Input: 10}, 20},
		{"at the threshold", Anthropic, Prices{Input: 1, LongContext: &LongContext{Threshold: 10, Input: &two}}, Request{Input: 10}, 10},
		{"too much for an int64", OpenAI, Prices{Input: 1e12}, Request{Input: 1 << 62}, math.MaxInt64},
		{"no price below zero", OpenAI, Prices{Input: -5}, Request{Input: 10}, 0},
	} {
		if got := Price(tc.style, tc.p, tc.r).Micros; got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if MicrosOf(0.0189) != 18900 || MicrosOf(-1) != 0 || MicrosOf(math.NaN()) != 0 || MicrosOf(math.Inf(1)) != math.MaxInt64 {
		t.Error("MicrosOf")
	}
}

func FuzzTotals(f *testing.F) {
	f.Add([]byte(`{"type":"say","say":"api_req_started","text":"{}"}`), []byte(`{"type":"ask","ask":"use_mcp_server","text":"["}`))
	f.Add([]byte(`{"type":"say"`), []byte(`{"a`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		messages := [][]byte{a, b, []byte(`{"type":"say","say":"mcp_server_response","text":"x"}`), a}
		item := HistoryItem(messages, Row{ID: "x"})
		JoinRequests(JoinCommands(messages))
		if esjson.Valid(a) && esjson.Valid(b) && !esjson.Valid(item) {
			t.Fatalf("%s", item)
		}
	})
}

func BenchmarkTotalsAdd(b *testing.B) {
	m := []byte(`{"ts":1776200000450,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\",\"tokensIn\":9000,\"tokensOut\":60,\"cacheWrites\":8900,\"cacheReads\":0,\"cost\":0.034}"}`)
	var t Totals
	for b.Loop() {
		t.Add(m)
	}
}

func ExampleTotals() {
	var t Totals
	t.Add([]byte(`{"ts":1,"type":"say","say":"text","text":"list files"}`))
	t.Add([]byte(`{"ts":2,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"tokensOut\":2,\"cost\":0.5}"}`))
	fmt.Printf("%s\n", t.HistoryItem(Row{ID: "a", Number: 1, Size: 4096}))
	// Output: {"id":"a","number":1,"ts":2,"task":"list files","tokensIn":10,"tokensOut":2,"totalCost":0.5,"size":4096}
}
