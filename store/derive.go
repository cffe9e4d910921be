package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// titleOfRows is the first words among a task's first rows, where the first row of all,
// which holds what the person asked for, is lost. "" when there are none.
func titleOfRows(s *task.State) string {
	ui := s.UI()
	for _, m := range ui[:min(len(ui), 8)] {
		if m.Missing || vast(m) || m.Kind() != "say:text" && m.Kind() != "say:user_feedback" {
			continue
		}
		if raws, err := s.Raws([]*task.Message{m}); err == nil {
			if text, _ := esjson.GetString(raws[0], "text"); strings.TrimSpace(text) != "" {
				return strings.TrimSpace(text)
			}
		}
	}
	return ""
}

// titleOfAPI is a task's first words by its API history: what the person wrote,
// without what the tool put around it. "" when there are none.
func titleOfAPI(s *task.State) string {
	api := s.API()
	for i := range min(len(api), 3) {
		if api[i].Missing || vast(api[i]) {
			continue
		}
		raws, err := s.Raws(api[i : i+1])
		if err != nil {
			return ""
		}
		m := roofmt.APIMessage(raws[0])
		if m.Role() != "user" {
			continue
		}
		for b := range m.Blocks() {
			text, ok := esjson.GetString(b, "text")
			if b.Type() != "text" || !ok {
				continue
			}
			if text = personsWords(text); text != "" {
				return text
			}
		}
	}
	return ""
}

// wrappers are the tags that tools put around a person's words.
var wrappers = [...]string{"task", "user_message", "user_input", "feedback", "answer"}

func personsWords(text string) string {
	for _, tag := range wrappers {
		_, rest, ok := strings.Cut(text, "<"+tag)
		if _, inside, closed := strings.Cut(rest, ">"); ok && closed {
			words, _, _ := strings.Cut(inside, "</"+tag+">")
			return strings.TrimSpace(words)
		}
	}
	text, _, _ = strings.Cut(text, "<environment_details>")
	return strings.TrimSpace(text)
}

// handedBack reports whether the history row says that the task is completed. Roo
// writes that of a subtask whose result went to its parent: the last thing that it asks
// is then whether to hand it over. What the person said after the result began it anew.
func handedBack(s *task.State) bool {
	if s.Adopted == nil {
		return false
	}
	if said, _ := esjson.GetString(s.Adopted.Item, "status"); said != "completed" {
		return false
	}
	for _, m := range slices.Backward(s.UI()) {
		switch m.Kind() {
		case "say:completion_result", "ask:completion_result":
			return true
		case "say:user_feedback":
			return false
		}
	}
	return true
}

// timeOfID is the moment that an id was made at, in Unix milliseconds: Roo's and
// Cline's old ids are that moment, and UUIDs of version 7 hold it. 0 when the id
// does not say.
func timeOfID(id string) int64 {
	if digits, _, _ := strings.Cut(id, "_"); len(digits) == 13 {
		if ms, err := strconv.ParseInt(digits, 10, 64); err == nil && ms > 0 {
			return ms
		}
	}
	if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
		sec, nsec := u.Time().UnixTime()
		return sec*1000 + nsec/1_000_000
	}
	return 0
}
