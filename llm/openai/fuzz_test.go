package openai

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// For any input nothing panics, and each complete reply can be stored: valid
// blocks, distinct ids, text equal to the streamed text.
func FuzzReply(f *testing.F) {
	f.Add(false, []byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\",\"tool_calls\":[{\"index\":3,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	f.Add(false, []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{}},{\"id\":\"a\"},5]}}],\"usage\":{\"prompt_tokens\":-1}}\n\ndata: {\"error\":7}\n\n"))
	f.Add(true, []byte("data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"delta\":\"{}\"}\n\ndata: {\"type\":\"response.completed\"}\n\n"))
	f.Add(true, []byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"e\"}}\n\ndata: {\"type\":\"response.incomplete\",\"response\":5}\n\n"))
	f.Fuzz(func(t *testing.T, responses bool, stream []byte) {
		chat := &chatReply{}
		r := wire.Attempt{Add: chat.add, Done: chat.done}
		if responses {
			of := &responsesReply{}
			r = wire.Attempt{Add: of.add, Done: of.done}
		}
		events := wire.NewEvents(bytes.NewReader(stream))
		var shown []byte
		for {
			ev, err := events.Next()
			if errors.Is(err, io.EOF) || err != nil {
				return
			}
			chunks, done, err := r.Add(ev)
			if err != nil {
				var failed *llm.Error
				if !errors.As(err, &failed) {
					t.Fatalf("error of type %T", err)
				}
				return
			}
			for _, c := range chunks {
				if d, is := c.(llm.TextDelta); is {
					shown = append(shown, d.Text...)
				}
			}
			if done {
				break
			}
		}
		d := r.Done()
		ids := map[string]bool{}
		var text string
		for _, b := range d.Blocks {
			if !esjson.Valid(b) {
				t.Fatalf("block %s", b)
			}
			switch typ, _ := esjson.GetString(b, "type"); typ {
			case "tool_use":
				id, _ := esjson.GetString(b, "id")
				if id == "" || ids[id] {
					t.Fatalf("id %q in %s", id, d.Blocks)
				}
				ids[id] = true
			case "text":
				text, _ = esjson.GetString(b, "text")
			}
		}
		whole, _ := esjson.Unquote(esjson.Quote(nil, string(shown)))
		if text != whole {
			t.Fatalf("stored %q, shown %q", text, whole)
		}
		if u := d.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.Input+u.CacheRead+u.CacheWrite < 0 {
			t.Fatalf("got %+v, want u.Input >= 0 and u.Output >= 0 and u.CacheRead >= 0 and u.CacheWrite >= 0 and u.Input+u.CacheRead+u.CacheWrite >= 0",
				u)
		}
	})
}
