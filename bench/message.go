package main

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// baseTS is the time of the first made message, in Unix milliseconds.
const baseTS = 1_767_000_000_000

// prose is n bytes that look a little like code.
func prose(seed, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\tif err := s.handle%d(ctx, \"value %d\"); err != nil { return err }\n", seed%997, seed+i)
	}
	return b.String()[:n]
}

// uiMessage is a row as the person sees it, with n bytes of text.
func uiMessage(i, n int) []byte { return messageWith(i, prose(i, n)) }

func messageWith(i int, text string) []byte {
	var o esjson.Object
	o.Int("ts", baseTS+int64(i))
	o.String("type", "say")
	o.String("say", "text")
	o.String("text", text)
	return o.Bytes()
}

// apiMessage is the model's side of it. The roles alternate.
func apiMessage(i, n int) []byte {
	var block, o esjson.Object
	block.String("type", "text")
	block.String("text", prose(i, n))
	role := "user"
	if i%2 == 1 {
		role = "assistant"
	}
	o.String("role", role)
	o.Raw("content", append(append([]byte{'['}, block.Bytes()...), ']'))
	o.Int("ts", baseTS+int64(i))
	return o.Bytes()
}

// step is one message for each history, numbered from next, and their JSON.
func step(next uint64, i, n int) (events []task.Event, bytes []byte) {
	ui, api := uiMessage(i, n), apiMessage(i, n)
	events = []task.Event{
		task.MessageAdded{History: task.UI, Message: next, Body: task.Body{Raw: ui}},
		task.MessageAdded{History: task.API, Message: next + 1, Body: task.Body{Raw: api}},
	}
	return events, append(append([]byte{}, ui...), api...)
}
