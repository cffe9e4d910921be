package contextwindow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

func lines(in ...string) (out [][]byte) {
	for _, l := range in {
		out = append(out, []byte(l))
	}
	return out
}

func TestBuild(t *testing.T) {
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`
	const callRaw = `[{"type":"tool_use","id":"t1","name":"n","input":{}}]`
	for _, tc := range []struct {
		name string
		in   [][]byte
		want string // role and content, a line each
		note string
	}{
		{"bytes are spliced in raw", lines(`{"role":"user","content": [ {"type":"text", "text":"a\u0041"} ],"ts":1}`), "user [ {\"type\":\"text\", \"text\":\"a\\u0041\"} ]", ""},
		{"a string stays a string", lines(`{"role":"user","content":"a","ts":1}`), `user "a"`, ""},
		{"adjacent users are joined", lines(`{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"b"}]}`), `user [{"type":"text","text":"a"},{"type":"text","text":"b"}]`, ""},
		{"a call in the end is answered", lines(`{"role":"user","content":"a"}`, call), "user \"a\"\nassistant " + callRaw + "\nuser [{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"" + Interrupted + "\"}]", "answer was added"},
		{"a second call has another id",
			lines(`{"role":"user","content":"a"}`, call,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}`, call),
			"user \"a\"\nassistant " + callRaw + "\nuser [{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"r\"}]\nassistant " +
				strings.Replace(callRaw, "t1", "t1_2", 1) + "\nuser [{\"type\":\"tool_result\",\"tool_use_id\":\"t1_2\",\"content\":\"" +
				Interrupted + "\"}]", "a tool call's id was used before: it is sent as t1_2"},
		{"results come first", lines(`{"role":"user","content":"a"}`, call, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t1","content":"r"}]}`),
			"user \"a\"\nassistant " + callRaw + "\nuser [{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"r\"},{\"type\":\"text\",\"text\":\"x\"}]", ""},
		{"a result of the XML protocol", lines(`{"role":"user","content":"a"}`, call, `{"role":"user","content":"[n for 'x'] Result: y"}`),
			"user \"a\"\nassistant " + callRaw + "\nuser [{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"The result is in the text that follows.\"},{\"type\":\"text\",\"text\":\"[n for 'x'] Result: y\"}]", "placeholder"},
		{"an orphan becomes text", lines(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"q","content":"r"}]}`), `user [{"type":"text","text":"Tool result:\nr"}]`, "without its call"},
		{"a lone surrogate is replaced", lines(`{"role":"user","content":"a\ud83d"}`), `user "a\ufffd"`, "Unicode"},
		{"other providers' reasoning is not sent", lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"reasoning","text":"r","summary":[]},{"type":"text","text":"b"}]}`, `{"role":"user","content":"c"}`),
			"user \"a\"\nassistant [{\"type\":\"text\",\"text\":\"b\"}]\nuser \"c\"", ""},
		{"signed thinking is", lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"r","signature":"s"},{"type":"text","text":"b"}]}`, `{"role":"user","content":"c"}`),
			"user \"a\"\nassistant [{\"type\":\"thinking\",\"thinking\":\"r\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"b\"}]\nuser \"c\"", ""},
		{"the summary hides what was before", lines(`{"role":"user","content":"a","condenseParent":"c"}`, `{"role":"user","content":"s","isSummary":true,"condenseId":"c"}`), `user "s"`, ""},
		{"the marker hides its messages", lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b","truncationParent":"t"}`, `{"role":"user","content":"m","isTruncationMarker":true,"truncationId":"t"}`), `user [{"type":"text","text":"a"},{"type":"text","text":"m"}]`, ""},
		{"a foreign role is left out", lines(`{"role":"user","content":"a"}`, `{"role":"system","content":"b"}`), `user "a"`, `"system"`},
	} {
		got, notes, err := Build(tc.in, Options{})
		if err != nil {
			t.Errorf("%s: got %v, want no error", tc.name, err)
			continue
		}
		if s := strings.TrimSpace(show(got)); s != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, s, tc.want)
		}
		if all := fmt.Sprint(notes); !strings.Contains(all, tc.note) || tc.note == "" && len(notes) > 0 {
			t.Errorf("%s: notes %v, want %q", tc.name, notes, tc.note)
		}
	}
	if _, _, err := Build(lines(`{"role":"user","content":"  "}`), Options{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("blank history: %v", err)
	}
}

func TestBuildKeepsInput(t *testing.T) {
	h := lines(`{"role":"user","content":[{"type":"text","text":"a"}],"ts":1}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"q","content":"r"}]}`)
	before := string(conformance.Array(h))
	_, _, _ = Build(h, Options{NoImages: true})
	if string(conformance.Array(h)) != before {
		t.Error("the history was changed")
	}
}

func TestEstimateTokens(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, -3: 0, 1: 1, 3500: 1000, 3501: 1001} {
		if got := EstimateTokens(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

// long is a history of 2,000 messages and about 1 MB that needs no mending.
func long() (out [][]byte) {
	body := strings.Repeat("some output of a tool, with text\\n", 26)
	for i := 0; i < 1000; i++ {
		result := ""
		if i > 0 {
			result = fmt.Sprintf(`{"type":"tool_result","tool_use_id":"call_%d","content":"%s"},`, i-1, body)
		}
		out = append(out, fmt.Appendf(nil, `{"role":"user","content":[%s{"type":"text","text":"<environment_details>"}],"ts":%d}`, result, i))
		out = append(out, fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":"reading"},{"type":"tool_use","id":"call_%d","name":"read_file","input":{"path":"a"}}],"ts":%d}`, i, i))
	}
	return out
}

func BenchmarkBuild(b *testing.B) {
	h := long()
	b.SetBytes(int64(len(conformance.Array(h))))
	for b.Loop() {
		_, _, _ = Build(h, Options{})
	}
}

func BenchmarkAppendAndRequest(b *testing.B) {
	h := long()
	bld := NewBuilder(Options{})
	for _, m := range h {
		bld.Append(m)
	}
	_, _, _ = bld.Messages()
	m := []byte(`{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("x", 900) + `"}]}`)
	a := []byte(`{"role":"assistant","content":"ok"}`)
	for i := 0; b.Loop(); i++ {
		bld.Append(m)
		bld.Append(a)
		_, _, _ = bld.Messages()
	}
}

func BenchmarkValid(b *testing.B) {
	h := long()
	b.SetBytes(int64(len(conformance.Array(h))))
	for b.Loop() {
		for _, m := range h {
			esjson.Valid(m)
		}
	}
}

func ExampleBuild() {
	messages, notes, _ := Build(lines(
		`{"role":"user","content":[{"type":"text","text":"list files"}],"ts":1}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"list_files","input":{}}],"ts":2}`,
	), Options{})
	for _, m := range messages {
		fmt.Printf("%s %s\n", m.Role, m.Content)
	}
	fmt.Println(notes[0].Text)
	// Output:
	// user [{"type":"text","text":"list files"}]
	// assistant [{"type":"tool_use","id":"t1","name":"list_files","input":{}}]
	// user [{"type":"tool_result","tool_use_id":"t1","content":"Tool execution was interrupted before completion."}]
	// the history ends with the model's message: an answer was added
}
