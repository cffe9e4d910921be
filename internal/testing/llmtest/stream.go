package llmtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// events are a reply's stream, one complete server-sent event each.
func (r Reply) events(req Request) [][]byte {
	id, model := r.ID, r.Model
	if id == "" {
		id = fmt.Sprintf("msg_test_%d", req.Number)
	}
	if model == "" {
		model = req.Model()
	}
	in := r.Input
	if in == 0 {
		in = int64(len(req.Body)/4) + 1
	}
	var out [][]byte
	send := func(typ string, data string) {
		out = append(out, []byte("event: "+typ+"\ndata: "+data+"\n\n"))
	}
	send("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}}}`,
		encode(id), encode(model), in, r.CacheWrite, r.CacheRead))
	stop, size := "end_turn", int64(0)
	for i, raw := range r.Blocks {
		size += int64(len(raw))
		var b struct {
			Type, ID, Name, Text, Thinking, Signature string
			Input                                     json.RawMessage
		}
		_ = json.Unmarshal(raw, &b)
		start := func(block any) {
			send("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, encode(block)))
			if i == 0 {
				send("ping", `{"type":"ping"}`)
			}
		}
		delta := func(d any) {
			send("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, encode(d)))
		}
		switch b.Type {
		case "text":
			start(map[string]any{"type": "text", "text": ""})
			for _, p := range r.pieces(b.Text) {
				delta(map[string]any{"type": "text_delta", "text": p})
			}
		case "thinking":
			start(map[string]any{"type": "thinking", "thinking": "", "signature": ""})
			for _, p := range r.pieces(b.Thinking) {
				delta(map[string]any{"type": "thinking_delta", "thinking": p})
			}
			delta(map[string]any{"type": "signature_delta", "signature": b.Signature})
		case "tool_use":
			stop = "tool_use"
			start(map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": map[string]any{}})
			ps := r.InputPieces
			if ps == nil {
				ps = append([]string{""}, r.pieces(string(b.Input))...) // the API begins with an empty one
			}
			for _, p := range ps {
				delta(map[string]any{"type": "input_json_delta", "partial_json": p})
			}
		default: // redacted_thinking and unknown kinds: whole at the start
			start(raw)
		}
		send("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	if r.StopReason != "" {
		stop = r.StopReason
	}
	output := r.Output
	if output == 0 {
		output = size/4 + 1
	}
	send("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}}`, encode(stop), output))
	send("message_stop", `{"type":"message_stop"}`)
	return out
}

func (r Reply) pieces(s string) []string {
	n := r.DeltaRunes
	if n <= 0 {
		n = 12
	}
	var out []string
	for rs := []rune(s); len(rs) > 0; {
		k := min(n, len(rs))
		out = append(out, string(rs[:k]))
		rs = rs[k:]
	}
	return out
}

// serve writes the reply, faults included.
func (r Reply) serve(d dialect, w http.ResponseWriter, hr *http.Request, req Request, closed <-chan struct{}) {
	gone := hr.Context().Done()
	wait := func(d time.Duration) bool {
		if d <= 0 {
			return true
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-gone:
		case <-closed:
		}
		return false
	}
	if !wait(r.Before) {
		return
	}
	for k, v := range r.Header {
		w.Header()[k] = v
	}
	w.Header().Set("request-id", fmt.Sprintf("req_test_%d", req.Number))
	if r.Status != 0 {
		d.refuse(w, r.Status, r.Type, r.Message)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(d.media, "text/event-stream; charset=utf-8"))
	w.WriteHeader(http.StatusOK)
	events, stall := d.events(r, req), false
	cut := func(n int) bool {
		if n <= 0 || n >= len(events) {
			return false
		}
		events = events[:n]
		return true
	}
	broken := cut(r.CutAtEvent)
	switch {
	case cut(r.StallAt):
		stall = true
	case cut(r.ErrorAt):
		events = append(events, d.failed(r.Type, r.Message))
	}
	if r.CutAtByte > 0 {
		if all := bytes.Join(events, nil); r.CutAtByte < len(all) {
			events, broken = [][]byte{all[:r.CutAtByte]}, true
		}
	}
	flush := http.NewResponseController(w)
	if r.Piece <= 0 && r.Pause <= 0 {
		// An instant model: one write, as when a proxy collects events.
		_, _ = w.Write(bytes.Join(events, nil))
		_ = flush.Flush()
		events = nil
	}
	for _, p := range split(events, r.Piece) {
		if _, err := w.Write(p); err != nil {
			return
		}
		_ = flush.Flush()
		if !wait(r.Pause) {
			return
		}
	}
	if stall {
		select {
		case <-gone:
		case <-closed:
		}
	}
	if broken && r.Abort {
		panic(http.ErrAbortHandler)
	}
}

// split cuts the stream into writes of n bytes, or one per event.
func split(events [][]byte, n int) [][]byte {
	if n <= 0 {
		return events
	}
	var out [][]byte
	for all := bytes.Join(events, nil); len(all) > 0; {
		k := min(n, len(all))
		out = append(out, all[:k])
		all = all[k:]
	}
	return out
}

func failedEvent(typ, message string) []byte {
	return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":%s,\"message\":%s}}\n\n", encode(typ), encode(message))
}

func writeError(w http.ResponseWriter, status int, typ, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_test"}`, encode(typ), encode(message))
}
