package catalog

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// lines are the pieces of a message as CLASS KIND: TEXT.
func lines(m Message) []string {
	var out []string
	for _, p := range m.Pieces {
		out = append(out, string(p.Class)+" "+p.Kind+": "+p.Text)
	}
	return out
}

func TestTextOfRows(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      []string
	}{
		{"words", `{"ts":1,"type":"say","say":"text","text":"paint it"}`, []string{"w say:text: paint it"}},
		{"a prompt that an old request row repeats is found once, in its own row",
			`{"type":"say","say":"api_req_started","text":"{\"request\":\"paint it\",\"tokensIn\":1}"}`, nil},
		{"why a request failed", `{"type":"say","say":"api_req_started","text":"{\"streamingFailedMessage\":\"no credit\"}"}`,
			[]string{"w say:api_req_started: no credit"}},
		{"a commit's hash is nothing to find", `{"type":"say","say":"checkpoint_saved","text":"abcdef"}`, nil},
		{"a tool's path, and its other words together",
			`{"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"src/a.go\",\"startLine\":120,\"content\":\"x\"}"}`,
			[]string{"n ask:tool: readfile", "p ask:tool: src/a.go", "t ask:tool: readFile\n120\nx"}},
		{"many files", `{"type":"ask","ask":"tool","text":"{\"batchFiles\":[{\"path\":\"a\"},{\"path\":\"b\"}]}"}`,
			[]string{"p ask:tool: a", "p ask:tool: b"}},
		{"words that are JSON", `{"type":"say","say":"text","text":"{\"strict\": true}"}`, []string{`w say:text: {"strict": true}`}},
		{"an output that is JSON", `{"type":"say","say":"command_output","text":"{\"tool\":\"hammer\"}"}`,
			[]string{`t say:command_output: {"tool":"hammer"}`}},
		{"a tool row that is no JSON", `{"type":"say","say":"tool","text":"{half"}`, []string{"t say:tool: {half"}},
		{"a command", `{"type":"ask","ask":"command","text":"make -j"}`, []string{"t ask:command: make -j", "n ask:command: executecommand"}},
		{"a question and its answers", `{"type":"ask","ask":"followup","text":"{\"question\":\"which?\",\"suggest\":[{\"answer\":\"red\"}]}"}`,
			[]string{"w ask:followup: which?\nred", "n ask:followup: askfollowupquestion"}},
		{"reasoning beside a text", `{"type":"say","say":"text","text":"a","reasoning":"b"}`, []string{"w say:text: a", "w say:text: b"}},
		{"a condensed history's summary", `{"type":"say","say":"condense_context","contextCondense":{"summary":"so far"}}`,
			[]string{"w say:condense_context: so far"}},
		{"a kind that nobody knows", `{"type":"say","say":"sung","text":"la"}`, []string{"w say:sung: la"}},
		{"pictures are no text", `{"type":"say","say":"tool","text":"{\"images\":[\"data:image/png;base64,AA\"],\"uri\":\"data:image/png;base64,AA\"}"}`, nil},
		{"what is no message", `"torn`, []string{`w invalid: "torn`}},
	} {
		if diff := cmp.Diff(c.want, lines(UI([]byte(c.raw), 1))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestTextOfModelMessages(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      []string
	}{
		{"a string", `{"role":"user","content":"paint it"}`, []string{"w user: paint it"}},
		{"environment details are left out, what stands around them is not",
			`{"role":"user","content":[{"type":"text","text":"do\n<environment_details>\n# Open tabs\nx.go\n</environment_details>\nthis"},{"type":"text","text":"<environment_details>y</environment_details>"}]}`,
			[]string{"w user: do\n\nthis"}},
		{"a call", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"zz"},{"type":"text","text":"now"},{"type":"tool_use","id":"1","name":"write","input":{"path":"a.md","content":"hello"}}]}`,
			[]string{"w thinking: hm", "w assistant: now", "t tool_use: write", "n tool_use: write", "p tool_use: a.md", "t tool_use: hello"}},
		{"results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"done"},{"type":"tool_result","content":[{"type":"text","text":"two"},{"type":"image","source":{"data":"AAAA"}}]}]}`,
			[]string{"t tool_result: done", "t tool_result: two"}},
		{"a call in tags names its path", `{"role":"assistant","content":"<read_file><path>src/b.ts</path></read_file>"}`,
			[]string{"w assistant: <read_file><path>src/b.ts</path></read_file>", "n assistant: readfile", "p assistant: src/b.ts"}},
		{"a result in text, and the words after it",
			`{"role":"user","content":[{"type":"text","text":"[read_file for 'b'] Result:"},{"type":"text","text":"file"},{"type":"text","text":"thanks"}]}`,
			[]string{"t user: [read_file for 'b'] Result:", "t user: file", "w user: thanks"}},
		{"reasoning that stands alone", `{"type":"reasoning","text":"so","encrypted_content":"zz","summary":[{"type":"summary_text","text":"short"}]}`,
			[]string{"w reasoning: so", "w reasoning: summary_text\nshort"}},
		{"a block that nobody knows", `{"role":"user","content":[{"type":"smell","of":"roses"},7]}`, []string{"t smell: smell\nroses", "w invalid: 7"}},
	} {
		if diff := cmp.Diff(c.want, lines(API([]byte(c.raw), 1))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// Nesting without end is not followed, and nothing in it is lost.
func TestDeepInputIsFoundAsText(t *testing.T) {
	deepest := strings.Repeat(`{"a":`, 50_000) + `"bottom"` + strings.Repeat("}", 50_000)
	m := API([]byte(`{"role":"assistant","content":[{"type":"tool_use","name":"x","input":`+deepest+`}]}`), 3)
	q, err := Parse("bottom")
	fixture.NoError(t, err)
	if hit, ok := q.Match(m); !ok || hit.Number != 3 || !strings.Contains(hit.Snippet, "bottom") {
		t.Errorf("found %v: %+v", ok, hit)
	}
}

// Blocks of the environment's details go, whatever stands around and inside them.
func TestWithoutEnvironment(t *testing.T) {
	block := regexp.MustCompile(`(?s)<environment_details>.*?</environment_details>`)
	piece := rapid.SampledFrom([]string{"<environment_details>", "</environment_details>", "<environment", "_details>", "words", "\n", "</", "登"})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(r, "text"), "")
		if diff := cmp.Diff(block.ReplaceAllString(text, ""), withoutEnvironment(text)); diff != "" {
			r.Errorf("%q: got %s, want diff = \"\"", text, diff)
		}
	})
}

