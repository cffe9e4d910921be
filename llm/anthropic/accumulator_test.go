package anthropic

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// For any input the accumulator must not panic, and each complete reply must
// be storable: valid JSON blocks, sound ids, one text, texts equal to the deltas.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud800b\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"tool_use\",\"id\":\"é 😀\",\"name\":\"n\",\"input\":{\"a\" : 1}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\":\"content_block_start\",\"index\":-1,\"content_block\":[]}\r\n\r\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"x\",\"y\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n:c\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\":\"error\",\"error\":5}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		events := wire.NewEvents(bytes.NewReader(stream))
		var a accumulator
		var shown []byte
		for {
			ev, err := events.Next()
			if err != nil {
				return
			}
			chunks, done, err := a.add(ev)
			if err != nil {
				if _, ok := err.(*llm.Error); !ok {
					t.Fatalf("error of type %T", err)
				}
				return
			}
			for _, chunk := range chunks {
				if d, ok := chunk.(llm.TextDelta); ok {
					shown = append(shown, d.Text...)
				}
			}
			if !done {
				continue
			}
			texts, ids := 0, map[string]bool{}
			d := a.done()
			for _, b := range d.Blocks {
				if !json.Valid(b) || b[0] != '{' {
					t.Fatalf("block %q", b)
				}
				var h struct{ Type, ID string }
				_ = json.Unmarshal(b, &h)
				switch h.Type {
				case "text":
					texts++
				case "tool_use":
					if h.ID == "" || h.ID != SafeID(h.ID) || ids[h.ID] {
						t.Fatalf("id %q", h.ID)
					}
					ids[h.ID] = true
				}
			}
			if texts > 1 || (len(shown) > 0) != (texts == 1) {
				t.Fatalf("%d texts, shown %q", texts, shown)
			}
			for id := range d.Malformed {
				if !ids[id] {
					t.Fatalf("malformed names %q", id)
				}
			}
			return
		}
	})
}

// With a mark in it, valid content stays valid.
func FuzzMark(f *testing.F) {
	f.Add([]byte(`[{"type":"text","text":"a\\\"]"},{"type":"image","source":{"a":[1,{}]}}]`))
	f.Add([]byte(` [ { "text" : "" , "type" : "text" } ] `))
	f.Add([]byte(`[{},"a",[1],null]`))
	f.Add([]byte(`["\`))
	f.Add([]byte(`[{`))
	f.Fuzz(func(t *testing.T, content []byte) {
		out := bytes.Join(withMark(content), nil)
		if !json.Valid(content) {
			return // must only not panic
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q", content, out)
		}
	})
}

func TestSafeID(t *testing.T) {
	for in, want := range map[string]string{"toolu_01-A": "toolu_01-A", "a.b c": "a_b_c", "é": "_", "😀": "__", "": ""} {
		if got := SafeID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
