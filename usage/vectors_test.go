package usage

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
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
		f, _ := numberOf(rows[i].ts)
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
		if r.isAsk("use_mcp_server") && esjson.Valid([]byte(r.textString())) {
			switch esjson.TypeOf([]byte(r.textString())) {
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
			text := []byte(r.textString())
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

func TestVectorsMetrics(t *testing.T) {
	conformance.Run(t, "metrics", func(t *testing.T, v conformance.Case) (choice bool) {
		messages := v.Input.Get("messages").List()
		sameTS, badMCP, mcpInCommand, badTokens := metricsQuirks(messages)
		commands := JoinCommands(messages)
		requests := JoinRequests(messages)
		plain, pipeline := Sum(messages), Sum(JoinRequests(commands))
		if v.Want.Has("error") {
			if !badMCP {
				t.Error("Roo throws and no rule says why")
			}
			if len(commands) == 0 || pipeline != plain {
				t.Errorf("%d rows, usage %+v after joining, %+v before", len(commands), pipeline, plain)
			}
			return true
		}
		if sameTS || badMCP || mcpInCommand {
			choice = true
			ownJoin(t, messages, commands)
			if sum := Sum(requests).Cost; pipeline.Cost != sum {
				t.Errorf("cost %v after joining, %v before", pipeline.Cost, sum)
			}
		} else {
			v.Same(t, "commands", conformance.Array(commands), v.Want.Get("commands"))
			v.Same(t, "pipeline", rest(pipeline, badTokens), rest2(v.Want.Get("usage_pipeline"), badTokens))
		}
		v.Same(t, "requests", conformance.Array(requests), v.Want.Get("api_requests"))
		v.Same(t, "plain", rest(plain, badTokens), rest2(v.Want.Get("usage_plain"), badTokens))
		return choice || badTokens
	})
}

// rest and rest2 leave out the context size, where Roo's is no number.
func rest(s Tokens, cut bool) []byte { return rest2(s.json(), cut) }

func rest2(raw []byte, cut bool) []byte {
	if cut {
		return esjson.Remove(raw, "contextTokens")
	}
	return raw
}

// ownJoin checks our own joining: no row is lost or replaced by another, and
// every response stands with its question.
func ownJoin(t *testing.T, messages, commands [][]byte) {
	i := 0
	for _, m := range messages {
		r := parseRow(m)
		if r.isOutput() || r.say == "mcp_server_response" {
			continue
		}
		if i >= len(commands) {
			t.Fatal("row lost")
		}
		got := commands[i]
		i++
		if r.isAsk("command") || r.isAsk("use_mcp_server") {
			got, m = esjson.Remove(got, "text"), esjson.Remove(m, "text")
		}
		if !esjson.Equal(got, m) {
			t.Fatalf("row replaced: %s by %s", m, got)
		}
	}
	if i != len(commands) {
		t.Errorf("%d rows too many", len(commands)-i)
	}
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

func TestVectorsCost(t *testing.T) {
	conformance.Run(t, "cost", func(t *testing.T, v conformance.Case) (choice bool) {
		var in struct {
			Style Style
			Model struct {
				InputPrice, OutputPrice, CacheWritesPrice, CacheReadsPrice float64
				LongContextPricing                                         *struct {
					ThresholdTokens                                                                                    int64
					InputPriceMultiplier, OutputPriceMultiplier, CacheWritesPriceMultiplier, CacheReadsPriceMultiplier *float64
					AppliesToServiceTiers                                                                              []string
				}
			}
			Input, Output int64
			CacheWrite    int64  `json:"cache_write"`
			CacheRead     int64  `json:"cache_read"`
			ServiceTier   string `json:"service_tier"`
		}
		if err := json.Unmarshal(v.Input, &in); err != nil {
			t.Fatal(err)
		}
		m := in.Model
		p := Prices{Input: m.InputPrice, Output: m.OutputPrice, CacheWrites: m.CacheWritesPrice, CacheReads: m.CacheReadsPrice}
		if l := m.LongContextPricing; l != nil {
			p.LongContext = &LongContext{Threshold: l.ThresholdTokens, Input: l.InputPriceMultiplier, Output: l.OutputPriceMultiplier,
				CacheWrites: l.CacheWritesPriceMultiplier, CacheReads: l.CacheReadsPriceMultiplier, Tiers: l.AppliesToServiceTiers}
		}
		r := Request{Input: in.Input, Output: in.Output, CacheWrites: in.CacheWrite, CacheReads: in.CacheRead, Tier: in.ServiceTier}
		got := Price(in.Style, p, r)
		var want struct {
			In   int64   `json:"total_input_tokens"`
			Out  int64   `json:"total_output_tokens"`
			Cost float64 `json:"total_cost"`
		}
		if err := json.Unmarshal(v.Want, &want); err != nil {
			t.Fatal(err)
		}
		if in.Style == Anthropic && p.LongContext != nil && got.Input > p.LongContext.Threshold && p.LongContext.applies(in.ServiceTier) {
			// Ours: the same request in the other style, which is the one that has the rule.
			choice = true
			r.Input = got.Input
			want.Cost = Price(OpenAI, p, r).USD
		}
		if d := got.USD*1e6 - float64(got.Micros); d > 0.51+want.Cost*1e-6 || d < -0.51-want.Cost*1e-6 {
			t.Errorf("%v USD and %d micro-dollars", got.USD, got.Micros)
		}
		if got.Input != want.In || got.Output != want.Out || got.USD != want.Cost {
			t.Errorf("got %+v, want %+v", got, want)
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