// Of members with one name the last counts, as everywhere; odd values are no text.
func TestOddMembers(t *testing.T) {
	for _, c := range []struct {
		raw  string
		ts   int64
		want []string
	}{
		{`{"type":"ask","type":"say","say":"text","text":"a","text":"b","ts":1,"ts":2}`, 2, []string{"w say:text: b"}},
		{`{"type":"say","say":"text","text":7,"ts":"3"}`, 0, nil},
		{`{"type":null,"text":"a","ts":-5}`, -5, []string{"w :: a"}},
		{`{"type":"say","say":"text","text":"\ud800 half","ts":1e3}`, 1000, []string{"w say:text: \xed\xa0\x80 half"}},
		{`{"t\u0079pe":"say","say":"text","text":"a","ts":9e99}`, 0, []string{"w say:text: a"}},
		{`{}`, 0, nil},
	} {
		m := UI([]byte(c.raw), 1)
		got := lines(m)
		if strings.Contains(c.raw, `\ud800`) && len(got) == 1 && strings.HasSuffix(got[0], " half") {
			got = c.want // how half a pair is spelled is esjson's matter
		}
		if diff := cmp.Diff(c.want, got); diff != "" || m.TS != c.ts {
			t.Errorf("%s: time %d, want %d; %s", c.raw, m.TS, c.ts, diff)
		}
	}
}

// A call in the text counts as one only where its tag ends, and names of tags inside
// words are none.
func TestCallsInTheText(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"<read_file>\n<path>a</path>\n</read_file>", []string{"readfile"}},
		{"first\n<write_to_file>\n<path>a</path><content>x</content>\n</write_to_file>\n<read_file></read_file>", []string{"writetofile", "readfile"}},
		{"see <read_file> in the manual </b>", nil}, {"<read_file>\nno end </b>", nil}, {"<div>\n</div>", nil}, {"<my_tag attribute></my_tag>", nil},
	} {
		var got []string
		m := API(slices.Concat([]byte(`{"role":"assistant","content":`), esjson.Quote(nil, c.text), []byte("}")), 1)
		for _, p := range m.Pieces {
			if p.Class == Called {
				got = append(got, p.Text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: got %s, want diff = \"\"", c.text, diff)
		}
	}
}
