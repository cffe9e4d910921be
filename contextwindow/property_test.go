package contextwindow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/llm"
)

var (
	genID   = rapid.SampledFrom([]string{`"t1"`, `"t2"`, `"t3"`, `"t.1"`, `"t_1"`, `"t1_2"`, `""`, `7`, `"\ud800"`, `"a b"`, `"t2_2"`})
	genText = rapid.SampledFrom([]string{`"hi"`, `""`, `"  \n"`, `"\u3000"`, `"\ufeff"`, `"\u0085"`, `"\ud83d"`, `"\ude00\ud83d\ude00"`, `"[read_file for 'x'] Result:"`, `null`, `5`, `"a\\ud800"`, "\"\xed\xa0\x80\"", "\"\xff\"", `[]`})
	genName = rapid.SampledFrom([]string{`"read_file"`, `"mcp--a--b"`, `"bad name!"`, `""`, `null`})
	genIn   = rapid.SampledFrom([]string{`{}`, `{"path":"a"}`, `"{\"a\":1}"`, `"x"`, `null`, `[1]`, `{"a":"\udc00"}`})
	genRole = rapid.SampledFrom([]string{`"user"`, `"user"`, `"assistant"`, `"assistant"`, `"system"`, `null`, ``})
	genImg  = rapid.SampledFrom([]string{`{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}`, `{"type":"base64","media_type":"image/bmp","data":"AAAA"}`,
		`{"type":"url","url":"http://x"}`, `{"type":"base64","media_type":"image/png","data":""}`, `{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo=","x":1}`, `{"type":"base64","media_type":"image/png","data":"?"}`, `null`})
	genTag = rapid.SampledFrom([]string{``, ``, ``, ``, ``, `,"ts":5`, `,"condenseParent":"C"`, `,"truncationParent":"T"`, `,"isSummary":true,"condenseId":"C"`, `,"isTruncationMarker":true,"truncationId":"T"`, `,"id":"resp"`})
)

func genBlock(t *rapid.T, depth int) string {
	d := func(g *rapid.Generator[string]) string { return g.Draw(t, "v") }
	extra := d(rapid.SampledFrom([]string{``, ``, ``, `,"cache_control":{"type":"ephemeral"}`, `,"x":1`}))
	switch n := rapid.IntRange(0, 12).Draw(t, "block"); {
	case n < 3:
		return `{"type":"text","text":` + d(genText) + extra + `}`
	case n < 5:
		return `{"type":"tool_use","id":` + d(genID) + `,"name":` + d(genName) + `,"input":` + d(genIn) + extra + `}`
	case n < 7:
		inner := d(genText)
		if depth < 2 && rapid.Bool().Draw(t, "list") {
			inner = genBlocks(t, depth+1)
		}
		isErr := d(rapid.SampledFrom([]string{``, `,"is_error":true`, `,"is_error":"yes"`}))
		return `{"type":"tool_result","tool_use_id":` + d(genID) + `,"content":` + inner + isErr + extra + `}`
	case n == 7:
		return `{"type":"image","source":` + d(genImg) + extra + `}`
	case n == 8:
		return `{"type":"thinking","thinking":` + d(genText) + `,"signature":` + d(rapid.SampledFrom([]string{`"s"`, `""`, `null`})) + extra + `}`
	case n == 9:
		return `{"type":"redacted_thinking","data":"x"` + extra + `}`
	case n == 10:
		return `{"type":"reasoning","text":"r","summary":[]}`
	case n == 11:
		return `{"type":"document","source":{}}`
	}
	return d(rapid.SampledFrom([]string{`null`, `"x"`, `{}`, `[]`, `{"type":5}`}))
}

