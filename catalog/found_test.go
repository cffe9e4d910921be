package catalog

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// saying are messages; every ? becomes a word that must be found again, wherever in a value it
// stands.
var saying = []struct {
	of    func([]byte, int) Message
	shape string
}{
	{UI, `{"type":"say","say":"text","text":?,"ts":1}`},
	{UI, `{"type":"say","say":"text","text":?,"reasoning":?}`},
	{UI, `{"type":"ask","ask":"tool","text":!{"tool":"readFile","path":?,"content":?,"batchFiles":[{"path":?,"lineSnippet":?}],"later":{"a":[?,[?]]}}}`},
	{UI, `{"type":"ask","ask":"followup","text":!{"question":?,"suggest":[{"answer":?,"mode":?},?]}}`},
	{UI, `{"type":"ask","ask":"use_mcp_server","text":!{"serverName":?,"toolName":?,"arguments":?}}`},
	{UI, `{"type":"say","say":"condense_context","contextCondense":{"summary":?,"cost":1}}`},
	{UI, `{"type":"say","say":"api_req_started","text":!{"tokensIn":1,"streamingFailedMessage":?}}`},
	{UI, `{"type":"say","say":"telepathy","text":?}`},
	{API, `{"role":"user","content":?}`},
	{API, `{"role":"user","content":[{"type":"text","text":?},{"type":"tool_result","tool_use_id":"c","content":?}]}`},
	{API, `{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":?},{"type":"image","source":{}},{"type":"json","json":{"a":?,"path":?}},?]}]}`},
	{API, `{"role":"user","content":[{"type":"tool_result","content":{"stdout":?,"files":[?]}}]}`},
	{API, `{"role":"assistant","content":[{"type":"thinking","thinking":?,"signature":"x"},{"type":"reasoning","text":?,"summary":[{"text":?}]},{"type":"tool_use","id":"c","name":?,"input":{"path":?,"files":[{"path":?}],"x":?}}]}`},
	{API, `{"role":"assistant","content":[{"type":"hologram","light":?,"parts":{"a":?}}],"reasoning_content":?}`},
	{API, `{"role":"assistant","content":{"type":"text","text":?}}`},
	{API, `{"type":"reasoning","text":?,"summary":[{"type":"summary_text","text":?}]}`},
}

// Every word of a message is found by it, also inside others and in any case; and the
// index finds the message wherever among others it stands.
func TestEveryWordOfAMessageIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []Message
		words := map[string]int{}
		for number := 1; number <= 4; number++ {
			form := rapid.SampledFrom(saying).Draw(t, "form")
			var word func(inner string) string
			word = func(inner string) string {
				var out strings.Builder
				for i := 0; i < len(inner); i++ {
					switch inner[i] {
					case '?':
						w := rapid.SampledFrom([]string{"Word%dof", "src/a%d/b_c.go", "日本%d語", "straße%d", "x-%d--y", "a%d\nb"}).Draw(t, "word")
						w = fmt.Sprintf(w, 10+len(words))
						words[w] = number
						around := rapid.SampledFrom([]string{"%s", "the %s.", "<%s>", "pre%spost", "\t%s\n", "\"%s\""}).Draw(t, "around")
						out.Write(esjson.Quote(nil, strings.Replace(around, "%s", w, 1)))
					case '!': // what follows stands there as text; its quotes and braces end it
						end := len(inner) - 1
						out.Write(esjson.Quote(nil, word(inner[i+1:end])))
						i = end - 1
					default:
						out.WriteByte(inner[i])
					}
				}
				return out.String()
			}
			raw := []byte(word(form.shape))
			if !esjson.Valid(raw) {
				t.Fatalf("the test makes %s", raw)
			}
			m := form.of(raw, number)
			m.Place = number
			list = append(list, m)
		}
		for w, number := range words {
			q, err := Parse(`"` + strings.ToUpper(w) + `"`)
			if strings.ContainsAny(w, "ß") { // has no single upper case
				q, err = Parse(`"` + w + `"`)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := q.Match(list[number-1]); !ok {
				t.Fatalf("%q is not found in %+v", w, list[number-1])
			}
		}
	})
}
