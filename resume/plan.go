// Package resume plans the rows of an interrupted task: it is a pure function from the stored UI history to the rows
// to hide, the rows to mark and the question to ask. It reads and writes nothing. The model's side stays as it is
// stored; package contextwindow makes a valid request from it, and the agent decides about interrupted calls.
//
// The plan follows Roo's where Roo is right, so that a task that moves between the programs looks the same. It differs
// where Roo loses something:
//
//   - a request row that cannot be read stays, and does not stop the resume;
//   - a task without API history starts again from its first UI row;
//   - older questions are not marked as answered by the answer to this one.
//
// Hidden rows stay in the caller's lists.
package resume

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// The questions that a resume asks.
const (
	AskTask      = "resume_task"
	AskCompleted = "resume_completed_task"
)

// Change replaces a UI row by another one with the same ts.
type Change struct {
	Index int
	Row   []byte
}

// Plan is what a resume does with the rows. Indices are into the list given to Rows.
type Plan struct {
	Ask     string   // AskTask or AskCompleted
	Hidden  []int    // rows to hide, ascending
	Changed []Change // rows to replace, ascending: rows cut off while they streamed are marked as finished

	ui [][]byte
}

// Rows plans the resume of a task with these UI rows.
func Rows(ui [][]byte) Plan {
	p := Plan{ui: ui}
	p.hideRows()
	p.chooseQuestion()
	p.closePartial()
	return p
}

// hideRows hides old resume questions at the end, incomplete reasoning before them, and the last request row if its
// request got no reply.
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
		if unanswered(esjson.TextOf(p.ui[i], "text")) {
			p.Hidden = append(p.Hidden, i)
		}
		break
	}
	for i := end; i < len(p.ui); i++ {
		p.Hidden = append(p.Hidden, i)
	}
}

// unanswered reports whether the request has neither a cost nor a reason why it was cancelled. An unreadable text
// proves nothing, and its row stays.
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

// chooseQuestion chooses the question about a completed task when the newest row shows a completion. Hidden rows and
// resume questions do not count.
func (p *Plan) chooseQuestion() {
	p.Ask = AskTask
	for i, row := range slices.Backward(p.ui) {
		if p.hides(i) || isResume(row) {
			continue
		}
		if esjson.TextOf(row, "ask") == "completion_result" {
			p.Ask = AskCompleted
		}
		break
	}
}

// closePartial marks rows that were cut off while they streamed as finished.
func (p *Plan) closePartial() {
	for i, row := range p.ui {
		if !p.hides(i) && esjson.IsTrue(row, "partial") {
			p.Changed = append(p.Changed, Change{i, esjson.Set(row, "partial", []byte("false"))})
		}
	}
}

func (p *Plan) hides(row int) bool {
	_, hidden := slices.BinarySearch(p.Hidden, row)
	return hidden
}

// FirstWords returns the blocks of the first message to a model, for a task whose model side is lost:
// the text and the images of its first row.
func FirstWords(ui [][]byte) (blocks []json.RawMessage) {
	if len(ui) > 0 && isKind(ui[0], "say", "text") {
		if text := esjson.TextOf(ui[0], "text"); text != "" {
			blocks = append(blocks, esjson.ObjectOf("type", "text", "text", "<user_message>\n"+text+"\n</user_message>"))
		}
		for im := range esjson.Array(esjson.Member(ui[0], "images")) {
			if s, err := esjson.Unquote(im); err == nil {
				blocks = append(blocks, imageBlock(s))
			}
		}
	}
	if len(blocks) == 0 {
		blocks = []json.RawMessage{esjson.ObjectOf("type", "text", "text", "[TASK RESUMPTION] Resuming task...")}
	}
	return blocks
}

// imageBlock makes a content block from a data URL: "data:image/png;base64,...".
func imageBlock(url string) []byte {
	head, data, _ := strings.Cut(url, ",")
	// Roo splits at every comma and colon and takes the second piece.
	data, _, _ = strings.Cut(data, ",")
	_, media, _ := strings.Cut(head, ":")
	media, _, _ = strings.Cut(media, ":")
	media, _, _ = strings.Cut(media, ";")
	return esjson.ObjectOf("type", "image",
		"source", esjson.ObjectOf("type", "base64", "media_type", media, "data", data))
}

func isKind(row []byte, typ, kind string) bool {
	return esjson.TextOf(row, "type") == typ && esjson.TextOf(row, typ) == kind
}

func isResume(row []byte) bool {
	ask := esjson.TextOf(row, "ask")
	return ask == AskTask || ask == AskCompleted
}
