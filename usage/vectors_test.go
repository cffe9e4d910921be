package usage

import (
	"fmt"
	"math"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

func (s Tokens) json() []byte {
	var o esjson.Object
	o.Float("totalTokensIn", s.In)
	o.Float("totalTokensOut", s.Out)
	if s.HasCacheWrites {
		o.Float("totalCacheWrites", s.CacheWrites)
	}
	if s.HasCacheReads {
		o.Float("totalCacheReads", s.CacheReads)
	}
	o.Float("totalCost", s.Cost)
	o.Float("contextTokens", s.ContextTokens)
	return o.Bytes()
}

// metricsQuirks says by the input alone where we differ from Roo.
func metricsQuirks(messages [][]byte) (sameTS, badMCP, mcpInCommand, badTokens bool) {
	rows := make([]row, len(messages))
	byTS := map[string][]int{}
	for i, m := range messages {
		rows[i] = parseRow(m)
		f, _ := esjson.Double(rows[i].ts)
		key := fmt.Sprint(f, rows[i].ts == nil)
		byTS[key] = append(byTS[key], i)
	}
	for _, at := range byTS {
		for _, i := range at {
			if len(at) > 1 && (rows[i].isAsk("command") || rows[i].isAsk("use_mcp_server")) {
				sameTS = true
			}
		}
	}
	for i, r := range rows {
		if r.isAsk("use_mcp_server") && esjson.Valid([]byte(esjson.Text(r.text))) {
			switch esjson.TypeOf([]byte(esjson.Text(r.text))) {
			case esjson.TypeObject, esjson.TypeArray:
			default:
				badMCP = true
			}
		}
		if r.isAsk("command") {
			mcp := false
			for _, n := range rows[i+1:] {
				if n.isAsk("command") {
					break
				}
				mcp = mcp || n.isAsk("use_mcp_server")
				mcpInCommand = mcpInCommand || mcp && n.isOutput()
			}
		}
		if r.isSay("api_req_started") || r.isSay("api_req_finished") {
			text := []byte(esjson.Text(r.text))
			if !esjson.Valid(text) || esjson.TypeOf(text) != esjson.TypeObject {
				continue
			}
			for _, key := range []string{"tokensIn", "tokensOut"} {
				val, ok := esjson.Get(text, key)
				if typ := esjson.TypeOf(val); ok && typ != esjson.TypeNumber && typ != esjson.TypeNull {
					badTokens = true
				}
			}
		}
	}
	return
}

// spentIn is what a task shows of a list: the small records of its rows, added up.
func spentIn(t *testing.T, messages [][]byte) (sum Tokens) {
	t.Helper()
	for _, m := range messages {
		s, ok := SpentIn(m)
		if !ok {
			continue
		}
		s.AddTo(&sum)
	}
	return sum
}

// inRow is what the history row of a task with these messages says of them.
func inRow(t *testing.T, messages [][]byte) []byte {
	t.Helper()
	item := HistoryItem(append([][]byte{[]byte(talk)}, messages...), Row{ID: "x"})
	if !esjson.Valid(item) {
		t.Fatalf("got %s, want esjson.Valid(item)", item)
	}
	v := conformance.Value(item)
	return withoutSize(Tokens{
		In: v.Float("tokensIn"), Out: v.Float("tokensOut"), Cost: v.Float("totalCost"),
		CacheWrites: v.Float("cacheWrites"), HasCacheWrites: v.Has("cacheWrites"),
		CacheReads: v.Float("cacheReads"), HasCacheReads: v.Has("cacheReads"),
	}.json())
}

// Two things are held against Roo's sums, and both are what people see: the history row,
// which has Roo's digits (its usage after joining), and the sums of a task's rows (its
// usage of the list as it is). Where commands or MCP questions confuse Roo, the row has
// what Roo itself gets when it joins requests only.
func TestVectorsMetrics(t *testing.T) {
	conformance.Run(t, "metrics", func(t *testing.T, v conformance.Case) (choice bool) {
		messages := v.Input.Get("messages").List()
		sameTS, badMCP, mcpInCommand, badTokens := metricsQuirks(messages)
		sum, row := spentIn(t, messages), inRow(t, messages)
		if v.Want.Has("error") {
			if !badMCP {
				t.Error("Roo throws and no rule says why")
			}
			v.Same(t, "row", row, esjson.Remove(sum.json(), "contextTokens"))
			return true
		}
		joined := v.Want.Get("api_requests").List()
		v.Same(t, "row of requests", row, withoutSize(spentIn(t, counted(joined)).json()))
		if sameTS || badMCP || mcpInCommand {
			choice = true
		} else {
			v.Same(t, "row", row, withoutSize(v.Want.Get("usage_pipeline")))
		}
		var old [][]byte
		for _, m := range messages {
			if parseRow(m).isSay("api_req_finished") {
				old = append(old, m)
			}
		}
		if old == nil {
			v.Same(t, "sum", rest(sum, badTokens), rest2(v.Want.Get("usage_plain"), badTokens))
			return choice || badTokens
		}
		// Roo's own sum of the plain list leaves the ends of old requests out, ours adds
		// what they say.
		more, plain := spentIn(t, old), v.Want.Get("usage_plain")
		for key, n := range map[string][2]float64{"totalTokensIn": {sum.In, more.In}, "totalTokensOut": {sum.Out, more.Out},
			"totalCacheWrites": {sum.CacheWrites, more.CacheWrites}, "totalCacheReads": {sum.CacheReads, more.CacheReads}, "totalCost": {sum.Cost, more.Cost}} {
			if want := conformance.Value(plain).Float(key) + n[1]; math.Abs(n[0]-want) > 1e-9*max(1, math.Abs(want)) {
				t.Errorf("%s is %v, want %v", key, n[0], want)
			}
		}
		return true
	})
}

// counted leaves out what a history row never counts: the output of commands, and the
// end of a request that never began (Roo leaves a list of one row as it is).
func counted(messages [][]byte) (out [][]byte) {
	for _, m := range messages {
		if r := parseRow(m); !r.isOutput() && !r.isSay("api_req_finished") {
			out = append(out, m)
		}
	}
	return out
}

func withoutSize(raw []byte) []byte { return esjson.Remove(raw, "contextTokens") }

// rest and rest2 leave out the context size, where Roo's is no number.
func rest(s Tokens, cut bool) []byte { return rest2(s.json(), cut) }

func rest2(raw []byte, cut bool) []byte {
	if cut {
		return withoutSize(raw)
	}
	return raw
}

func TestVectorsHistoryItem(t *testing.T) {
	conformance.Run(t, "history_item", func(t *testing.T, v conformance.Case) (choice bool) {
		messages := v.Input.Get("messages").List()
		sameTS, badMCP, mcpInCommand, _ := metricsQuirks(messages)
		str := v.Input.Str
		num := func(key string) int64 { return v.Input.Int(key, 0) }
		got := HistoryItem(messages, Row{ID: str("id"), RootTask: str("rootTaskId"), ParentTask: str("parentTaskId"),
			Number: num("number"), Size: num("folder_size"), Workspace: str("workspace"), Mode: str("mode"),
			Profile: str("apiConfigName"), Status: str("initialStatus"), Now: num("now")})
		if want := v.Want.Str("text"); string(got) != want {
			choice = sameTS || badMCP || mcpInCommand // the metrics differ with the joining
			if !choice || !esjson.Valid(got) {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		return choice
	})
}

func TestVectorsTodoList(t *testing.T) {
	conformance.Run(t, "todo_list", func(t *testing.T, v conformance.Case) (choice bool) {
		got := []byte("[]")
		if v.Input.Str("fn") == "parse" {
			var items [][]byte
			for _, td := range ParseTodos(v.Input.Str("text")) {
				var o esjson.Object
				o.String("id", td.ID)
				o.String("content", td.Content)
				o.String("status", td.Status)
				items = append(items, o.Bytes())
			}
			got = conformance.Array(items)
		} else if last := LastTodos(v.Input.Get("messages").List()); last != nil {
			got = last
		}
		v.Same(t, "todos", got, v.Want.Get("todos"))
		return false
	})
}
