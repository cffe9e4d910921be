package resume

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
)

// The kinds of answers, as Roo names them.
const (
	Message = "messageResponse"
	Yes     = "yesButtonClicked"
	No      = "noButtonClicked"
)

// The questions of a resume.
const (
	AskTask      = "resume_task"
	AskCompleted = "resume_completed_task"
)

// Reply is the person's answer to the question.
type Reply struct {
	Kind   string
	Text   *string  // nil = none was given; Roo then writes no text key
	Images []string // data URLs; nil = none were given, and no key
}

// State is what is known of a cut tool call.
type State uint8

// The states. Generic is for tasks of other tools, where nothing is known.
const (
	Generic State = iota
	Finished
	NotStarted
	Unknown
)

// Outcome is what is known of one cut tool call.
type Outcome struct {
	State   State
	Text    string // the result, when Finished
	IsError bool   // the result is an error, when Finished
}

// Options change what is planned. The zero value is Roo's way.
type Options struct {
	// Outcomes by tool call id: what the caller's journal knows of calls that have
	// no result in the API history.
	Outcomes map[string]Outcome
	// ClosePartial marks rows that were cut while they streamed as finished.
	ClosePartial bool
}

// Change replaces a UI row by another one with the same ts.
type Change struct {
	Index int
	Row   []byte
}

// Plan says what a resume does. Indices are into the lists given to Make.
type Plan struct {
	Ask     string   // AskTask or AskCompleted
	Hidden  []int    // UI rows that are no longer shown, ascending
	Changed []Change // UI rows that are replaced, ascending
	Added   [][]byte // UI rows that are appended: the question, then the feedback if any
	Replace int      // API message that the new user message takes the place of, -1 = none: it is the last one
	Content []byte   // JSON array: the content of the new user message, before mentions and environment

	ui, api [][]byte
}

// Make plans the resume of a task. now is the time of the question and replyAt
// that of the answer, in Unix milliseconds.
func Make(ui, api [][]byte, reply Reply, now, replyAt int64, o Options) Plan {
	p := Plan{ui: ui, api: api, Replace: -1}
	p.hideRows()
	p.ask(now)
	if o.ClosePartial {
		p.closePartial()
	}
	said := reply.said()
	if reply.Kind == Message || said {
		p.feedback(reply, replyAt)
	}
	blocks := p.oldContent(o)
	if len(api) == 0 {
		blocks = p.firstMessage()
	}
	if said {
		blocks = append(blocks, replyBlocks(reply.Text, reply.Images)...)
	}
	if len(blocks) == 0 {
		blocks = [][]byte{textBlock("[TASK RESUMPTION] Resuming task...")}
	}
	p.Content = array(blocks)
	return p
}

func (r Reply) said() bool { return r.Text != nil && *r.Text != "" || len(r.Images) > 0 }

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

// ask chooses the question and adds its row.
func (p *Plan) ask(now int64) {
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
	var row esjson.Object
	row.Int("ts", now)
	row.String("type", "ask")
	row.String("ask", p.Ask)
	p.Added = append(p.Added, row.Bytes())
}

func (p *Plan) feedback(r Reply, at int64) {
	var row esjson.Object
	row.Int("ts", at)
	row.String("type", "say")
	row.String("say", "user_feedback")
	if r.Text != nil {
		row.String("text", *r.Text)
	}
	if r.Images != nil {
		items := make([][]byte, len(r.Images))
		for i, im := range r.Images {
			items[i] = esjson.Quote(nil, im)
		}
		row.Raw("images", array(items))
	}
	p.Added = append(p.Added, row.Bytes())
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

// oldContent is what of the last turn goes into the new message, and decides
// whether that message takes the place of the last one.
func (p *Plan) oldContent(o Options) [][]byte {
	if len(p.api) == 0 {
		return nil
	}
	at := len(p.api) - 1
	last := p.api[at]
	switch role := member(last, "role"); {
	case isSummary(last):
		return nil
	case role == "assistant":
		return placeholders(last, nil, o)
	case role == "user":
		p.Replace = at
		var missing [][]byte
		if at > 0 && member(p.api[at-1], "role") == "assistant" {
			missing = placeholders(p.api[at-1], last, o)
		}
		return inFront(missing, contentBlocks(last))
	}
	// Some other program's message: it is left where it is. The calls of the
	// message before it are closed, if it is the model's.
	for at--; at >= 0; at-- {
		switch member(p.api[at], "role") {
		case "assistant":
			return placeholders(p.api[at], nil, o)
		case "user":
			return nil
		}
	}
	return nil
}

// inFront puts placeholders behind the results that are there, and both in front
// of everything else.
func inFront(missing, blocks [][]byte) [][]byte {
	if len(missing) == 0 {
		return blocks
	}
	var results, others [][]byte
	for _, b := range blocks {
		if member(b, "type") == "tool_result" {
			results = append(results, b)
		} else {
			others = append(others, b)
		}
	}
	return slices.Concat(results, missing, others)
}

// firstMessage starts a task again that has no API history: with the text and
// images of its first row.
func (p *Plan) firstMessage() [][]byte {
	if len(p.ui) == 0 || !isKind(p.ui[0], "say", "text") {
		return nil
	}
	task := member(p.ui[0], "text")
	var images []string
	if raw, ok := esjson.Get(p.ui[0], "images"); ok {
		for im := range esjson.Array(raw) {
			if s, err := esjson.Unquote(im); err == nil {
				images = append(images, s)
			}
		}
	}
	return replyBlocks(&task, images)
}

// UI is the UI list as it is shown once the plan is carried out.
func (p Plan) UI() [][]byte {
	out := make([][]byte, 0, len(p.ui)+len(p.Added))
	hidden, changed := p.Hidden, p.Changed
	for i, row := range p.ui {
		if len(changed) > 0 && changed[0].Index == i {
			row, changed = changed[0].Row, changed[1:]
		}
		if len(hidden) > 0 && hidden[0] == i {
			hidden = hidden[1:]
			continue
		}
		out = append(out, row)
	}
	return append(out, p.Added...)
}

// API is the API history without the message that is to be replaced.
func (p Plan) API() [][]byte {
	if p.Replace >= 0 {
		return p.api[:p.Replace:p.Replace]
	}
	return p.api[:len(p.api):len(p.api)]
}

// Append is the API history with the new user message at its end, its results
// repaired against the calls before it. content is Plan.Content, or what became
// of it when mentions and environment were put in; at is in Unix milliseconds.
func (p Plan) Append(content []byte, at int64) [][]byte {
	var m esjson.Object
	m.String("role", "user")
	m.Raw("content", content)
	return contextwindow.Append(p.API(), m.Bytes(), at)
}

func replyBlocks(text *string, images []string) [][]byte {
	var out [][]byte
	if text != nil && *text != "" {
		out = append(out, textBlock("<user_message>\n"+*text+"\n</user_message>"))
	}
	for _, im := range images {
		out = append(out, imageBlock(im))
	}
	return out
}

// imageBlock makes a block of a data URL: "data:image/png;base64,...".
func imageBlock(url string) []byte {
	head, data, _ := strings.Cut(url, ",")
	// Roo splits at every comma and colon and takes the second piece.
	data, _, _ = strings.Cut(data, ",")
	_, media, _ := strings.Cut(head, ":")
	media, _, _ = strings.Cut(media, ":")
	media, _, _ = strings.Cut(media, ";")
	var src, o esjson.Object
	src.String("type", "base64")
	src.String("media_type", media)
	src.String("data", data)
	o.String("type", "image")
	o.Raw("source", src.Bytes())
	return o.Bytes()
}
