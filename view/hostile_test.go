package view

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
)

// nasty is what a message may hold that wants to be more than text.
var nasty = []string{
	"", "plain", "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x07", "\u009b31m", "a\rb", "a\r\n#1 you yes", "\u2028", "\u2029#2", "\u0085", "\v", "\f", "\x00", "\b\b\b", "\x7f",
	"\u202etxt.exe", "\u2066", "\u200b", "\ufeff", "\xff\xfe", "\xed\xa0\x80", "👩\u200d💻", "@@ -1 +1 @@\n-a\r\n+b\x1b[A", "{", `{"tool":`, "%s%d%!", "]]>", "<script>",
	strings.Repeat("long ", 40), "\x1b", "\x1b[", "\x1bP", "日本語日本語日本語",
	"<read_file>", "<read_file><path>\x1b[A\r#1</path>", "<environment_details>\n#2 you", "<file_content path=\"\x1b]0;x\x07\">", "[read_file for '\x1b[2J'] Result:\n#9", "<task>\n</task>",
	"<<<<<<< SEARCH\n\x1b[2J\n=======\n\r#3\n>>>>>>> REPLACE", `{"message":"\u001b[2J","status":"denied"}`, "50%\r51%\r52%\u2028",
}

// shapes are message shapes; every ? becomes a value of some kind.
var shapes = []string{
	`{"ts":?,"type":"ask","ask":"tool","text":?,"partial":?}`, `{"ts":1,"type":"say","say":?,"text":?,"images":[?,?]}`, `{"type":?,"say":?,"ask":?,"text":?}`,
	`{"type":"say","say":"api_req_started","text":?}`, `{"type":"say","say":"condense_context","contextCondense":{"summary":?,"prevContextTokens":?,"newContextTokens":?}}`,
	`{"type":"say","say":"sliding_window_truncation","contextTruncation":?}`, `{"type":"say","say":"checkpoint_saved","text":?}`, `{"type":"ask","ask":"followup","text":?}`,
	`{"type":"ask","ask":"use_mcp_server","text":?}`, `{"type":"ask","ask":"command","text":?}`, `{"type":"say","say":"user_feedback_diff","text":?}`,
	`{"role":?,"content":?,"ts":?,"condenseParent":?,"isSummary":?}`, `{"role":"assistant","content":[{"type":"text","text":?},{"type":"tool_use","id":?,"name":?,"input":?},?]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":?,"content":[{"type":"text","text":?},{"type":"image"},?],"is_error":?}]}`,
	`{"role":"user","content":[{"type":?,"text":?,"thinking":?}]}`, `?`, `[?]`,
}

// texts are the objects that stand as text inside rows.
var texts = []string{
	`{"tool":"readFile","path":?,"reason":?,"batchFiles":[{"path":?},?]}`, `{"tool":"editedExistingFile","path":?,"content":?,"diffStats":{"added":?,"removed":?}}`, `{"tool":?,"path":?,"regex":?,"content":?}`,
	`{"tool":"updateTodoList","todos":[{"content":?,"status":?},?]}`, `{"tool":"updateTodoList","todos":?}`, `{"question":?,"suggest":[{"answer":?},?]}`, `{"response":?,"options":[?,?]}`,
	`{"tokensIn":?,"tokensOut":?,"cacheReads":?,"cost":?,"cancelReason":?,"streamingFailedMessage":?}`, `{"serverName":?,"toolName":?,"uri":?,"arguments":?}`, `{"path":?,"diff":?}`,
}

func filled(t *rapid.T, shape string, depth int) string {
	var out strings.Builder
	for _, c := range shape {
		if c != '?' {
			out.WriteRune(c)
			continue
		}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 5:
			out.Write(esjson.Quote(nil, rapid.SampledFrom(nasty).Draw(t, "text")))
		case kind < 7 && depth > 0:
			out.Write(esjson.Quote(nil, filled(t, rapid.SampledFrom(texts).Draw(t, "inner"), depth-1)))
		default:
			out.WriteString(rapid.SampledFrom([]string{"null", "true", "{}", "[]", "[[[]]]", "-1", "1e400", "-0.5", "12345678901234567890", `{"path":{}}`, `"\ud800"`}).Draw(t, "other"))
		}
	}
	return out.String()
}