func genBlocks(t *rapid.T, depth int) string {
	var items []string
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		items = append(items, genBlock(t, depth))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func genMessage(t *rapid.T) []byte {
	if rapid.IntRange(0, 30).Draw(t, "junk") == 0 {
		return []byte(rapid.SampledFrom([]string{`null`, `{`, ``, `[]`, `{}`, `"x"`}).Draw(t, "raw"))
	}
	content := genBlocks(t, 0)
	if rapid.IntRange(0, 4).Draw(t, "string") == 0 {
		content = genText.Draw(t, "content")
	}
	role := genRole.Draw(t, "role")
	if role != "" {
		role = `"role":` + role + `,`
	}
	return []byte(`{` + role + `"content":` + content + genTag.Draw(t, "tag") + `}`)
}

func genHistory(t *rapid.T) (out [][]byte) {
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		out = append(out, genMessage(t))
	}
	return out
}

func genOptions(t *rapid.T) Options {
	return Options{DropThinking: rapid.Bool().Draw(t, "drop"), NoImages: rapid.Bool().Draw(t, "noimg")}
}

// Whatever is stored, wherever it is cut, what is built is valid.
func TestBuildAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, o := genHistory(t), genOptions(t)
		for n := 0; n <= len(h); n++ {
			got, _, err := Build(h[:n], o)
			if errors.Is(err, ErrEmpty) {
				continue
			}
			if err := apirules.Validate(got); err != nil {
				t.Fatalf("%v\nhistory %s\nbuilt %s", err, bytes.Join(h[:n], []byte("\n")), show(got))
			}
		}
	})
}

// A Builder that asks for a request after every message gives what Build gives.
func TestBuilderEqualsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, o := genHistory(t), genOptions(t)
		b := NewBuilder(o)
		for n, m := range h {
			b.Append(m)
			got, gotNotes, gotErr := b.Messages()
			want, wantNotes, wantErr := Build(h[:n+1], o)
			if diff := cmp.Diff(show(want), show(got)); diff != "" || gotErr != wantErr {
				t.Fatalf("after %d: %v %v %s", n+1, wantErr, gotErr, diff)
			}
			if diff := cmp.Diff(wantNotes, gotNotes); len(wantNotes) > 0 && diff != "" {
				t.Fatalf("notes: %s", diff)
			}
		}
	})
}

// Appending never changes what was sent before, but for the last user message
// (it may grow) and the answer that stood in for a missing one.
func TestBuildPrefixStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory(t)
		for i := range h {
			if c := check(new(esjson.Index), h[i], Options{}); c.summary || c.marker || c.truncated != "" {
				t.Skip("tags change what is visible")
			}
		}
		before, _, err := Build(h, Options{})
		if err != nil {
			t.Skip()
		}
		next := []byte(`{"role":"assistant","content":[{"type":"text","text":"ok"}]}`)
		ended := !noteOf(h, "an answer was added")
		after, _, _ := Build(append(h[:len(h):len(h)], next, []byte(`{"role":"user","content":"more"}`)), Options{})
		keep := len(before)
		if !ended {
			keep -= 2 // the last model message grows and the answer goes
		}
		if diff := cmp.Diff(show(before[:keep]), show(after[:keep])); diff != "" {
			t.Fatal(diff)
		}
	})
}

func noteOf(h [][]byte, part string) bool {
	_, notes, _ := Build(h, Options{})
	for _, n := range notes {
		if strings.Contains(n.Text, part) {
			return true
		}
	}
	return false
}

func show(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s\n", m.Role, m.Content)
	}
	return b.String()
}

func FuzzBuild(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h [][]byte
		if json.Valid(raw) && esjson.Valid(raw) {
			h = conformance.Value(raw).List()
		} else {
			h = bytes.Split(raw, []byte("\n"))
		}
		got, _, err := Build(h, Options{})
		if err == nil {
			err = apirules.Validate(got)
		}
		if err != nil && !errors.Is(err, ErrEmpty) {
			t.Fatalf("got %v\n%s, want no error or errors.Is(err, ErrEmpty)", err, show(got))
		}
	})
}
