// Package view turns stored messages into text for people.
//
// It is pure: UI and API turn the raw JSON of a message into an Item, and Lines cuts an Item into styled lines. The package
// knows no terminal, colour or HTML, so that a shell and a web page can show the same text. No function fails: a message of
// an unknown kind, or one that is not an object, gives an Item of the class Unknown.
//
// Text stays as it is stored. The caller makes it safe for a terminal or a page.
package view

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Class is the role of an item for its reader.
type Class string

// The classes of items.
const (
	User      Class = "user"      // text of the user
	Model     Class = "model"     // text of the model
	Reasoning Class = "reasoning" // reasoning of the model
	Tool      Class = "tool"      // a tool call, requested or finished
	Output    Class = "output"    // the result of a command or a tool
	Question  Class = "question"  // a question to the user
	Result    Class = "result"    // the result of the task
	Request   Class = "request"   // a request to the model and what it cost
	Note      Class = "note"      // housekeeping: resumed, condensed, checkpoint
	Failure   Class = "failure"   // something went wrong
	Appended  Class = "aside"     // text that the program added for the model
	Unknown   Class = "unknown"   // a kind that this version does not know
)

// Item is one message, or one block of a message, for display.
type Item struct {
	Number  int    // number in its visible history, from 1; 0 for parts
	TS      int64  // Unix milliseconds, 0 when the message has none
	Kind    string // "say:text", "ask:tool", "assistant", "tool_use", ...
	Class   Class
	Title   string // one line; may be empty when there is a Body
	Body    string // any number of lines
	Diff    bool   // Body is a unified diff
	Choices []string
	Images  int
	// Pictures describes each image: its kind and, if known, its size.
	Pictures []string
	// Data are the data: addresses of the images, "" for one without bytes; nil when none has bytes.
	Data    []string
	Partial bool // the message was still streamed when it was last written
	Call    string
	Parts   []Item // blocks of a model message, or the result of a tool call

	Checkpoint int // the number of the checkpoint in a notice; 0 = none
}

// UI reads one element of the history that the user sees. number is its number, from 1: Roo's first row is the user's text.
func UI(raw []byte, number int) Item {
	it := Item{Number: number, Class: Unknown}
	if !isObject(raw) {
		it.Kind, it.Title, it.Body = "invalid", "not a message", string(raw)
		return it
	}
	it.TS, _ = esjson.GetInt(raw, "ts")
	it.Partial, _ = esjson.GetBool(raw, "partial")
	text, _ := esjson.GetString(raw, "text")
	images := addresses(raw)
	it.Images, it.Pictures, it.Data = len(images), pictures(images), whole(images)
	typ, _ := esjson.GetString(raw, "type")
	kind, _ := esjson.GetString(raw, typ)
	it.Kind = typ + ":" + kind
	known := false
	switch typ {
	case "ask":
		known = ask(&it, kind, text)
	case "say":
		known = say(&it, kind, text, raw)
	}
	if !known {
		it.Class, it.Title, it.Body = Unknown, it.Kind, text
		payload(&it, "", text)
	}
	return it
}

// rowKinds has a line for each kind of rows that have a fixed title and their text as the body: kind, class and title.
//
//go:embed rows.txt
var rowKinds string

// heading is the class and title of a kind of rows.
type heading struct {
	class Class
	title string
}

// headings are the headings of rows, by say:KIND and ask:KIND.
var headings = func() map[string]heading {
	all := map[string]heading{}
	for line := range strings.Lines(rowKinds) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		class, title, _ := strings.Cut(rest, " ")
		all[kind] = heading{Class(class), title}
	}
	return all
}()

