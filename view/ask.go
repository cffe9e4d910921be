package view

import (
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// changesFlag is what Cline appends to a result when files changed.
const changesFlag = "HAS_CHANGES"

// askTitles are the questions with a fixed title; their text, if any, is the body.
var askTitles = map[string]struct {
	class Class
	title string
}{

	"command_output":                {Output, ""},
	"completion_result":             {Note, "waiting for the next word"},
	"api_req_failed":                {Failure, "the request to the model failed"},
	"resume_task":                   {Note, "resumed"},
	"resume_completed_task":         {Note, "resumed after completion"},
	"mistake_limit_reached":         {Question, "too many mistakes in a row"},
	"auto_approval_max_req_reached": {Question, "the limit for automatic approvals is reached"},
	"request_limit_reached":         {Question, "the limit of requests is reached"},
	"browser_action_launch":         {Tool, "open a browser"},
	"plan_mode_respond":             {Question, "plan"},
	"plan_mode_response":            {Question, "plan"},
	"act_mode_respond":              {Model, ""},
	"new_task":                      {Tool, "new task"},
	"condense":                      {Question, "condense the conversation"},
	"summarize_task":                {Question, "summarise the task"},
	"report_bug":                    {Question, "report a bug"},
	"use_subagents":                 {Tool, "use subagents"},
}

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
	known, ok := askTitles[kind]
	it.Class, it.Title, it.Body = known.class, known.title, text
	if kind == "completion_result" {
		it.Body = strings.TrimSuffix(text, changesFlag)
	}
	if kind == "command_output" && text == "" {
		it.Class, it.Title = Note, "the command is running"
	}
	if !ok {
		it.Class = Unknown
	}
	payload(it, kind, text)
	return ok
}

// followup is the question and its suggested answers. While it is streamed, the text is the bare question. rest are its
// other members; nil for a bare question.
func followup(text string) (question string, choices []string, rest *left) {
	raw, ok := object(text)
	if !ok {
		return text, nil, nil
	}
	rest = leftOf(raw)
	question = rest.words("question")
	if question == "" {
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

// choice is a suggested answer; one of another shape is shown as JSON.
func choice(el []byte) string {
	if s, err := esjson.Unquote(el); err == nil {
		return s
	}
	if esjson.TypeOf(el) == esjson.TypeObject {
		if s := str(el, "answer"); s != "" {
			return s
		}
	}
	return string(el)
}

func mcp(it *Item, text string) {
	it.Class = Tool
	raw, ok := object(text)
	if !ok {
		it.Title, it.Body = "use an MCP server", text
		return
	}
	l := leftOf(raw)
	l.drop("type") // the other members imply it
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
