// Package controltool holds the tools that steer the task instead of touching anything: ask_followup_question asks
// the user, attempt_completion ends the task with a result, switch_mode asks for another mode, update_todo_list keeps
// the task's checklist. They have no effect of their own: the result names what is wanted, and the agent acts on it.
//
// Older shapes of the suggested answers are understood: an array of strings, one string with <suggest> elements, and
// suggestions called answer or with the mode as an attribute.
package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/tool"
)

// QuestionName is the name of the tool that asks the user.
const QuestionName = "ask_followup_question"

// NewQuestion returns ask_followup_question.
func NewQuestion() tool.Tool { return tool.Make(questionSpec, planQuestion) }

const questionSchema = `{"type":"object","properties":{` +
	`"question":{"type":"string","description":"The question, clear and complete"},` +
	`"follow_up":{"type":"array","minItems":1,"maxItems":4,"description":"Suggested answers, each complete in itself","items":{"type":"object","properties":{` +
	`"text":{"type":"string","description":"The answer"},"mode":{"type":["string","null"],"description":"Mode to switch to with this answer, or null"}},` +
	`"required":["text","mode"],"additionalProperties":false}}},"required":["question","follow_up"],"additionalProperties":false}`

// control describes a tool that has no effect of its own.
func control(name, description, schema string) tool.Spec {
	return tool.Spec{
		Name: name, Description: description, Schema: json.RawMessage(schema), Class: tool.Control, Replay: tool.Again,
	}
}

// questionSpec is built once, since every turn needs it.
var questionSpec = control(QuestionName,
	"Ask the user a question when something needed for the task is missing and cannot be found out otherwise. "+
		"Give one to four answers to choose from.",
	questionSchema)

// suggestion is one answer with the mode as the model gave it: absent, null or a
// string. Roo keeps the difference.
type suggestion struct {
	answer string
	mode   []byte
}

func planQuestion(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	text, ok := in.Text("question")
	if !ok || strings.TrimSpace(text) == "" {
		return nil, in.Wrong(`"question" is missing: give the question as a string`)
	}
	list, ok := suggestions(in)
	if !ok {
		return nil, in.Wrong(`"follow_up" must be an array of {"text": "...", "mode": "..." or null}`)
	}
	result := tool.Result{Question: text}
	var suggest [][]byte
	for _, s := range list {
		suggest = append(suggest, esjson.ObjectOf("answer", s.answer, "mode", s.mode))
		result.Choices = append(result.Choices, tool.Choice{Answer: s.answer, Mode: esjson.Text(s.mode)})
	}
	row := esjson.ObjectOf("question", text, "suggest", esjson.List(suggest))
	title := QuestionName + " " + tool.OneLine(strings.TrimSpace(text))
	ask := tool.Ask{Tool: QuestionName, Kind: "followup", Text: string(row), Title: title}
	return tool.Known{Of: ask, Result: result}, nil
}

// suggestions reads follow_up in all its shapes; an absent follow_up is valid.
func suggestions(in tool.Input) ([]suggestion, bool) {
	raw, ok := in.Raw("follow_up")
	if !ok {
		return nil, true
	}
	switch esjson.TypeOf(raw) {
	case esjson.TypeString:
		s := esjson.Text(raw)
		// Some models send the array as a string.
		if t := strings.TrimSpace(s); strings.HasPrefix(t, "[") && esjson.Valid([]byte(t)) {
			return fromArray([]byte(t))
		}
		return fromXML(s), true
	case esjson.TypeArray:
		return fromArray(raw)
	}
	return nil, false
}

func fromArray(raw []byte) ([]suggestion, bool) {
	var out []suggestion
	for el := range esjson.Array(raw) {
		switch esjson.TypeOf(el) {
		case esjson.TypeString:
			out = append(out, suggestion{answer: esjson.Text(el)})
		case esjson.TypeObject:
			s, ok := esjson.GetString(el, "text")
			if !ok {
				s, ok = esjson.GetString(el, "answer")
			}
			if !ok {
				return nil, false
			}
			mode, _ := esjson.Get(el, "mode")
			if t := esjson.TypeOf(mode); mode != nil && t != esjson.TypeString && t != esjson.TypeNull {
				return nil, false
			}
			out = append(out, suggestion{s, mode})
		default:
			return nil, false
		}
	}
	return out, true
}