func say(it *Item, kind, text string, raw []byte) bool {
	it.Body = text
	switch kind {
	case "text":
		it.Class = Model
		if it.Number == 1 {
			it.Class = User
		}
	case "api_req_started":
		request(it, text)
	case "tool", "user_edit_todos", "codebase_search_result":
		tool(it, text)
		payload(it, kind, text)
	case "user_feedback_diff":
		feedbackDiff(it, text)
	case "use_mcp_server":
		mcp(it, text)
	case "checkpoint_saved":
		it.Class, it.Title = Note, "checkpoint"
		if strings.Trim(text, "0123456789abcdef") == "" { // the hash of a commit
			it.Title, it.Body = joinWords(it.Title, Cut(text, 10)), ""
		}
		payload(it, kind, text)
	case "error_retry":
		retry(it, text)
	case "condense_context":
		condensed(it, raw)
	case "sliding_window_truncation":
		truncated(it, raw)
	default:
		return headed(it, kind, text)
	}
	return true
}

// headed shows a row of a kind with a fixed title; false for other kinds.
func headed(it *Item, kind, text string) bool {
	known, ok := headings[it.Kind]
	if !ok {
		return false
	}
	it.Class, it.Title, it.Body = known.class, known.title, text
	switch {
	case kind == "completion_result":
		it.Body = strings.TrimSuffix(text, changesFlag)
	case kind == "error":
		it.Body = cmp.Or(codes[text], text)
	case kind == "api_req_retry_delayed":
		it.Body = untimed(text)
	case it.Kind == "ask:command_output" && text == "":
		it.Class, it.Title = Note, "the command is running"
	}
	payload(it, kind, text)
	return true
}

// request shows the cost of one request to the model. It leaves out the whole prompt, which the text of old rows also holds.
func request(it *Item, text string) {
	it.Class, it.Title, it.Body = Request, "request", ""
	raw, ok := object(text)
	if !ok {
		return
	}
	in, okIn := esjson.GetInt(raw, "tokensIn")
	var facts []string
	if okIn {
		facts = append(facts, fmt.Sprintf("%s tokens in, %s out", Count(in), Count(esjson.IntOf(raw, "tokensOut"))))
	}
	if read := esjson.IntOf(raw, "cacheReads"); read > 0 {
		facts = append(facts, Count(read)+" from cache")
	}
	cost, okCost := esjson.GetFloat(raw, "cost")
	if okCost && cost != 0 && !math.IsInf(cost, 0) { // 0 means that no price is known
		facts = append(facts, fmt.Sprintf("$%.4f", cost))
	}
	reason := str(raw, "cancelReason")
	if reason != "" {
		facts = append(facts, strings.ReplaceAll(reason, "_", " "))
		it.Body = plainly(str(raw, "streamingFailedMessage"))
	}
	if !okIn && !okCost && reason == "" {
		facts = append(facts, "nothing is recorded of it")
	}
	it.Title = "request: " + strings.Join(facts, ", ")
}

// retry shows Cline's row with the number and time of an attempt.
func retry(it *Item, text string) {
	it.Class, it.Title = Note, "the request failed; trying again"
	raw, ok := object(text)
	if !ok {
		return
	}
	l := leftOf(raw)
	attempt, tried := l.count("attempt")
	most, bounded := l.count("maxAttempts")
	wait, waits := l.count("delaySeconds")
	if tried {
		it.Title = fmt.Sprintf("the request failed; try %d", attempt)
		if bounded {
			it.Title += fmt.Sprintf(" of %d", most)
		}
		if waits {
			it.Title += fmt.Sprintf(" in %d s", wait)
		}
	}
	if esjson.IsTrue(raw, "failed") {
		if it.Class, it.Title = Failure, "the request failed"; bounded {
			it.Title = fmt.Sprintf("the request failed %d times", most)
		}
	}
	it.Body = plainly(l.words("errorMessage"))
	l.drop("failed")
	l.onto(it)
}

func feedbackDiff(it *Item, text string) {
	it.Class = User
	raw, ok := object(text)
	if !ok {
		it.Title = "changed the file before approving"
		return
	}
	l := leftOf(raw)
	l.drop("tool") // the tool that was about to change the file
	it.Title = "changed " + cmp.Or(l.words("path"), "the file") + " before approving"
	it.Body = l.words("diff")
	it.Diff = it.Body != ""
	l.onto(it)
}

