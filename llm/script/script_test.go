package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, src string) *script.Script {
	t.Helper()
	s, err := script.Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(s *script.Script, req llm.Request) (chunks []llm.Chunk, err error) {
	for c, e := range s.Stream(context.Background(), req) {
		if e != nil {
			return chunks, e
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

func last(t *testing.T, chunks []llm.Chunk) llm.Done {
	t.Helper()
	d, ok := chunks[len(chunks)-1].(llm.Done)
	if !ok {
		t.Fatalf("the last chunk is %T", chunks[len(chunks)-1])
	}
	return d
}

const sample = `# a comment comes first
- text: "Hello  big\nworld. "
  reasoning: think well
  tools:
    - name: read_file
      input: {zeta: 1, alpha: [true, null, 1.50, "x"], mid: {b: 2, a: "ü\n"}, path: a.go}
    - name: list_files
  usage: {input: 10, output: 20, cache_read: 3, cache_write: 4}
- error: {status: 529, message: busy, times: 2}
- error: {status: 429}
- text: Second.
- error:
    status: 401
    message: no key
`

func TestReply(t *testing.T) {
	got, err := play(parse(t, sample), llm.Request{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	input := `{"zeta":1,"alpha":[true,null,1.5,"x"],"mid":{"b":2,"a":"ü\n"},"path":"a.go"}`
	u := llm.Usage{Input: 10, Output: 20, CacheRead: 3, CacheWrite: 4}
	want := []llm.Chunk{
		llm.ReasoningDelta{Text: "think "}, llm.ReasoningDelta{Text: "well"},
		llm.TextDelta{Text: "Hello  "}, llm.TextDelta{Text: "big\n"}, llm.TextDelta{Text: "world. "},
		llm.ToolDelta{Index: 0, ID: "call_1_1", Name: "read_file", Input: input},
		llm.ToolDelta{Index: 1, ID: "call_1_2", Name: "list_files", Input: "{}"},
		llm.UsageReport{Usage: u},
		llm.Done{ID: "script_1", Model: "m", StopReason: "tool_use", Usage: u, Blocks: []json.RawMessage{
			json.RawMessage(`{"type":"reasoning","text":"think well","summary":[]}`),
			json.RawMessage(`{"type":"text","text":"Hello  big\nworld. "}`),
			json.RawMessage(`{"type":"tool_use","id":"call_1_1","name":"read_file","input":` + input + `}`),
			json.RawMessage(`{"type":"tool_use","id":"call_1_2","name":"list_files","input":{}}`),
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhichTurn(t *testing.T) {
	s := parse(t, sample)
	if s.Turns() != 2 {
		t.Errorf("%d turns", s.Turns())
	}
	for _, c := range []struct {
		replies, failures int
		want              string // beginning of the text, tool name or error
	}{
		{0, 0, "Hello"}, {0, 5, "Hello"},
		{1, 0, "overloaded 529 busy"}, {1, 1, "overloaded 529 busy"}, {1, 2, "rate_limited 429"}, {1, 3, "Second."}, {1, 9, "Second."},
		{2, 0, "auth 401 no key"}, {2, 1, "attempt_completion"}, {3, 0, "attempt_completion"}, {99, 3, "attempt_completion"},
		{-1, -1, "Hello"},
	} {
		chunks, err := play(s, llm.Request{Replies: c.replies, Failures: c.failures})
		var got string
		var e *llm.Error
		if errors.As(err, &e) {
			got = fmt.Sprint(e.Kind, " ", e.Status, " ", e.Message)
			if e.Provider != "script" {
				t.Errorf("provider %q", e.Provider)
			}
		} else {
			for _, b := range last(t, chunks).Blocks {
				got += string(b)
			}
			c.want = strings.TrimSpace(c.want)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("replies %d, failures %d: got %s, want %s", c.replies, c.failures, got, c.want)
		}
	}
}

func TestEmptyScriptCompletes(t *testing.T) {
	for _, src := range []string{"", "# nothing\n", "[]", "---\n"} {
		chunks, err := play(parse(t, src), llm.Request{})
		if err != nil {
			t.Fatalf("%q: got %v, want no error", src, err)
		}
		d := last(t, chunks)
		if len(d.Blocks) != 1 || !strings.Contains(string(d.Blocks[0]), `"name":"attempt_completion","input":{"result":"`) {
			t.Errorf("%q: got %s, want len(d.Blocks) = 1 and strings.Contains(string(d.Blocks[0]), `\"name\":\"attempt_completion\",\"input\":{\"result\":\"`)",
				src, d.Blocks)
		}
	}
	if d := func() llm.Done { c, _ := play(parse(t, "- {}"), llm.Request{}); return last(t, c) }(); len(d.Blocks) != 0 || d.StopReason != "end_turn" {
		t.Errorf("an empty reply is %+v", d)
	}
}

func TestExpect(t *testing.T) {
	s := parse(t, "- expect: [\"say \\\"hi\\\"\", \"näh\", sys]\n  text: ok\n")
	content := json.RawMessage(`[{"type":"text","text":"say \"hi\""},{"type":"tool_result","content":[{"type":"text","text":"n\u00e4h"}]}]`)
	for _, c := range []struct {
		name string
		req  llm.Request
		miss string
	}{
		{"all", llm.Request{System: "a sys b", Messages: []llm.Message{{Role: "user", Content: content}}}, ""},
		{"no system", llm.Request{Messages: []llm.Message{{Role: "user", Content: content}}}, `"sys"`},
		{"nothing", llm.Request{System: "sys"}, `"say \"hi\""`},
		{"string content", llm.Request{System: "sys", Messages: []llm.Message{{Role: "user", Content: json.RawMessage(`"say \"hi\" n\u00e4h"`)}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := play(s, c.req)
			var e *llm.Error
			switch {
			case c.miss == "" && err != nil:
				t.Error(err)
			case c.miss != "" && (!errors.As(err, &e) || e.Kind != llm.Script || !strings.Contains(e.Message, c.miss) || e.Retryable()):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnAliasIsAnEntryOfItsOwn(t *testing.T) {
	s := parse(t, "- &s {summary: short}\n- *s\n- &e {text: hi, expect: [absent]}\n- *e\n")
	for n := 1; n <= 2; n++ {
		chunks, err := play(s, llm.Request{Summary: n})
		if err != nil || string(last(t, chunks).Blocks[0]) != `{"type":"text","text":"short"}` {
			t.Errorf("summary %d: got %v, %v, want the text short", n, chunks, err)
		}
		if _, err = play(s, llm.Request{Replies: n - 1}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d ", n+2)) {
			t.Errorf("turn %d: got %v, want an error of line %d", n, err, n+2)
		}
	}
}

func TestMistakesNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"unknown key", "- text: a\n- text: b\n  colour: red\n", "3:3"},
		{"unknown key in tool", "- tools:\n  - name: a\n    args: {}\n", "3:5"},
		{"unknown key in error", "- error: {status: 500, often: 1}\n", "1:"},
		{"no list", "text: a\n", "list of turns"},
		{"wrong type", "- text: a\n- usage: {input: many}\n", "2:"},
		{"delay", "- text: a\n\n- text: b\n  delay: soon\n", "line 3"},
		{"error and reply", "- text: a\n- error: {status: 500}\n  text: b\n", "line 2"},
		{"no name", "- tools: [{input: {}}]\n", "line 1"},
		{"input", "- tools: [{name: a, input: [1]}]\n", "line 1"},
		{"status", "- error: {status: 200}\n", "line 1"},
		{"times", "- error: {status: 500, times: -1}\n", "line 1"},
		{"times", "- error: {status: 500, times: 99999999}\n", "line 1"},
		{"nan", "- tools: [{name: a, input: {x: .nan}}]\n", "line 1"},
		{"null turn", "- text: a\n-\n", "line 2"},
		{"two documents", "- text: a\n---\n- text: b\n", "line 3"},
		{"syntax", "- text: [\n", "1:"},
		{"duplicate", "- text: a\n  text: b\n", "2:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := script.Parse([]byte(c.src))
			if !errors.Is(err, script.ErrScript) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestDelayIsBeforeEachChunkAndStopsAtOnce(t *testing.T) {
	s := parse(t, "- text: a b c\n  delay: 10ms\n")
	begin := time.Now()
	if _, err := play(s, llm.Request{}); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(stop) })
	begin = time.Now()
	for _, err := range parse(t, "- text: a\n  delay: 1h\n").Stream(ctx, llm.Request{}) {
		if !errors.Is(err, stop) || time.Since(begin) > 30*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	}
}

func TestWordsAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab \n\té😀\u00a0"))).Draw(t, "text")
		y, _ := json.Marshal(text)
		s, err := script.Parse([]byte("- text: " + string(y)))
		if err != nil {
			t.Skip(err)
		}
		chunks, err := play(s, llm.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range chunks {
			if d, ok := c.(llm.TextDelta); ok {
				if len(strings.Fields(d.Text)) > 1 {
					t.Fatalf("chunk %q has more than one word", d.Text)
				}
				got += d.Text
			}
		}
		if got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}

func TestDefaultPlays(t *testing.T) {
	s := script.Default()
	var names []string
	for r := range s.Turns() {
		chunks, err := play(s, llm.Request{Replies: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			if d, ok := c.(llm.ToolDelta); ok {
				names = append(names, d.Name)
				if !json.Valid([]byte(d.Input)) {
					t.Errorf("input %s", d.Input)
				}
			}
		}
	}
	if want := []string{"write_to_file", "read_file", "execute_command", "attempt_completion"}; !cmp.Equal(want, names) {
		t.Errorf("calls %v", names)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("- &a {text: x}\n- *a\n")
	f.Add("- tools: [{name: a, input: {1: 2, ? [a] : b}}]")
	f.Add("- tools:  !!!!!:name: a, input:\x16{1:")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := script.Parse([]byte(src))
		if err != nil {
			return
		}
		chunks, err := play(s, llm.Request{})
		if err != nil {
			return
		}
		for _, b := range last(t, chunks).Blocks {
			if !json.Valid(b) {
				t.Errorf("block %q of %q", b, src)
			}
		}
	})
}

func Example() {
	s, _ := script.Parse([]byte("- error: {status: 529, message: busy}\n- text: Hello there.\n"))
	for failures := range 2 {
		for chunk, err := range s.Stream(context.Background(), llm.Request{Failures: failures}) {
			switch c := chunk.(type) {
			case nil:
				fmt.Println(err)
			case llm.TextDelta:
				fmt.Printf("%q\n", c.Text)
			}
		}
	}
	// Output:
	// script: overloaded (HTTP 529): busy
	// "Hello "
	// "there."
}
