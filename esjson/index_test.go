package esjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// outline is what an index knows of a text, a line for each value.
func outline(x *esjson.Index) string {
	var b strings.Builder
	var show func(i, level int)
	show = func(i, level int) {
		for name, k := range x.Parts(i) {
			fmt.Fprintf(&b, "%s%q %s\n", strings.Repeat("  ", level), name, x.Raw(k))
			show(k, level+1)
		}
	}
	fmt.Fprintf(&b, "%s\n", x.Raw(0))
	show(0, 1)
	return b.String()
}

func TestIndex(t *testing.T) {
	const message = ` {"role":"user","content":[{"type":"text","text":"a\n"},[1,2],"x",{}],"ts":1.5,"e\u006ed":null} `
	for _, tt := range []struct {
		src    string
		levels int
		want   []string
	}{
		{message, 0, []string{strings.TrimSpace(message)}},
		{message, 1, []string{strings.TrimSpace(message),
			`  "role" "user"`, `  "content" [{"type":"text","text":"a\n"},[1,2],"x",{}]`, `  "ts" 1.5`, `  "end" null`}},
		{message, 2, []string{strings.TrimSpace(message),
			`  "role" "user"`, `  "content" [{"type":"text","text":"a\n"},[1,2],"x",{}]`,
			`    "" {"type":"text","text":"a\n"}`, `    "" [1,2]`, `    "" "x"`, `    "" {}`,
			`  "ts" 1.5`, `  "end" null`}},
		{`[[[[1]]],{"a":{"a":{}}}]`, 3, []string{`[[[[1]]],{"a":{"a":{}}}]`,
			`  "" [[[1]]]`, `    "" [[1]]`, `      "" [1]`,
			`  "" {"a":{"a":{}}}`, `    "a" {"a":{}}`, `      "a" {}`}},
		{`{"a":1,"a":2,"":3}`, 1, []string{`{"a":1,"a":2,"":3}`, `  "a" 1`, `  "a" 2`, `  "" 3`}},
		{`-1e3`, 2, []string{`-1e3`}},
		{"\t12\n", 2, []string{`12`}},
		{`"text"`, 2, []string{`"text"`}},
		{`true`, 2, []string{`true`}},
		{`[]`, 2, []string{`[]`}},
	} {
		var x esjson.Index
		if !x.Read([]byte(tt.src), tt.levels) {
			t.Errorf("%s is refused", tt.src)
		}
		if diff := cmp.Diff(strings.Join(tt.want, "\n")+"\n", outline(&x)); diff != "" {
			t.Errorf("%s to level %d (-want +got):\n%s", tt.src, tt.levels, diff)
		}
	}
}

// An index is used for one text after the other: nothing of one may show up in the
// next, whether that is longer, shorter or broken.
func TestIndexIsReused(t *testing.T) {
	texts := []string{`{"a":{"b":[1,2,3]},"c":"\u0041"}`, `[1]`, `{"a":`, `7`, `{"x":"y"}`, ``, `[{"a":1},{"b":2}]`, `]`, `{"a":{"b":[1,2,3]},"c":"d"}`}
	var used esjson.Index
	for _, src := range texts {
		var fresh esjson.Index
		if got, want := used.Read([]byte(src), 2), fresh.Read([]byte(src), 2); got != want {
			t.Errorf("%s: %v, want %v", src, got, want)
		}
		if diff := cmp.Diff(outline(&fresh), outline(&used)); diff != "" || used.Unicode() != fresh.Unicode() {
			t.Errorf("%s after others (-fresh +used):\n%s", src, diff)
		}
	}
}

func TestIndexNoticesUnicodeEscapes(t *testing.T) {
	for src, want := range map[string]bool{
		`"\u0041"`: true, `{"\u0041":1}`: true, `[[[["\ud800"]]]]`: true, `"\\u0041"`: false, `"\n\\\\u"`: false, `"\\\u0041"`: true, `"é🚀"`: false, `"\ud8`: false,
	} {
		var x esjson.Index
		x.Read([]byte(src), 1)
		if x.Unicode() != want {
			t.Errorf("%s: got %v, want x.Unicode() = %v", src, x.Unicode(), want)
		}
	}
}

func TestIndexOfDeepText(t *testing.T) {
	const n = 200_000
	deep := strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n)
	var x esjson.Index
	if !x.Read([]byte(deep), 3) || x.Read([]byte(deep[:len(deep)-1]), 3) {
		t.Error("deep text is misjudged")
	}
	if !x.Read([]byte(deep), 1<<30) {
		t.Error("without a limit, deep text is refused")
	}
	levels, at := 0, 0
	for more := true; more; levels++ {
		more = false
		for _, k := range x.Parts(at) {
			at, more = k, true
		}
	}
	if levels != 2*n {
		t.Errorf("%d levels, want %d", levels, 2*n)
	}
}

// longMessage is a message as they are in practice: long texts of programs in few members.
func longMessage() []byte {
	line := `\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n`
	text := strings.Repeat(line, 4000)
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"%s"},{"type":"text","text":"%s"}],"ts":1700000000000}`, text, text)
}

func BenchmarkGet(b *testing.B) {
	msg := longMessage()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if ts, ok := esjson.GetInt(msg, "ts"); !ok || ts != 1700000000000 {
			b.Fatal(ts)
		}
	}
}

func BenchmarkMembers(b *testing.B) {
	// Many small members: the cost of a step, not of the bytes.
	var o esjson.Object
	for i := range 1000 {
		o.Int(fmt.Sprint("member_", i), int64(i))
	}
	obj := o.Bytes()
	b.ReportAllocs()
	b.SetBytes(int64(len(obj)))
	for b.Loop() {
		n := 0
		for range esjson.Fields(obj) {
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkGetString(b *testing.B) {
	var o esjson.Object
	o.String("text", strings.Repeat("\tif err != nil {\n\t\treturn \"é\"\n", 20_000))
	obj := o.Bytes()
	b.SetBytes(int64(len(obj)))
	for b.Loop() {
		if _, ok := esjson.GetString(obj, "text"); !ok {
			b.Fatal("no text")
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	msg := longMessage()
	var x esjson.Index
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if !x.Read(msg, 3) {
			b.Fatal("refused")
		}
	}
}

func ExampleIndex() {
	var x esjson.Index
	ok := x.Read([]byte(`{"role":"user","content":[{"type":"text","text":"hi"}]}`), 1)
	fmt.Println(ok)
	for name, i := range x.Parts(0) {
		fmt.Printf("%s: %s\n", name, x.Raw(i))
	}
	// Output:
	// true
	// role: "user"
	// content: [{"type":"text","text":"hi"}]
}