func condensed(it *Item, raw []byte) {
	it.Class, it.Title = Note, "older history was condensed"
	info := inner(raw, "contextCondense")
	from, okFrom := esjson.GetInt(info, "prevContextTokens")
	to, okTo := esjson.GetInt(info, "newContextTokens")
	if okFrom && okTo {
		it.Title = fmt.Sprintf("older history was condensed: %s -> %s tokens", Count(from), Count(to))
	}
	it.Body = cmp.Or(str(info, "summary"), it.Body)
}

func truncated(it *Item, raw []byte) {
	it.Class, it.Title = Note, "older history is no longer sent"
	if n, ok := esjson.GetInt(inner(raw, "contextTruncation"), "messagesRemoved"); ok {
		it.Title = fmt.Sprintf("older history is no longer sent: %d messages", n)
	}
}

// changesFlag is the text that Cline appends to a result when files changed.
const changesFlag = "HAS_CHANGES"

func ask(it *Item, kind, text string) bool {
	it.Class = Question
	switch kind {
	case "followup", "plan_mode_respond", "plan_mode_response":
		var rest *left
		if it.Body, it.Choices, rest = followup(text); rest != nil {
			rest.onto(it)
		}
		return true
	case "command":
		it.Class, it.Title = Tool, "$ "+text
		return true
	case "tool":
		tool(it, text)
		return true
	case "use_mcp_server":
		mcp(it, text)
		return true
	}
	return headed(it, kind, text)
}

// followup returns a question and its suggested answers. While the row is streamed, its text is the bare question.
// rest are the other members; nil for a bare question.
func followup(text string) (question string, choices []string, rest *left) {
	raw, ok := object(text)
	if !ok {
		return text, nil, nil
	}
	rest = leftOf(raw)
	if question = rest.words("question"); question == "" {
		question = rest.words("response") // plans of Cline
	}
	for _, key := range []string{"suggest", "options"} {
		list, _ := esjson.Get(raw, key)
		if esjson.TypeOf(list) == esjson.TypeArray {
			rest.drop(key)
		}
		for el := range esjson.Array(list) {
			choices = append(choices, choice(el))
		}
	}
	return question, choices, rest
}

// choice returns a suggested answer, or JSON if it has an unknown shape.
func choice(el []byte) string {
	if s, err := esjson.Unquote(el); err == nil {
		return s
	}
	return cmp.Or(str(el, "answer"), string(el))
}

func mcp(it *Item, text string) {
	it.Class = Tool
	raw, ok := object(text)
	if !ok {
		it.Title, it.Body = "use an MCP server", text
		return
	}
	l := leftOf(raw)
	l.drop("type") // implied by the other members
	server, what := l.words("serverName"), l.words("toolName")
	if what == "" {
		what = l.words("uri")
	}
	if it.Title = strings.TrimSpace("mcp " + server + " " + what); server+what == "" {
		it.Title = "use an MCP server"
	}
	it.Body = l.words("arguments")
	if args, ok := object(it.Body); ok {
		it.Body = fields(args)
	}
	l.onto(it)
}

