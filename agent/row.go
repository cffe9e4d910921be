package agent

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// Rows are written with the members and the member order of Roo itself
// (its ask, say and addToClineMessages), so that its window cannot tell them
// from its own.

// sayRow is a message that was complete when it was first written.
func sayRow(ts int64, kind, text string, images []string) json.RawMessage {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", kind)
	o.String("text", text)
	if images != nil {
		o.Raw("images", stringArray(images))
	}
	return o.Bytes()
}

// streamRow is a message that is being streamed, or was.
func streamRow(ts int64, kind, text string, partial bool) json.RawMessage {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", kind)
	o.String("text", text)
	o.Bool("partial", partial)
	return o.Bytes()
}

// streamRowOf is streamRow's final state; its text is what was saved while it
// streamed.
func streamRowOf(ts int64, kind string, message uint64) task.Body {
	head := streamRow(ts, kind, "", false)
	at := len(head) - len(`"","partial":false}`)
	return task.Body{Compose: []task.Piece{
		{Literal: string(head[:at])}, {TextOf: message}, {Literal: `,"partial":false}`},
	}}
}

// askRow is a question to the person, or a tool call as the person sees it.
func askRow(ts int64, kind, text string, protected, answered bool) json.RawMessage {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "ask")
	o.String("ask", kind)
	o.String("text", text)
	o.Bool("partial", false)
	o.Bool("isProtected", protected)
	if answered {
		o.Bool("isAnswered", true)
	}
	return o.Bytes()
}

// plainAskRow has neither partial nor isProtected: Roo's asks that are not
// tools. A nil text leaves the member out.
func plainAskRow(ts int64, kind string, text *string) json.RawMessage {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "ask")
	o.String("ask", kind)
	if text != nil {
		o.String("text", *text)
	}
	return o.Bytes()
}

// requestInfo is the text of an api_req_started row.
type requestInfo struct {
	Protocol     string
	Done         bool
	In, Out      int64
	Write, Read  int64
	Cost         float64
	CostKnown    bool
	CancelReason string
	FailedWhy    string
}

func (r requestInfo) text() string {
	var o esjson.Object
	o.String("apiProtocol", r.Protocol)
	if r.Done {
		o.Int("tokensIn", r.In)
		o.Int("tokensOut", r.Out)
		o.Int("cacheWrites", r.Write)
		o.Int("cacheReads", r.Read)
		if r.CostKnown {
			o.Float("cost", r.Cost)
		} else {
			// Roo takes a row without cost for a request that never came back
			// and removes it on resume. Unknown is 0 here; the ledger keeps null.
			o.Float("cost", 0)
		}
	}
	if r.CancelReason != "" {
		o.String("cancelReason", r.CancelReason)
	}
	if r.FailedWhy != "" {
		o.String("streamingFailedMessage", r.FailedWhy)
	}
	return string(o.Bytes())
}

func requestRow(ts int64, info requestInfo) json.RawMessage {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "api_req_started")
	o.String("text", info.text())
	return o.Bytes()
}

// assistantMessage is the model's reply as the API history keeps it.
func assistantMessage(ts int64, id string, blocks []json.RawMessage, details json.RawMessage) json.RawMessage {
	var o esjson.Object
	o.String("role", "assistant")
	o.Raw("content", joinBlocks(blocks))
	if id != "" {
		o.String("id", id)
	}
	o.Int("ts", ts)
	if details != nil {
		o.Raw("reasoning_details", details)
	}
	return o.Bytes()
}

func textBlock(text string) json.RawMessage {
	var o esjson.Object
	o.String("type", "text")
	o.String("text", text)
	return o.Bytes()
}

func resultBlock(call, text string, images []json.RawMessage, isError bool) json.RawMessage {
	var o esjson.Object
	o.Grow(128 + len(call) + len(text) + len(text)/8)
	o.String("type", "tool_result")
	o.String("tool_use_id", call)
	if len(images) == 0 {
		o.String("content", text)
	} else {
		o.Raw("content", joinBlocks(append([]json.RawMessage{textBlock(text)}, images...)))
	}
	if isError {
		o.Bool("is_error", true)
	}
	return o.Take()
}

func joinBlocks(blocks []json.RawMessage) []byte {
	out := []byte{'['}
	for i, b := range blocks {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return append(out, ']')
}

func stringArray(list []string) []byte {
	out := []byte{'['}
	for i, s := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = esjson.Quote(out, s)
	}
	return append(out, ']')
}
