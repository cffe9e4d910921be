package intake

import "github.com/roost-dev/roost/esjson"

// rawList is a list of raw messages: a file's, or a history's.
type rawList interface {
	Len() int
	Raw(i int) ([]byte, error)
}

// turnRows bounds how many rows at the end of the UI history are examined. A turn has fewer.
const turnRows = 400

// disagreement describes what one of a task's two files still lacks; "" when the files agree.
//
// Roo saves each list as a whole, one list after the other: the request row, then the user turn; the rows of a reply,
// then the assistant message; the user's words, then the turn that holds them. Only a condensation reaches the API
// list first. So between two saves one file is a step behind, and the messages that it lacks are still to come.
//
// disagreement judges order by ts, which Roo sets when it makes a row or message. A ts proves little: two files that
// are in step may look as if they were not. That costs a short wait, because ReadSettled takes files that stay as they
// are. The other error, to take half a step for the whole, would cost messages. So in doubt the two disagree.
func disagreement(ui, api rawList) string {
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
		return "" // old files have no times, so there is nothing to compare
	}
	if lack := apiLacks(ui, last); lack != "" {
		return lack
	}
	return uiLacks(ui, last, before)
}

// turn is the part of an API message that disagreement compares.
type turn struct {
	role    string
	ts      int64
	summary string // the condensation that made it
}

func turnAt(api rawList, i int) turn {
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

// uiRow is the part of a UI row that disagreement compares.
type uiRow struct {
	raw  []byte
	kind string // its say or its ask
	ask  bool
	ts   int64
}

func rowAt(ui rawList, i int) uiRow {
	raw, err := ui.Raw(i)
	if err != nil {
		return uiRow{}
	}
	typ, _ := esjson.GetString(raw, "type")
	r := uiRow{raw: raw, ask: typ == "ask"}
	r.kind, _ = esjson.GetString(raw, typ)
	r.ts, _ = esjson.GetInt(raw, "ts")
	return r
}

// apiLacks finds rows whose API message is still to come.
func apiLacks(ui rawList, last turn) string {
	reply := false
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		row := rowAt(ui, i)
		if row.ts == 0 {
			continue // it has no time
		}
		if row.ts <= last.ts {
			break
		}
		switch {
		case row.ask && (row.kind == "resume_task" || row.kind == "resume_completed_task"):
			return replyLacks(reply) // opened again: the rows before are as the last session left them
		case !row.ask && (row.kind == "user_feedback" || row.kind == "user_feedback_diff" || row.kind == "subtask_result"):
			return "the API history has yet to get the user's words"
		case !row.ask && row.kind == "api_req_started":
			if (last.role == "assistant" || last.summary != "") && !cancelled(row) {
				return "the API history has yet to get the turn that was sent"
			}
			if cancelled(row) {
				return "" // Roo stores nothing of a cancelled reply
			}
			// Roo repeats a request in the middle of a turn, too: continue.
		case last.role == "user" && row.endsReply():
			reply = true
		}
	}
	if reply && cancelled(requestBefore(ui, last.ts)) {
		return ""
	}
	return replyLacks(reply)
}

func replyLacks(reply bool) string {
	if reply {
		return "the API history has yet to get the model's reply"
	}
	return ""
}

// endsReply reports whether the row is a finished part of a model's reply.
func (r uiRow) endsReply() bool {
	if partial, _ := esjson.GetBool(r.raw, "partial"); partial {
		return false
	}
	switch r.kind {
	case "text", "completion_result":
		return true
	case "tool", "command", "use_mcp_server", "followup":
		return r.ask
	}
	return false
}

// requestBefore is the newest request row that is not younger than ts.
func requestBefore(ui rawList, ts int64) uiRow {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		if row := rowAt(ui, i); !row.ask && row.kind == "api_req_started" && row.ts <= ts {
			return row
		}
	}
	return uiRow{}
}

func cancelled(request uiRow) bool {
	text, _ := esjson.GetString(request.raw, "text")
	if !esjson.Valid([]byte(text)) {
		return false
	}
	_, ok := esjson.Get([]byte(text), "cancelReason")
	return ok
}

// uiLacks checks that the rows of the newest API message are there.
func uiLacks(ui rawList, last, before turn) string {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		row := rowAt(ui, i)
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

// sends reports whether a user turn follows the row.
func (r uiRow) sends() bool {
	switch r.kind {
	case "api_req_started", "user_feedback", "subtask_result", "text", "task":
		return !r.ask
	}
	return false
}