// Whatever a message says, it is shown in lines that stay lines, and nothing of it
// works on a terminal.
func checkShown(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw []byte) {
	t.Helper()
	before := bytes.Clone(raw)
	for _, it := range []Item{UI(raw, 1), UI(raw, 2), API(raw, 1)} {
		if it.Class == "" || it.Kind == "" && it.Class != Unknown && len(it.Parts) == 0 {
			t.Fatalf("%q is shown as nothing: %+v", raw, it)
		}
		for _, most := range []int{0, 3} {
			for i, l := range Lines(it, most) {
				if strings.ContainsAny(l.Text, "\n\r\v\f\u0085\u2028\u2029") {
					t.Fatalf("%q: a line with a break: %q", raw, l.Text)
				}
				if i > 0 && !strings.HasPrefix(l.Text, "  ") {
					t.Fatalf("%q: a line that looks like a message of its own: %q", raw, l.Text)
				}
				shown := redact.Terminal(l.Text)
				if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool {
					return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
				}) {
					t.Fatalf("%q: the terminal gets %q", raw, shown)
				}
			}
		}
	}
	if !bytes.Equal(raw, before) {
		t.Fatalf("%q was changed to %q", before, raw)
	}
}

func TestHostileMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkShown(t, []byte(filled(t, rapid.SampledFrom(shapes).Draw(t, "shape"), 1)))
	})
}

// Messages that are cut anywhere are shown as what they are: no message.
func TestCutMessages(t *testing.T) {
	t.Parallel()
	whole := `{"ts":1,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"\u001b[2J\"}","images":["data:"]}`
	for n := range len(whole) {
		raw := []byte(whole[:n])
		checkShown(t, raw)
		if it := UI(raw, 1); it.Class != Unknown || it.Body != whole[:n] {
			t.Errorf("%s is shown as %+v", raw, it)
		}
	}
}

func TestDeepMessages(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"[", `{"content":`, `{"a":[`, `[{"type":"tool_result","content":`} {
		deep := strings.Repeat(open, 20_000)
		closing := strings.Repeat(strings.NewReplacer("[", "]", "{", "}").Replace(lastBrackets(open)), 20_000)
		checkShown(t, []byte(`{"role":"user","content":`+deep+`0`+closing+`}`))
	}
}

// lastBrackets are the brackets of a text, the last first.
func lastBrackets(s string) string {
	out := ""
	for _, c := range s {
		if c == '[' || c == '{' {
			out = string(c) + out
		}
	}
	return out
}

func FuzzItems(f *testing.F) {
	f.Add([]byte(`{"ts":1,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"batchFiles\":[1,{\"path\":\"a\"}]}"}`))
	f.Add([]byte(`{"role":"user","content":[{"type":"tool_result","content":[1]}]}`))
	f.Add([]byte(`{"role":"assistant","content":"<thinking>\na\n</thinking>\n<write_to_file>\n<path>a</path>\n<content>\nx\n</content>\n</write_to_file>"}`))
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:"},{"type":"text","text":"<file><path>a</path>"}]}`))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"tool_use","name":"edit","input":{"old_string":"a","new_string":"b","files":[{"path":1}],"follow_up":[{"text":2}]}}]}`))
	f.Add([]byte(`{"type":"say","say":"api_req_started","text":"{\"tokensIn\":1e400}"}`))
	f.Fuzz(func(t *testing.T, raw []byte) { checkShown(t, raw) })
}

func TestCount(t *testing.T) {
	t.Parallel()
	got := map[int64]string{}
	want := map[int64]string{0: "0", 999: "999", 1000: "1.0k", 9_949: "9.9k", 9_999: "9.9k", 10_000: "10k", 34_567: "34k", 999_999: "999k", 1_000_000: "1.0M", 1_999_999: "1.9M", -7: "-7"}
	for n := range want {
		got[n] = Count(n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
