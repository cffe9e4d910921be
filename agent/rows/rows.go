// Package rows writes messages, content blocks and result texts with the members and the member order of Roo itself
// (its `ask`, `say` and `addToClineMessages`), so that Roo's window shows them like its own. It is pure: a row
// depends on its arguments alone.
package rows

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Say returns a row that is complete when it is first written. Nil images leave the member out.
func Say(ts int64, kind, text string, images []string) json.RawMessage {
	var list []byte
	if images != nil {
		list = esjson.Strings(images)
	}
	return esjson.ObjectOf("ts", ts, "type", "say", "say", kind, "text", text, "images", list)
}

// Words returns the row of a user's words. It always has a list of images, as Roo writes an empty one, too.
func Words(ts int64, kind, text string, images []string) json.RawMessage {
	return Say(ts, kind, text, append([]string{}, images...))
}

// Stream returns a row whose text is streamed. partial is true until the text is complete.
func Stream(ts int64, kind, text string, partial bool) json.RawMessage {
	return esjson.ObjectOf("ts", ts, "type", "say", "say", kind, "text", text, "partial", partial)
}

// StreamOf returns the final state of a Stream row. Its text is what the journal saved while it was streamed.
func StreamOf(ts int64, kind string, message uint64) task.Body {
	head := Stream(ts, kind, "", false)
	at := len(head) - len(`"","partial":false}`)
	return task.Body{Compose: []task.Piece{
		{Literal: string(head[:at])}, {TextOf: message}, {Literal: `,"partial":false}`},
	}}
}

// Ask returns a question to the person, or a tool call as the person sees it.
func Ask(ts int64, kind, text string, protected, answered bool) json.RawMessage {
	return esjson.ObjectOf("ts", ts, "type", "ask", "ask", kind, "text", text, "partial", false,
		"isProtected", protected, "isAnswered", esjson.Given(answered))
}

// PlainAsk is one of Roo's questions that are no tool calls: it has neither partial nor isProtected. A nil text leaves
// the member out.
func PlainAsk(ts int64, kind string, text *string) json.RawMessage {
	if text == nil {
		return esjson.ObjectOf("ts", ts, "type", "ask", "ask", kind)
	}
	return esjson.ObjectOf("ts", ts, "type", "ask", "ask", kind, "text", *text)
}

// RequestInfo is the text of an api_req_started row.
type RequestInfo struct {
	Protocol     string
	Done         bool
	In, Out      int64
	Write, Read  int64
	Cost         float64 // 0 when unknown: on resume Roo removes a row without a cost, as a request that got no reply
	CancelReason string
	FailedWhy    string
}

func (r RequestInfo) text() string {
	members := []any{"apiProtocol", r.Protocol}
	if r.Done {
		members = append(members, "tokensIn", r.In, "tokensOut", r.Out,
			"cacheWrites", r.Write, "cacheReads", r.Read, "cost", r.Cost)
	}
	members = append(members, "cancelReason", esjson.Given(r.CancelReason),
		"streamingFailedMessage", esjson.Given(r.FailedWhy))
	return string(esjson.ObjectOf(members...))
}

// Request returns the row of a request to the model.
func Request(ts int64, info RequestInfo) json.RawMessage {
	return Say(ts, "api_req_started", info.text(), nil)
}

// Assistant returns the model's reply as the API history keeps it.
func Assistant(ts int64, id string, blocks []json.RawMessage, details json.RawMessage) json.RawMessage {
	return esjson.ObjectOf("role", "assistant", "content", esjson.List(blocks), "id", esjson.Given(id), "ts", ts,
		"reasoning_details", details)
}

// Text returns a block of text.
func Text(text string) json.RawMessage {
	return esjson.ObjectOf("type", "text", "text", text)
}

// Result returns the block with the result of a tool call.
func Result(call, text string, images []json.RawMessage, isError bool) json.RawMessage {
	var o esjson.Object
	o.Grow(128 + len(call) + len(text) + len(text)/8)
	o.String("type", "tool_result")
	o.String("tool_use_id", call)
	if len(images) == 0 {
		o.String("content", text)
	} else {
		o.Raw("content", esjson.List(append([]json.RawMessage{Text(text)}, images...)))
	}
	if isError {
		o.Bool("is_error", true)
	}
	return o.Bytes()
}

// Failure returns the result of a call that failed.
func Failure(reason string) string {
	return string(esjson.ObjectOf("status", "error", "message", "The tool execution failed", "error", reason))
}

// FirstOf joins the first most items of a list and counts the rest.
func FirstOf(list []string, most int) string {
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Denial returns the result of a call that was refused, with the person's words if there are any.
func Denial(feedback string) string {
	if feedback == "" {
		return status("denied", "message", "The user denied this operation.")
	}
	return status("denied", "feedback", feedback)
}

// Approved precedes the result of a call that the person approved with words; "" without any.
func Approved(feedback string) string {
	if feedback == "" {
		return ""
	}
	return status("approved", "feedback", feedback) + "\n\n"
}

// Guidance gives the model the person's answer to the question what it should do instead.
func Guidance(words string) string { return status("guidance", "feedback", words) }

func status(name, member, text string) string {
	return string(esjson.ObjectOf("status", name, member, text))
}

// Subtask shows a subtask's result in its parent. Roo writes the members of this row in another order than those of all
// other rows.
func Subtask(ts int64, result string) []byte {
	return esjson.ObjectOf("type", "say", "say", "subtask_result", "text", result, "ts", ts)
}

// TodoList returns a checklist as a JSON array.
func TodoList(items []usage.Todo) []byte {
	list := api.Each(items, func(item usage.Todo) []byte {
		return esjson.ObjectOf("id", item.ID, "content", item.Content, "status", item.Status)
	})
	return esjson.List(list)
}

// Todos shows the checklist that a task was started with.
func Todos(ts int64, todos string) []byte {
	return Say(ts, "user_edit_todos", string(esjson.ObjectOf("tool", "updateTodoList",
		"todos", TodoList(usage.ParseTodos(todos)))), nil)
}

// Images turns data URLs into image blocks, split at the first comma as Roo does. What has no comma is left out.
func Images(images []string) []json.RawMessage {
	var out []json.RawMessage
	for _, url := range images {
		head, data, ok := strings.Cut(url, ",")
		if !ok {
			continue
		}
		media := strings.TrimSuffix(strings.TrimPrefix(head, "data:"), ";base64")
		out = append(out, esjson.ObjectOf("type", "image",
			"source", esjson.ObjectOf("type", "base64", "media_type", media, "data", data)))
	}
	return out
}