var (
	suggestTag = lazyregexp.New(`(?s)<suggest((?:\s[^>]*)?)>(.*?)</suggest>`)
	modeAttr   = lazyregexp.New(`\smode\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	entities   = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&#39;", "'", "&amp;", "&")
)

// fromXML reads the <suggest> elements of older models; text without any is one
// answer.
func fromXML(s string) []suggestion {
	var out []suggestion
	for _, m := range suggestTag().FindAllStringSubmatch(s, -1) {
		one := suggestion{answer: entities.Replace(strings.TrimSpace(m[2]))}
		if a := modeAttr().FindStringSubmatch(m[1]); a != nil {
			one.mode = esjson.Quote(nil, entities.Replace(a[1]+a[2]))
		}
		out = append(out, one)
	}
	if t := strings.TrimSpace(s); out == nil && t != "" {
		out = []suggestion{{answer: t}}
	}
	return out
}

// CompletionName is the name of the tool that ends a task.
const CompletionName = "attempt_completion"

// NewCompletion returns attempt_completion.
func NewCompletion() tool.Tool { return tool.Make(completionSpec, planCompletion) }

// completionSpec is built once: every turn needs it.
var completionSpec = control(CompletionName,
	"End the task: give the final result to the user. Use it when the work is done and checked. Do not end the "+
		"result with a question.",
	`{"type":"object","properties":{"result":{"type":"string","description":"What was done, for the user"}},"required":["result"],"additionalProperties":false}`)

func planCompletion(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	text, ok := in.Text("result")
	if !ok || strings.TrimSpace(text) == "" {
		return nil, in.Wrong(`"result" is missing: give the final result as a string`)
	}
	// Roo's ask has no text: a row of its own before it holds the result.
	ask := tool.Ask{Tool: CompletionName, Kind: "completion_result", Title: CompletionName}
	return tool.Known{Of: ask, Result: tool.Result{Text: text, Completed: true}}, nil
}

// SwitchModeName is the name of the tool that changes the task's mode.
const SwitchModeName = "switch_mode"

// NewSwitchMode returns switch_mode. The agent, not the tool, knows which modes there are.
func NewSwitchMode() tool.Tool { return tool.Make(switchModeSpec, planSwitchMode) }

// switchModeSpec is built once: every turn needs it.
var switchModeSpec = control(SwitchModeName,
	"Ask to go on in another mode, when the present one does not have the tools or the role that the next step needs. "+
		"The user must agree. The modes are listed in the system prompt.",
	`{"type":"object","properties":{`+
		`"mode_slug":{"type":"string","description":"The slug of the mode, e.g. code, ask or architect"},`+
		`"reason":{"type":"string","description":"Why, for the user"}},"required":["mode_slug","reason"],"additionalProperties":false}`)

func planSwitchMode(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	slug, _ := in.Text("mode_slug")
	if slug = strings.TrimSpace(slug); slug == "" {
		return nil, in.Wrong(`"mode_slug" is missing: give the slug of a mode as a string`)
	}
	reason, _ := in.Text("reason")
	title := SwitchModeName + " " + tool.OneLine(slug)
	if reason := tool.OneLine(strings.TrimSpace(reason)); reason != "" {
		title += ": " + reason
	}
	row := esjson.ObjectOf("tool", "switchMode", "mode", slug, "reason", reason)
	ask := tool.Ask{Tool: SwitchModeName, Kind: "tool", Text: string(row), Title: title}
	return tool.Known{Of: ask, Result: tool.Result{Mode: slug, Text: reason}}, nil
}

// NewTaskName is the name of the tool that starts a subtask.
const NewTaskName = "new_task"

// NewNewTask returns new_task. It starts nothing: the agent knows which modes there are and how to run a task.
func NewNewTask() tool.Tool { return tool.Make(newTaskSpec, planNewTask) }

// newTaskSpec is built once: every turn needs it. A call may run again: the child's id follows from the call, so starting
// it again finds it.
var newTaskSpec = control(NewTaskName,
	"Hand a part of the work to a subtask: a task of its own, in a mode of your choice, with an empty history. "+
		"It knows only what you write in the message, "+
		"works in the same workspace, and its final result comes back as the result of this call. Call it as the last tool "+
		"of a reply: calls behind it are not run.",
	`{"type":"object","properties":{`+
		`"mode":{"type":"string","description":"The slug of the subtask's mode, e.g. code, debug or architect"},`+
		`"message":{"type":"string","description":"What the subtask is to do, with all that it must know to do it"},`+
		`"todos":{"type":["string","null"],"description":"Its first checklist as Markdown, one step a line, such as \"[ ] step\"; null for none"}},`+
		`"required":["mode","message","todos"],"additionalProperties":false}`)

func planNewTask(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	slug, _ := in.Text("mode")
	if slug = strings.TrimSpace(slug); slug == "" {
		return nil, in.Wrong(`"mode" is missing: give the slug of a mode as a string`)
	}
	message, _ := in.Text("message")
	if strings.TrimSpace(message) == "" {
		return nil, in.Wrong(`"message" is missing: say what the subtask is to do`)
	}
	todos, given, ok := checklist(in)
	if given && !ok {
		return nil, in.Wrong(`"todos" must be text with one step a line, such as "[ ] first\n[ ] second", or null`)
	}
	ask := tool.Ask{Tool: NewTaskName, Kind: "tool", Title: NewTaskName + " " + tool.OneLine(slug) + ": " +
		tool.OneLine(strings.TrimSpace(message))}
	subtask := &tool.Subtask{Mode: slug, Message: message, Todos: todos}
	return tool.Known{Of: ask, Result: tool.Result{Subtask: subtask}}, nil
}

// TodoListName is the name of the tool that keeps the task's checklist.
const TodoListName = "update_todo_list"

// NewTodoList returns update_todo_list. The list belongs to the task, so the plan returns the checklist as text, and
// the agent parses, shows and keeps it.
func NewTodoList() tool.Tool { return tool.Make(todoListSpec, planTodoList) }

// todoListSpec is built once: every turn needs it.
var todoListSpec = control(TodoListName,
	"Replace the task's checklist by a new one, in order of work: \"[ ] step\" for what is to be done, \"[-] "+
		"step\" for what is being done, \"[x] step\" for what is done. "+
		"Always give the whole list. Use it for tasks of several steps: mark a step when it begins and when it is done, add "+
		"what turns up, and never drop an open step unless it has become pointless.",
	`{"type":"object","properties":{"todos":{"type":"string",`+
		`"description":"The whole checklist as Markdown, one step a line"}},"required":["todos"],"additionalProperties":false}`)

func planTodoList(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	text, given, ok := checklist(in)
	switch {
	case !given:
		return nil, in.Wrong(`"todos" is missing: give the whole checklist as text, such as "[ ] first\n[x] second"`)
	case !ok:
		return nil, in.Wrong(`"todos" must be text with one step a line, such as "[ ] first\n[x] second"`)
	}
	ask := tool.Ask{Tool: TodoListName, Kind: "tool", Title: TodoListName}
	return tool.Known{Of: ask, Result: tool.Result{Todos: &text}}, nil
}

// checklist reads the steps of a call, as text or as a list.
func checklist(in tool.Input) (text string, given, ok bool) {
	raw, given := in.Raw("todos")
	switch {
	case !given:
	case esjson.TypeOf(raw) == esjson.TypeString:
		text, ok = in.Text("todos")
	case esjson.TypeOf(raw) == esjson.TypeArray:
		text, ok = fromList(raw)
	}
	return text, given, ok
}

// fromList turns a list, of lines or of Roo's own items, into text.
func fromList(raw []byte) (string, bool) {
	boxes := map[string]string{"completed": "[x] ", "in_progress": "[-] ", "pending": "[ ] ", "": "[ ] "}
	var lines []string
	for el := range esjson.Array(raw) {
		switch esjson.TypeOf(el) {
		case esjson.TypeString:
			lines = append(lines, esjson.Text(el))
		case esjson.TypeObject:
			content, _ := esjson.GetString(el, "content")
			box, known := boxes[esjson.TextOf(el, "status")]
			if content = strings.Join(strings.Fields(content), " "); content == "" || !known {
				return "", false
			}
			lines = append(lines, box+content)
		default:
			return "", false
		}
	}
	return strings.Join(lines, "\n"), true
}
