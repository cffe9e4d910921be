package chat

import (
	"encoding/json"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
)

// incoming is an event of a task, or why there are no more.
type incoming struct {
	client.Event
	task string
	err  error
}

// said are the members of events that a chat reads.
type said struct {
	Run      string `json:"run"`
	Outcome  string `json:"outcome"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Question string `json:"question"`
	By       string `json:"by"`
	Input    string `json:"input"`
	Text     string `json:"text"`
	Dropped  bool   `json:"dropped"`
	Child    string `json:"child"`
	Kind     string `json:"kind"`
	Task     struct {
		Status string `json:"status"`
	} `json:"task"`
}

func (in incoming) read() (e said) {
	switch in.Type {
	case "run.started", "run.queued", "run.waiting", "run.ended", "question.closed", "input.queued", "input.taken",
		"subtask.started", "stream.snapshot", "notice":
		_ = json.Unmarshal(in.Data, &e) // what cannot be read changes nothing
	}
	return e
}

// at is when an event was.
func at(data []byte) int64 {
	text, _ := esjson.GetString(data, "at")
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return when.UnixMilli()
}
