package infer

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// requestsTried bounds how many requests at either end of a history are read for their environment. Nearly always the
// first one has it; each further one costs a read.
const requestsTried = 3

// Environment sets the folder, mode and model of another tool's task that no index names: its folder from the first
// request that names one, mode and model from the last.
func Environment(t *api.Summary, s *task.State) {
	if s.Adopted == nil || t.Workspace != "" && t.Mode != "" && t.Model != "" {
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
				info, _ := esjson.Get(raws[0], "modelInfo")
				e.Model, _ = esjson.GetString(info, "modelId")
			}
			if enough(e) {
				return e
			}
		}
	}
	return roofmt.Environment{}
}
