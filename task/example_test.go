package task_test

import (
	"fmt"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

// A log is folded commit by commit. Here the model was asked, its words came in
// pieces, and it called a tool that was about to run when the program was killed.
func Example() {
	steps := [][]task.Event{
		{task.Created{Task: "01890a5d", Number: 1, Title: "count the files"}, task.RunStarted{Run: "r1"}},
		{
			task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text","text":"","partial":true}`)}},
			task.TurnStarted{Run: "r1", Turn: 1},
		},
		{task.MessageTextSaved{Message: 1, Text: "I will list "}},
		{
			task.MessageTextSaved{Message: 1, Text: "them."},
			task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{
				{Literal: `{"ts":1,"type":"say","say":"text","text":`}, {TextOf: 1}, {Literal: `,"partial":false}`},
			}}},
			task.MessageAdded{History: task.API, Message: 2, Body: task.Body{
				Raw: []byte(`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"execute_command","input":{"command":"ls"}}]}`),
			}},
		},
		{task.ToolStarted{Call: "c1", Name: "execute_command", Replay: "never"}},
	}
	s := task.New(nil)
	for i, events := range steps {
		c := journal.Commit{Seq: uint64(i + 1), Epoch: 1, At: int64(i)}
		for _, e := range events {
			line, err := task.Encode(e)
			if err != nil {
				fmt.Println(err)
				return
			}
			c.Events = append(c.Events, journal.Event(line))
		}
		if err := s.Apply(c); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(s.Title, "- replies:", s.Replies)
	fmt.Printf("%s\n", s.UI()[0].Raw())
	for _, call := range s.OpenCalls() {
		fmt.Printf("%s %s: %s\n", call.Name, call.Input(), call.Outcome())
	}
	// Output:
	// count the files - replies: 1
	// {"ts":1,"type":"say","say":"text","text":"I will list them.","partial":false}
	// execute_command {"command":"ls"}: unknown
}

// The rows of another program's file are found again by what they are, not by
// their place: a changed row is a change, and not a new tail.
func Example_compare() {
	s := task.New(nil)
	c := journal.Commit{Seq: 1, Epoch: 1}
	for i, raw := range []string{
		`{"ts":10,"type":"say","say":"text","text":"hello"}`,
		`{"ts":20,"type":"ask","ask":"followup","text":"which file?"}`,
	} {
		line, _ := task.Encode(task.MessageAdded{History: task.UI, Message: uint64(i + 1), Body: task.Body{Raw: []byte(raw)}})
		c.Events = append(c.Events, journal.Event(line))
	}
	if err := s.Apply(c); err != nil {
		fmt.Println(err)
	}
	m := foreign.Compare(s.UI(), task.UI, [][]byte{
		[]byte(`{"ts":10,"type":"say","say":"text","text":"hello"}`),
		[]byte(`{"ts":20,"type":"ask","ask":"followup","text":"which file?","isAnswered":true}`),
		[]byte(`{"ts":30,"type":"say","say":"user_feedback","text":"main.go"}`),
	})
	fmt.Println("changed:", m.Changed, "added:", m.Added, "lacking:", len(m.Lacking))
	// Output:
	// changed: [1] added: [2] lacking: 0
}
