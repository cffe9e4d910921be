package store

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// triedAtEnd is how many requests at either end of a history are asked where they were
// made. Nearly always the first one says it; each that is asked is read again.
const triedAtEnd = 3

// surround derives what no index says of another tool's task: its folder by the first
// request that names one, mode and model by the last. It is for looking: a run is not
// begun in a folder that a message names, however likely it is.
func surround(t *Summary, s *task.State) {
	if s.Adopted == nil || t.Workspace != "" && t.Mode != "" && t.Model != "" {
		return
	}
	var first, last roofmt.Environment
	if t.Workspace == "" {
		first = saidOf(s, false, func(e roofmt.Environment) bool { return e.Workspace != "" })
	}
	if t.Mode == "" || t.Model == "" {
		last = saidOf(s, true, func(e roofmt.Environment) bool { return e.Mode != "" || e.Model != "" })
	}
	for _, f := range []struct {
		name string
		to   *string
		said string
	}{{"workspace", &t.Workspace, first.Workspace}, {"mode", &t.Mode, last.Mode}, {"model", &t.Model, last.Model}} {
		if *f.to == "" && f.said != "" {
			*f.to = f.said
			t.Inferred = append(t.Inferred, f.name)
		}
	}
}

// saidOf goes through a task's requests from one end until one says what is wanted: those
// of the history that the model saw, then the rows about them. Cline's rows name the
// model beside the request.
func saidOf(s *task.State, fromEnd bool, enough func(roofmt.Environment) bool) (e roofmt.Environment) {
	for _, list := range [][]*task.Message{s.API(), s.UI()} {
		tried := 0
		for i := range list {
			m := list[i]
			if fromEnd {
				m = list[len(list)-1-i]
			}
			if m.Missing || vast(m) || m.History == task.UI && m.Kind() != "say:api_req_started" || m.History == task.API && m.Kind() != "user" {
				continue
			}
			if tried++; tried > triedAtEnd {
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
