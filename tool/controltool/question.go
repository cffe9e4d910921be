package controltool

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/roost-dev/roost/esjson"
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

// questionSpec is built once: every turn needs it.
var questionSpec = tool.Spec{
	Name: QuestionName,
	Description: "Ask the user a question when something needed for the task is missing and cannot be found out otherwise. " +
		"Give one to four answers to choose from.",
	Schema: json.RawMessage(questionSchema),
	Class:  tool.Control,
	Replay: tool.Again,
}

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
	suggest := []byte{'['}
	for i, s := range list {
		if i > 0 {
			suggest = append(suggest, ',')
		}
		var o esjson.Object
		o.String("answer", s.answer)
		choice := tool.Choice{Answer: s.answer}
		if s.mode != nil {
			o.Raw("mode", s.mode)
			if esjson.TypeOf(s.mode) == esjson.TypeString {
				choice.Mode, _ = esjson.Unquote(s.mode)
			}
		}
		suggest = append(suggest, o.Bytes()...)
		result.Choices = append(result.Choices, choice)
	}
	var o esjson.Object
	o.String("question", text)
	o.Raw("suggest", append(suggest, ']'))
	ask := tool.Ask{Tool: QuestionName, Kind: "followup", Text: string(o.Bytes()),
		Title: QuestionName + " " + tool.OneLine(strings.TrimSpace(text))}
	return tool.Known{Of: ask, Result: result}, nil
}

// suggestions reads follow_up in all its shapes; none at all is fine.
func suggestions(in tool.Input) ([]suggestion, bool) {
	raw, ok := in.Raw("follow_up")
	if !ok {
		return nil, true
	}
	switch esjson.TypeOf(raw) {
	case esjson.TypeString:
		s, err := esjson.Unquote(raw)
		if err != nil {
			return nil, false
		}
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
			s, err := esjson.Unquote(el)
			if err != nil {
				return nil, false
			}
			out = append(out, suggestion{answer: s})
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
	suggestTag = regexp.MustCompile(`(?s)<suggest((?:\s[^>]*)?)>(.*?)</suggest>`)
	modeAttr   = regexp.MustCompile(`\smode\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	entities   = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&#39;", "'", "&amp;", "&")
)

// fromXML reads the <suggest> elements of older models; text without any is one
// answer.
func fromXML(s string) []suggestion {
	var out []suggestion
	for _, m := range suggestTag.FindAllStringSubmatch(s, -1) {
		one := suggestion{answer: entities.Replace(strings.TrimSpace(m[2]))}
		if a := modeAttr.FindStringSubmatch(m[1]); a != nil {
			one.mode = esjson.Quote(nil, entities.Replace(a[1]+a[2]))
		}
		out = append(out, one)
	}
	if out == nil {
		if t := strings.TrimSpace(s); t != "" {
			out = []suggestion{{answer: t}}
		}
	}
	return out
}