// payloads read the JSON text of some kinds of rows. Members that they do not read are shown below as JSON. A row whose text
// is not JSON is shown unchanged.
var payloads = map[string]func(it *Item, l *left){
	"api_req_deleted": sums, "deleted_api_reqs": sums, "subagent_usage": sums,
	"api_req_rate_limit_wait": func(it *Item, l *left) {
		if seconds, ok := l.count("seconds"); ok {
			it.Title = fmt.Sprintf("waiting %d s for the rate limit", seconds)
		}
	},
	"auto_approval_max_req_reached": func(it *Item, l *left) {
		count := l.words("count")
		if n, ok := l.count("count"); ok {
			count = fmt.Sprint(n)
		}
		if what := joinWords(count, l.words("type")); what != "" {
			it.Title += ": " + what
		}
	},
	"too_many_tools_warning": func(it *Item, l *left) {
		l.drop("threshold")
		tools, ok := l.count("toolCount")
		servers, of := l.count("serverCount")
		if ok {
			it.Title += fmt.Sprintf(": %d", tools)
		}
		if of {
			it.Title += fmt.Sprintf(" of %d servers", servers)
		}
	},
	"image": func(it *Item, l *left) {
		it.Title = joinWords(it.Title, l.words("imagePath"))
		if uri := l.words("imageUri"); uri != "" {
			it.Images, it.Pictures, it.Data = 1, []string{picture(uri)}, whole([]string{uri})
		}
	},
	"browser_action": func(it *Item, l *left) {
		it.Title = joinWords(joinWords(it.Title, l.words("action")), l.words("coordinate"))
		it.Body = l.words("text")
	},
	"browser_action_result": func(it *Item, l *left) {
		l.drop("currentMousePosition")
		it.Title, it.Body = joinWords(it.Title, l.words("currentUrl")), l.words("logs")
		if shot := l.words("screenshot"); shot != "" {
			data := append(make([]string, 0, it.Images+1), it.Data...)
			it.Data = whole(append(data[:len(it.Data)], append(make([]string, it.Images-len(it.Data)), shot)...))
			it.Images, it.Pictures = it.Images+1, append(it.Pictures, picture(shot))
		}
	},
	"codebase_search_result": func(it *Item, l *left) {
		l.drop("tool")
		it.Body = ""
		content := inner(l.raw, "content")
		if content == nil {
			return
		}
		l.drop("content")
		found := leftOf(content)
		it.Title = joinWords("found for", found.words("query"))
		var lines []string
		for el := range objectsOf(content, "results") {
			lines = append(lines, fmt.Sprintf("%s:%d-%d", str(el, "filePath"), esjson.IntOf(el, "startLine"), esjson.IntOf(el, "endLine")))
		}
		if it.Body = strings.Join(lines, "\n"); it.Body != "" {
			found.drop("results")
		}
		found.onto(it)
	},
}

// payload replaces the item of the bare text by the result of the payloads of its kind.
func payload(it *Item, kind, text string) {
	raw, ok := object(text)
	switch {
	case !ok:
	case payloads[kind] != nil:
		if it.Body == text {
			it.Body = ""
		}
		l := leftOf(raw)
		payloads[kind](it, l)
		l.onto(it)
	case it.Body == text && it.Class != User && it.Class != Model && it.Class != Result:
		it.Body = fields(raw)
	}
}

// plainly returns the text of an error, which some programs write as an object.
func plainly(text string) string {
	if raw, ok := object(text); ok {
		return fields(raw)
	}
	return text
}

// fields shows an object of unknown shape: its message, and its other members, one on each line.
func fields(raw []byte) string {
	list, ok := params(raw)
	if !ok {
		return string(raw)
	}
	var lead string
	if i := firstOf(list, []string{"message", "error"}); i >= 0 && list[i].words {
		lead = list[i].text
		list = slices.Delete(list, i, i+1)
	}
	return strings.Trim(lead+"\n"+members(list), "\n")
}

// sums shows the cost of requests whose rows were removed, if known.
func sums(it *Item, l *left) {
	l.drop("cacheReads", "cacheWrites") // parts of the input tokens
	var facts []string
	if in, ok := l.count("tokensIn"); ok {
		facts = append(facts, Count(in)+" tokens in")
	}
	if out, ok := l.count("tokensOut"); ok {
		facts = append(facts, Count(out)+" out")
	}
	for _, key := range []string{"cost", "totalCost"} {
		if cost, ok := esjson.GetFloat(l.raw, key); ok && !math.IsInf(cost, 0) && !math.IsNaN(cost) {
			l.drop(key)
			facts = append(facts, fmt.Sprintf("$%.4f", cost))
			break
		}
	}
	it.Body = strings.Join(facts, ", ")
}

// codes maps errors that Roo writes as one word to texts.
var codes = map[string]string{
	"MODEL_NO_TOOLS_USED":         "the model called no tool",
	"MODEL_NO_ASSISTANT_MESSAGES": "the model's reply was empty",
}

// untimed removes the countdown from a waiting row: the wait is over by now.
func untimed(text string) string {
	before, rest, ok := strings.Cut(text, "<retry_timer>")
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, "</retry_timer>")
	return strings.TrimRight(before, "\n") + after
}
