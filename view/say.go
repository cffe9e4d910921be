package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// plain are the kinds whose text is the body under a fixed title.
var plain = map[string]struct {
	class Class
	title string
}{

	"task":                       {User, ""},
	"reasoning":                  {Reasoning, ""},
	"user_feedback":              {User, ""},
	"completion_result":          {Result, ""},
	"command_output":             {Output, ""},
	"error":                      {Failure, "error"},
	"api_req_retried":            {Note, "the request was tried again"},
	"api_req_retry_delayed":      {Note, "waiting before the next try"},
	"api_req_finished":           {Note, "the request ended"},
	"api_req_rate_limit_wait":    {Note, "waiting for the rate limit"},
	"api_req_deleted":            {Note, "requests were taken out by a restore"},
	"shell_integration_warning":  {Note, "the editor's shell integration is missing"},
	"mcp_server_request_started": {Note, "asking the MCP server"},
	"mcp_server_response":        {Output, "the MCP server's answer"},
	"mcp_notification":           {Note, "message of the MCP server"},
	"subtask_result":             {Result, "the subtask's result"},
	"rooignore_error":            {Failure, "hidden by .rooignore"},
	"clineignore_error":          {Failure, "hidden by .clineignore"},
	"diff_error":                 {Failure, "the change did not fit"},
	"condense_context_error":     {Failure, "condensing failed"},
	"command":                    {Tool, "command"},
	"new_task":                   {Tool, "new task"},
	"new_task_started":           {Note, "a subtask started"},
	"browser_action":             {Tool, "browser"},
	"browser_action_launch":      {Tool, "open a browser"},
	"browser_action_result":      {Output, "browser"},
	"browser_session_status":     {Note, "browser session"},
	"too_many_tools_warning":     {Note, "many tools are switched on"},
	"image":                      {Output, "an image"},
	"checkpoint_created":         {Note, "checkpoint"},
	"load_mcp_documentation":     {Note, "reading about MCP"},
	"info":                       {Note, ""},
	"task_progress":              {Note, "progress"},
	"deleted_api_reqs":           {Note, "requests were taken out by a restore"},
	"generate_explanation":       {Note, "explanation"},
	"hook_status":                {Note, "hook"},
	"hook_output_stream":         {Output, "hook"},
	"use_subagents":              {Tool, "use subagents"},
	"subagent":                   {Note, "a subagent"},
	"subagent_usage":             {Note, "what subagents cost"},
	"conditional_rules_applied":  {Note, "rules that apply now"},
	"command_permission_denied":  {Failure, "the command is not permitted"},
}

func say(it *Item, kind, text string, raw []byte) bool {
	it.Body = text
	switch kind {
	case "text":
		it.Class = Model
		if it.Number == 1 {
			it.Class = User
		}
		return true
	case "api_req_started":
		request(it, text)
		return true
	case "tool", "user_edit_todos", "codebase_search_result":
		tool(it, text)
		payload(it, kind, text)
		return true
	case "user_feedback_diff":
		feedbackDiff(it, text)
		return true
	case "use_mcp_server":
		mcp(it, text)
		return true
	case "checkpoint_saved":
		it.Class, it.Title = Note, "checkpoint"
		if strings.Trim(text, "0123456789abcdef") == "" { // the hash of a commit
			it.Title, it.Body = joinWords(it.Title, short(text, 10)), ""
		}
		payload(it, kind, text)
		return true
	case "error_retry":
		retry(it, text)
		return true
	case "condense_context":
		condensed(it, raw)
		return true
	case "sliding_window_truncation":
		truncated(it, raw)
		return true
	}
	known, ok := plain[kind]
	if !ok {
		return false
	}
	it.Class, it.Title = known.class, known.title
	switch kind {
	case "completion_result":
		it.Body = strings.TrimSuffix(text, changesFlag)
	case "error":
		if words, ok := codes[text]; ok {
			it.Body = words
		}
	case "api_req_retry_delayed":
		it.Body = untimed(text)
	}
	payload(it, kind, text)
	return true
}

// request is the cost of one request to the model. The text of old rows also holds the whole prompt, which is left out.
func request(it *Item, text string) {
	it.Class, it.Title, it.Body = Request, "request", ""
	raw, ok := object(text)
	if !ok {
		return
	}
	in, okIn := esjson.GetInt(raw, "tokensIn")
	out, _ := esjson.GetInt(raw, "tokensOut")
	var facts []string
	if okIn {
		facts = append(facts, fmt.Sprintf("%s tokens in, %s out", Count(in), Count(out)))
	}
	if read, _ := esjson.GetInt(raw, "cacheReads"); read > 0 {
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

// retry is a row of Cline: the number and time of an attempt.
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
	if failed, _ := esjson.GetBool(raw, "failed"); failed {
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
	l.drop("tool") // the tool that was about to change it
	path := l.words("path")
	if path == "" {
		path = "the file"
	}
	it.Title = "changed " + path + " before approving"
	it.Body = l.words("diff")
	it.Diff = it.Body != ""
	l.onto(it)
}

func condensed(it *Item, raw []byte) {
	it.Class, it.Title = Note, "older history was condensed"
	info, ok := esjson.Get(raw, "contextCondense")
	if !ok || esjson.TypeOf(info) != esjson.TypeObject {
		return
	}
	from, okFrom := esjson.GetInt(info, "prevContextTokens")
	to, okTo := esjson.GetInt(info, "newContextTokens")
	if okFrom && okTo {
		it.Title = fmt.Sprintf("older history was condensed: %s -> %s tokens", Count(from), Count(to))
	}
	if summary := str(info, "summary"); summary != "" {
		it.Body = summary
	}
}

func truncated(it *Item, raw []byte) {
	it.Class, it.Title = Note, "older history is no longer sent"
	info, ok := esjson.Get(raw, "contextTruncation")
	if !ok || esjson.TypeOf(info) != esjson.TypeObject {
		return
	}
	if n, ok := esjson.GetInt(info, "messagesRemoved"); ok {
		it.Title = fmt.Sprintf("older history is no longer sent: %d messages", n)
	}
}
