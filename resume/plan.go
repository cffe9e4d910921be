package resume

import (
	"slices"

	"github.com/roost-dev/roost/esjson"
)

// The questions of a resume.
const (
	AskTask      = "resume_task"
	AskCompleted = "resume_completed_task"
)

// Change replaces a UI row by another one with the same ts.
type Change struct {
	Index int
	Row   []byte
}

// Plan says what a resume does with the rows. Indices are into the list given to Rows.
type Plan struct {
	Ask     string   // AskTask or AskCompleted
	Hidden  []int    // rows that are no longer shown, ascending
	Changed []Change // rows that are replaced, ascending: what was cut while it streamed is marked as finished

	ui [][]byte
}

// Rows plans the resume of a task with these UI rows.
func Rows(ui [][]byte) Plan {
	p := Plan{ui: ui}
	p.hideRows()
	p.ask()
	p.closePartial()
	return p
}

// hideRows hides old resume questions at the end, cut reasoning before them, and
// the last request row if the request never got anywhere.
func (p *Plan) hideRows() {
	end := len(p.ui)
	for i := end - 1; i >= 0; i-- {
		if !isResume(p.ui[i]) {
			end = i + 1
			break
		}
	}
	for end > 0 && isKind(p.ui[end-1], "say", "reasoning") {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if !isKind(p.ui[i], "say", "api_req_started") {
			continue
		}
		if unanswered(member(p.ui[i], "text")) {
			p.Hidden = append(p.Hidden, i)
		}
		break
	}
	for i := end; i < len(p.ui); i++ {
		p.Hidden = append(p.Hidden, i)
	}
}

// unanswered: the request has neither a cost nor a reason why it was cancelled.
// A text that cannot be read proves nothing, and its row stays.
func unanswered(text string) bool {
	if text == "" {
		return true
	}
	raw := []byte(text)
	if !esjson.Valid(raw) || esjson.TypeOf(raw) == esjson.TypeNull {
		return false
	}
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return true
	}
	_, cost := esjson.Get(raw, "cost")
	_, reason := esjson.Get(raw, "cancelReason")
	return !cost && !reason
}

// ask chooses the question.
func (p *Plan) ask() {
	p.Ask = AskTask
	for i := len(p.ui) - 1; i >= 0; i-- {
		if slices.Contains(p.Hidden, i) || isResume(p.ui[i]) {
			continue
		}
		if member(p.ui[i], "ask") == "completion_result" {
			p.Ask = AskCompleted
		}
		break
	}
}

func (p *Plan) closePartial() {
	hidden := make(map[int]bool, len(p.Hidden))
	for _, i := range p.Hidden {
		hidden[i] = true
	}
	for i, row := range p.ui {
		if hidden[i] || esjson.TypeOf(row) != esjson.TypeObject {
			continue
		}
		if partial, _ := esjson.GetBool(row, "partial"); partial {
			p.Changed = append(p.Changed, Change{i, esjson.Set(row, "partial", []byte("false"))})
		}
	}
}
