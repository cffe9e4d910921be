// Package infer derives what a task's fields do not hold from its messages, its id and its history item: a title, the
// folder, mode and model, the time of creation.
//
// The results are for showing a task. A run does not begin in a folder that a message names, however likely it is.
package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Title returns a title for a task that lost its first row, which holds what the user asked for; "" when there is
// none.
func Title(s *task.State) string {
	return cmp.Or(titleOfAPI(s), titleOfRows(s), titleOfLong(s))
}

// titleOfRows returns the first text among a task's first rows; "" when there is none.
func titleOfRows(s *task.State) string {
	ui := s.UI()
	for _, m := range ui[:min(len(ui), 8)] {
		if m.Missing || TooLong(m) || m.Kind() != "say:text" && m.Kind() != "say:user_feedback" {
			continue
		}
		if raws, err := s.Raws([]*task.Message{m}); err == nil {
			if text := strings.TrimSpace(esjson.TextOf(raws[0], "text")); text != "" {
				return text
			}
		}
	}
	return ""
}

// titleOfAPI returns the user's first text in the API history, without the tags that the tool put around it; "" when
// there is none.
func titleOfAPI(s *task.State) string {
	api := s.API()
	for i := range min(len(api), 3) {
		if api[i].Missing || TooLong(api[i]) {
			continue
		}
		raws, err := s.Raws(api[i : i+1])
		if err != nil {
			return ""
		}
		if esjson.TextOf(raws[0], "role") != "user" {
			continue
		}
		for b := range esjson.Blocks(esjson.Member(raws[0], "content")) {
			text, ok := esjson.GetString(b, "text")
			if esjson.TextOf(b, "type") != "text" || !ok {
				continue
			}
			words, own := roofmt.UsersWords(text)
			if !own {
				words, _, _ = strings.Cut(words, "<environment_details>")
			}
			if words = strings.TrimSpace(words); words != "" {
				return words
			}
		}
	}
	return ""
}

// Completed reports whether the history item marks the task as completed. Roo writes that for a subtask whose result went
// to its parent: the subtask's last question is then whether to hand the result over. User feedback after the result
// starts the task again.
func Completed(s *task.State) bool {
	if s.Adopted == nil || esjson.TextOf(s.Adopted.Item, "status") != "completed" {
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

// TimeOfID returns the time at which an id was made, in Unix milliseconds: Roo's and Cline's old ids are that time,
// and UUIDs of version 7 hold it. It is 0 for other ids.
func TimeOfID(id string) int64 {
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

// requestsTried bounds how many requests at either end of a history are read for their environment. Nearly always the
// first one has it; each further one costs a read.
const requestsTried = 3

// Environment sets the folder, mode and model of another tool's task that no index names: its folder from the first
// request that names one, mode and model from the last. A fork of such a task counts, until it names a provider.
func Environment(t *api.Summary, s *task.State) {
	if s.Adopted == nil && (s.Fork == nil || t.Provider != "") || t.Workspace != "" && t.Mode != "" && t.Model != "" {
		return
	}
	var first, last roofmt.Environment
	if t.Workspace == "" {
		first = environmentIn(s, false, func(e roofmt.Environment) bool { return e.Workspace != "" })
	}
	if t.Mode == "" || t.Model == "" {
		last = environmentIn(s, true, func(e roofmt.Environment) bool { return e.Mode != "" || e.Model != "" })
	}
	for _, f := range []struct {
		name  string
		to    *string
		value string
	}{{"workspace", &t.Workspace, first.Workspace}, {"mode", &t.Mode, last.Mode}, {"model", &t.Model, last.Model}} {
		if *f.to == "" && f.value != "" {
			*f.to = f.value
			t.Inferred = append(t.Inferred, f.name)
		}
	}
}

// environmentIn reads a task's requests from one end until one has what is wanted: first the API messages, then the UI
// rows of requests. Cline's rows name the model in a field of their own.
func environmentIn(s *task.State, fromEnd bool, enough func(roofmt.Environment) bool) (e roofmt.Environment) {
	for _, list := range [][]*task.Message{s.API(), s.UI()} {
		tried := 0
		for i := range list {
			m := list[i]
			if fromEnd {
				m = list[len(list)-1-i]
			}
			if m.Missing || TooLong(m) || m.History == task.UI && m.Kind() != "say:api_req_started" || m.History == task.API && m.Kind() != "user" {
				continue
			}
			if tried++; tried > requestsTried {
				break
			}
			raws, err := s.Raws([]*task.Message{m})
			if err != nil {
				continue
			}
			if e = roofmt.EnvironmentOf(raws[0]); e.Model == "" && m.History == task.UI {
				e.Model = esjson.TextOf(esjson.Member(raws[0], "modelInfo"), "modelId")
			}
			if enough(e) {
				return e
			}
		}
	}
	return roofmt.Environment{}
}

// LongMessage is the length in bytes above which a message is not read for a list: reading it takes several times its
// length in memory, for each task that is read at the time.
const LongMessage = 8 << 20

// TooLong reports whether a message is too long to be read for a row of a list; see LongMessage. Its place, time
// and kind are known without its bytes, and showing the task reads all of it.
func TooLong(m *task.Message) bool { return m.Stored() > LongMessage }

// titleOfLong replaces the title of a task whose first message is too long to be read for one.
func titleOfLong(s *task.State) string {
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		if len(list) > 0 && !list[0].Missing && TooLong(list[0]) {
			return fmt.Sprintf("(a first message of %d MB)", list[0].Stored()>>20)
		}
	}
	return ""
}
