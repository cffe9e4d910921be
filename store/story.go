package store

import "github.com/roost-dev/roost/esjson"

// messages is a list of raw messages: a file's, or a history's.
type messages interface {
	Len() int
	Raw(i int) ([]byte, error)
}

// storyLength is how many rows at the end are looked at. A turn has fewer.
const storyLength = 400

// disagreement says what one of a task's two files has yet to get, in words; ""
// when they tell the same story.
//
// Roo saves each list as a whole and the two of them one after the other: the
// request row, then the user turn; the rows of a reply, then the assistant
// message; the person's words, then the turn that holds them. A condensation is
// the only thing that the API list gets first. So between two saves one file is a
// step behind, and what it lacks is not lost but on its way.
//
// Order is judged by ts, which Roo sets when a row or message is made. A ts
// proves little: two files that are in step may look as if they were not. That
// costs a short wait, because what stays as it is must be taken as it is. The
// other error, to take half a step for the whole, would cost messages; so in
// doubt the two disagree.
func disagreement(ui, api messages) string {
	switch {
	case ui.Len() == 0 && api.Len() == 0:
		return ""
	case ui.Len() == 0:
		return "the UI history has not begun"
	case api.Len() == 0:
		return "the API history has not begun"
	}
	last, before := turnAt(api, api.Len()-1), turnAt(api, api.Len()-2)
	if last.ts == 0 {
		return "" // old files without times: nothing to compare
	}
	if owed := apiOwes(ui, last); owed != "" {
		return owed
	}
	return uiOwes(ui, last, before)
}

// turn is what counts of an API message.
type turn struct {
	role    string
	ts      int64
	summary string // the condensation that made it
}

func turnAt(api messages, i int) turn {
	if i < 0 {
		return turn{}
	}
	raw, err := api.Raw(i)
	if err != nil {
		return turn{}
	}
	var t turn
	t.role, _ = esjson.GetString(raw, "role")
	t.ts, _ = esjson.GetInt(raw, "ts")
	t.summary, _ = esjson.GetString(raw, "condenseId")
	return t
}

// line is what counts of a UI row.
type line struct {
	raw  []byte
	kind string // say or ask
	ask  bool
	ts   int64
}

func lineAt(ui messages, i int) line {
	raw, err := ui.Raw(i)
	if err != nil {
		return line{}
	}
	typ, _ := esjson.GetString(raw, "type")
	l := line{raw: raw, ask: typ == "ask"}
	l.kind, _ = esjson.GetString(raw, typ)
	l.ts, _ = esjson.GetInt(raw, "ts")
	return l
}

// apiOwes looks for rows whose API message is still to come.
func apiOwes(ui messages, last turn) string {
	reply := false
	for i := ui.Len() - 1; i >= max(0, ui.Len()-storyLength); i-- {
		row := lineAt(ui, i)
		if row.ts == 0 {
			continue // it says nothing of when it was made
		}
		if row.ts <= last.ts {
			break
		}
		switch {
		case row.ask && (row.kind == "resume_task" || row.kind == "resume_completed_task"):
			return replyOwed(reply) // opened again: what stands before is as it was left
		case !row.ask && (row.kind == "user_feedback" || row.kind == "user_feedback_diff" || row.kind == "subtask_result"):
			return "the API history has yet to get the person's words"
		case !row.ask && row.kind == "api_req_started":
			if (last.role == "assistant" || last.summary != "") && !cancelled(row) {
				return "the API history has yet to get the turn that was sent"
			}
			if cancelled(row) {
				return "" // Roo stores nothing of a cancelled reply
			}
			// Roo asks again in the middle of a turn, too: look on.
		case last.role == "user" && row.endsReply():
			reply = true
		}
	}
	if reply && cancelled(requestBefore(ui, last.ts)) {
		return ""
	}
	return replyOwed(reply)
}

func replyOwed(reply bool) string {
	if reply {
		return "the API history has yet to get the model's reply"
	}
	return ""
}

// endsReply: the row is a finished part of a model's reply.
func (l line) endsReply() bool {
	if partial, _ := esjson.GetBool(l.raw, "partial"); partial {
		return false
	}
	switch l.kind {
	case "text", "completion_result":
		return true
	case "tool", "command", "use_mcp_server", "followup":
		return l.ask
	}
	return false
}

// requestBefore is the newest request row up to a time.
func requestBefore(ui messages, ts int64) line {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-storyLength); i-- {
		if row := lineAt(ui, i); !row.ask && row.kind == "api_req_started" && row.ts <= ts {
			return row
		}
	}
	return line{}
}

func cancelled(request line) bool {
	text, _ := esjson.GetString(request.raw, "text")
	if !esjson.Valid([]byte(text)) {
		return false
	}
	_, ok := esjson.Get([]byte(text), "cancelReason")
	return ok
}

// uiOwes looks for the rows that must stand for the newest API message.
func uiOwes(ui messages, last, before turn) string {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-storyLength); i-- {
		row := lineAt(ui, i)
		switch {
		case last.summary != "":
			condensed, _ := esjson.Get(row.raw, "contextCondense")
			if id, _ := esjson.GetString(condensed, "condenseId"); id == last.summary {
				return ""
			}
		case row.ts < before.ts && row.ts != 0:
			return "the UI history has yet to get the rows of the newest turn"
		case last.role != "user" || row.sends():
			return ""
		}
	}
	return "the UI history has yet to get the rows of the newest turn"
}

// sends: a user turn follows such a row.
func (l line) sends() bool {
	switch l.kind {
	case "api_req_started", "user_feedback", "subtask_result", "text", "task":
		return !l.ask
	}
	return false
}
