package contextwindow

import (
	"fmt"
	"strings"
	"testing"
)

// What a result holds in a shape that no provider knows is sent as text; no part of it is
// lost.
func TestPartsOfAnUnknownShapeAreSentAsText(t *testing.T) {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	text := func(s string) string { return string(textOf(s)) }
	for _, c := range []struct{ name, in, want string }{
		{"a query and its result", `[{"query":"/a.txt","result":"1 | one\n2 | two","success":true}]`, text("/a.txt\n1 | one\n2 | two")},
		{"several", `[{"query":"a","result":"A","success":true},{"query":"b","result":"","error":"no such file","success":false}]`, text("a\nA") + "," + text("b\n\nError: no such file")},
		{"failed without words", `[{"query":"a","result":null,"success":false}]`, text("a\n(failed)")},
		{"blocks as the result", `[{"query":"p.png","result":[{"type":"text","text":"seen"},{"type":"image","data":"` + pixel + `","mediaType":"image/png"}],"success":true}]`,
			text("p.png") + "," + text("seen") + `,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}`},
		{"any other object", `[{"a":[1,{"b":null}]}]`, text(`{"a":[1,{"b":null}]}`)},
		{"a type that nobody knows", `[{"type":"card","title":"x"}]`, text(`{"type":"card","title":"x"}`)},
		{"no objects", `["words",17]`, text("words") + "," + text("17")},
		{"beside a text", `[{"type":"text","text":"a"},{"query":"q","result":"r"}]`, text("a") + "," + text("q\nr")},
		{"data is left out", `[{"type":"blob","data":"` + strings.Repeat("QUJD", 1000) + `"}]`, text(`{"type":"blob","data":"[4000 bytes of data]"}`)},
	} {
		history := lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","name":"n","content":`+c.in+`}]}`)
		for _, provider := range []string{"anthropic", "openai", "openai-compatible", "google"} {
			got, notes, err := Build(history, For(provider))
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t","content":[%s]}]`, c.want)
			if string(got[2].Content) != want || len(notes) > 0 {
				t.Errorf("%s for %s:\n got %s\nwant %s\n%v", c.name, provider, got[2].Content, want, notes)
			}
		}
	}
}

// A result that is nested over and over is gone through once: the inner ones stand as JSON.
func TestDeepResults(t *testing.T) {
	const deep = 20_000
	inner := strings.Repeat(`{"query":"q","result":[`, deep) + strings.Repeat(`]}`, deep)
	got := ResultParts([]byte("[" + inner + "]"))
	if len(got) != 2 || string(got[0]) != string(textOf("q")) || len(got[1]) < 20*deep {
		t.Errorf("%d parts, want the query and what it gave", len(got))
	}
}
