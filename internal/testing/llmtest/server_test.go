package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/wire"
)

// What the API takes must be taken: a check that is too strict would have tests ask
// for what no customer needs.
func TestSoundRequestsAreTaken(t *testing.T) {
	call := `{"type":"tool_use","id":"t1","name":"f","input":{"a":[1,{"b":null}]}}`
	result := `{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}],"is_error":true}`
	for name, body := range map[string]string{
		"a picture":               messages(`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]`),
		"two of a role in a row":  messages(`[{"role":"user","content":"a"},{"role":"user","content":"b"}]`),
		"results, then words":     messages(`[{"role":"user","content":"a"},{"role":"assistant","content":[` + call + `]},{"role":"user","content":[` + result + `,{"type":"text","text":"go on"}]}]`),
		"thinking before a call":  messages(`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"d"},` + call + `]},{"role":"user","content":[` + result + `]}]`),
		"the words cache_control": messages(`[{"role":"user","content":"\"cache_control\":{ \"cache_control\":{ \"cache_control\":{ \"cache_control\":{ \"cache_control\":{"}]`),
		"a system prompt":         strings.Replace(messages(hi), `"stream"`, `"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],"stream"`, 1),
		"a system string":         strings.Replace(messages(hi), `"stream"`, `"system":"be kind","stream"`, 1),
		"a server's own tool":     strings.Replace(messages(hi), `"stream"`, `"tools":[{"type":"web_search_20250305","name":"web_search"}],"stream"`, 1),
		"room to think":           strings.Replace(messages(hi), `"stream"`, `"thinking":{"type":"enabled","budget_tokens":8999},"stream"`, 1),
		"adaptive thinking":       strings.Replace(messages(hi), `"stream"`, `"thinking":{"type":"adaptive"},"stream"`, 1),
		"members of tomorrow":     strings.Replace(messages(hi), `"stream"`, `"output_config":{"effort":"high"},"stream"`, 1),
	} {
		if problem := llmtest.Check(header(), []byte(body)); problem != "" {
			t.Errorf("%s: got %s, want problem = \"\"", name, problem)
		}
	}
}

func header() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
}

// Further rules, one request each that breaks just this one.
func TestFurtherRules(t *testing.T) {
	call := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}` }
	result := func(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `","content":"x"}` }
	turn := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	ask := turn("user", `{"type":"text","text":"a"}`)
	list := func(turns ...string) string { return messages("[" + strings.Join(turns, ",") + "]") }
	for name, c := range map[string]struct{ body, want string }{
		"an id twice":            {list(ask, turn("assistant", call("t1")), turn("user", result("t1")), turn("assistant", call("t1")), turn("user", result("t1"))), "ids must be unique"},
		"an id twice in a reply": {list(ask, turn("assistant", call("t1"), call("t1")), turn("user", result("t1"))), "ids must be unique"},
		"one result missing":     {list(ask, turn("assistant", call("t1"), call("t2")), turn("user", result("t2"))), "immediately after: t1"},
		"a result too late":      {list(ask, turn("assistant", call("t1")), ask, turn("user", result("t1"))), "without `tool_result`"},
		"two replies in between": {list(ask, turn("assistant", call("t1")), turn("assistant", `{"type":"text","text":"b"}`), turn("user", result("t1"))), "without `tool_result`"},
		"a call by the user":     {list(turn("user", call("t1"))), "can only be in `assistant`"},
		"a result by the model":  {list(ask, turn("assistant", result("t1")), ask), "can only be in `user`"},
		"thinking by the user":   {list(turn("user", `{"type":"thinking","thinking":"x","signature":"s"}`)), "can only be in `assistant`"},
		"input of no object":     {list(ask, turn("assistant", `{"type":"tool_use","id":"t1","name":"f","input":[]}`), turn("user", result("t1"))), "valid dictionary"},
		"a name with a blank":    {list(ask, turn("assistant", `{"type":"tool_use","id":"t1","name":"a b","input":{}}`), turn("user", result("t1"))), "pattern"},
		"marked thinking":        {list(ask, turn("assistant", `{"type":"thinking","thinking":"x","signature":"s","cache_control":{"type":"ephemeral"}}`), ask), "cannot have cache_control"},
		"an empty text":          {list(turn("user", `{"type":"text","text":""}`)), "non-empty"},
		"blanks as content":      {messages(`[{"role":"user","content":" \n"}]`), "non-whitespace"},
		"content of no list":     {messages(`[{"role":"user","content":5}]`), "valid list"},
		"no content":             {messages(`[{"role":"user"}]`), "Field required"},
		"no model":               {strings.Replace(messages(hi), `"model":"m"`, `"model":""`, 1), "model"},
		"a tool without schema":  {strings.Replace(messages(hi), `"stream"`, `"tools":[{"name":"f"}],"stream"`, 1), "input_schema"},
		"a tool with a bad name": {strings.Replace(messages(hi), `"stream"`, `"tools":[{"name":"f g","input_schema":{}}],"stream"`, 1), "pattern"},
		"a long tool name":       {strings.Replace(messages(hi), `"stream"`, `"tools":[{"name":"`+strings.Repeat("f", 129)+`","input_schema":{}}],"stream"`, 1), "pattern"},
		"a small budget":         {strings.Replace(messages(hi), `"stream"`, `"thinking":{"type":"enabled","budget_tokens":1023},"stream"`, 1), "budget"},
		"an empty system text":   {strings.Replace(messages(hi), `"stream"`, `"system":[{"type":"text","text":""}],"stream"`, 1), "system"},
		"a picture as system":    {strings.Replace(messages(hi), `"stream"`, `"system":[{"type":"image"}],"stream"`, 1), "system"},
	} {
		if problem := llmtest.Check(header(), []byte(c.body)); !strings.Contains(problem, c.want) {
			t.Errorf("%s: %q, wanted %q", name, problem, c.want)
		}
	}
	for _, missing := range []string{"Anthropic-Version", "Content-Type"} {
		h := header()
		h.Del(missing)
		if problem := llmtest.Check(h, []byte(messages(hi))); !strings.Contains(problem, strings.ToLower(missing)) {
			t.Errorf("without %s: %q", missing, problem)
		}
	}
}

// Hostile bytes are refused or taken, never a panic.
func FuzzCheck(f *testing.F) {
	f.Add(messages(hi))
	f.Add(messages(`[{"role":"user","content":[null]}]`))
	f.Add(`{"messages":[null],"model":"m","max_tokens":1}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, body string) {
		if llmtest.Check(header(), []byte(body)) == "" && !json.Valid([]byte(body)) {
			t.Errorf("taken: %q", body)
		}
	})
}

// A client of the API reads exactly the content of a reply, in any packets.
func TestRepliesArriveAsTheyWereGiven(t *testing.T) {
	s := llmtest.New(t)
	p := anthropic.New(anthropic.Options{APIKey: "key-of-the-test", BaseURL: s.URL, Model: "m", Backoff: wire.Backoff{Retries: -1}})
	t.Cleanup(p.CloseIdle)
	words := rapid.StringOf(rapid.SampledFrom([]rune("aü😀 \n\"\\<&\u2028")))
	rapid.Check(t, func(t *rapid.T) {
		var reply llmtest.Reply
		var want []string
		if text := words.Draw(t, "thinking"); text != "" {
			reply = reply.AndThinking(text, "sig+/=")
			want = append(want, encode(t, struct {
				T string `json:"type"`
				X string `json:"thinking"`
				S string `json:"signature"`
			}{"thinking", text, "sig+/="}))
		}
		if text := words.Draw(t, "text"); text != "" {
			reply = reply.AndText(text)
			want = append(want, encode(t, struct {
				T string `json:"type"`
				X string `json:"text"`
			}{"text", text}))
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			input := encode(t, map[string]string{"a": words.Draw(t, "input")})
			id := fmt.Sprintf("t%d", i)
			reply = reply.AndCall(id, "f", input)
			want = append(want, `{"type":"tool_use","id":"`+id+`","name":"f","input":`+input+`}`)
		}
		reply.DeltaRunes = rapid.IntRange(1, 30).Draw(t, "a delta")
		reply.Piece = rapid.IntRange(0, 40).Draw(t, "a packet")
		s.Answer(func(llmtest.Request) llmtest.Reply { return reply })
		var got []string
		for c, err := range p.Stream(context.Background(), llm.Request{Messages: []llm.Message{{Role: "user", Content: []byte(`"hi"`)}}}) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := c.(llm.Done); ok {
				for _, b := range d.Blocks {
					got = append(got, string(b))
				}
				if stop := map[bool]string{true: "tool_use", false: "end_turn"}[strings.Contains(strings.Join(got, ""), `"tool_use"`)]; d.StopReason != stop {
					t.Fatalf("it stopped for %s", d.StopReason)
				}
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d blocks, wanted %d", len(got), len(want))
		}
		for i := range got {
			if !sameJSON(got[i], want[i]) {
				t.Fatalf("block %d is %s, wanted %s", i, got[i], want[i])
			}
		}
	})
}

func encode(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// A reply's methods leave the value they are called on as it was.
func TestRepliesAreValues(t *testing.T) {
	base := llmtest.Text("a").After("x", "1")
	_ = base.AndText("b").AndCall("t", "f", "{}")
	_ = base.After("x", "2").CutEvent(2).Broken().Stall(1).Trickle(3, time.Second)
	one, two := base.AndText("one"), base.AndText("two")
	if len(base.Blocks) != 1 || base.Header.Get("x") != "1" || base.CutAtEvent != 0 || base.Abort || base.Piece != 0 {
		t.Errorf(`got %+v, want len(base.Blocks) = 1 and base.Header.Get("x") = "1" and base.CutAtEvent = 0 and not base.Abort and base.Piece = 0`,
			base)
	}
	if string(one.Blocks[1]) == string(two.Blocks[1]) {
		t.Error("two replies made of one share their blocks")
	}
}

// A cut reply is the beginning of the whole one, at every event.
func TestCutsAreBeginnings(t *testing.T) {
	reply := llmtest.Text("some words").AndCall("t1", "f", `{"a":1}`)
	reply.ID, reply.Input = "m", 5
	s := llmtest.New(t, reply)
	_, whole, err := post(t, s, messages(hi))
	if err != nil {
		t.Fatal(err)
	}
	events := strings.Count(whole, "\n\n")
	before := ""
	for n := 1; n < events; n++ {
		s.Add(reply.CutEvent(n))
		_, got, err := post(t, s, messages(hi))
		if err != nil || !strings.HasPrefix(whole, got) || len(got) <= len(before) || strings.Count(got, "\n\n") != n {
			t.Fatalf("cut at %d of %d: %q, %v", n, events, got, err)
		}
		before = got
	}
}

func TestKeysAndPaths(t *testing.T) {
	r := &recorder{}
	s := llmtest.New(r, llmtest.Text("ok"))
	s.Key = "the key"
	if res, body, _ := post(t, s, messages(hi)); res.StatusCode != 401 || !strings.Contains(body, "authentication_error") {
		t.Errorf("another key: %d %s", res.StatusCode, body)
	}
	s.Key = "k"
	if res, _, _ := post(t, s, messages(hi)); res.StatusCode != 200 {
		t.Errorf("the key: %d", res.StatusCode)
	}
	s.Add(llmtest.Text("more")) // a refused key uses up no reply
	if res, _, _ := post(t, s, messages(hi)); res.StatusCode != 200 {
		t.Errorf("one more: %d", res.StatusCode)
	}
	tr := &http.Transport{}
	res, err := (&http.Client{Transport: tr}).Get(s.URL + "/v1/models")
	if err != nil || res.StatusCode != 404 {
		t.Fatalf("got %v, %v, want no error and res.StatusCode = 404", res, err)
	}
	_ = res.Body.Close()
	tr.CloseIdleConnections()
	for _, f := range r.cleanup {
		f()
	}
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "GET /v1/models") {
		t.Errorf("got %q, want len(r.errors) = 1 and strings.Contains(r.errors[0], \"GET /v1/models\")", r.errors)
	}
}

// A client that leaves in the middle of its request has asked nothing.
func TestHalfARequestIsNone(t *testing.T) {
	s := llmtest.New(t, llmtest.Text("ok"))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{\"model\"")
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	if res, _, _ := post(t, s, messages(hi)); res.StatusCode != 200 || len(s.Requests()) != 1 {
		t.Errorf("%d, %d requests", res.StatusCode, len(s.Requests()))
	}
}

// Requests are numbered and kept in the order they came, one answer each, also when
// many come at once.
func TestManyClients(t *testing.T) {
	s := llmtest.New(t)
	var mu sync.Mutex
	numbers := map[int]int{}
	s.Answer(func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		numbers[r.Number]++
		return llmtest.Text(fmt.Sprint("reply ", r.Number, " of ", r.Model()))
	})
	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() {
			if res, body, err := post(t, s, messages(hi)); err != nil || res.StatusCode != 200 || !strings.Contains(body, "reply ") {
				t.Errorf("got %d %v, want no error and res.StatusCode = 200 and strings.Contains(body, \"reply \")",
					res.StatusCode, err)
			}
		})
	}
	wait.Wait()
	for i, r := range s.Requests() {
		if r.Number != i+1 || numbers[r.Number] != 1 || r.Model() != "m" || string(r.Body) != messages(hi) {
			t.Errorf("request %d: number %d, %d answers", i, r.Number, numbers[r.Number])
		}
	}
	if len(s.Requests()) != 12 || s.Connections() != 12 {
		t.Errorf("%d requests on %d connections", len(s.Requests()), s.Connections())
	}
}
