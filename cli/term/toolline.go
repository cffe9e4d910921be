package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// call is a tool call that has begun.
type call struct {
	title   string
	started int64
}

// spoken are the tools that get no line, because the chat shows their result or question.
var spoken = []string{"attempt_completion", "ask_followup_question"}

// outcome returns the line about a call that ended, its tail of facts, and the text of the result. It returns no line
// for calls of the spoken tools.
func outcome(c call, f fields) (style view.Style, line, tail, text string) {
	text, images := view.ResultText(f.Result)
	called := strings.TrimSpace(f.Name + " " + targetOf(c.title))
	if f.Outcome == "denied" {
		line = "✗ denied: " + called
		if why := refusal(f.Approval); why != "" {
			line += ": " + why
		}
		return view.Bad, line, "", text
	}
	if f.Outcome == "ok" && slices.Contains(spoken, f.Name) {
		return "", "", "", text
	}
	mark, style := "✓", view.Plain
	var facts []string
	if f.Outcome != "ok" {
		facts = append(facts, f.Outcome)
	}
	switch f.Outcome {
	case "error":
		mark, style = "✗", view.Bad
	case "cancelled", "unknown":
		mark, style = "?", view.Asked
	}
	if f.Exit != nil {
		facts = append(facts, fmt.Sprintf("exit %d", *f.Exit))
		if *f.Exit != 0 {
			mark, style = "✗", view.Bad
		}
	}
	if n := view.ResultLines(f.Name, text); n > 1 && f.Outcome == "ok" && f.Exit == nil {
		facts = append(facts, api.Plural(n, "line"))
	}
	if images > 0 {
		facts = append(facts, api.Plural(images, "image"))
	}
	if took := f.At - c.started; c.started > 0 && took >= 100 {
		facts = append(facts, Duration(time.Duration(took)*time.Millisecond))
	}
	if len(facts) > 0 {
		tail = " · " + strings.Join(facts, " · ")
	}
	return style, mark + " " + called, tail, text
}

// refusal returns why a call was refused: the user's words, or the rule or hook that forbids the call.
func refusal(approval []byte) string {
	why, rule, kind := OneLine(esjson.TextOf(approval, "feedback")), OneLine(esjson.TextOf(approval, "rule")), esjson.TextOf(approval, "kind")
	if why == "" && rule != "" && esjson.TextOf(approval, "by") == "policy" && kind != "mode" {
		why = cmp.Or(map[string]string{"hook": "the hook " + rule + " denies it"}[kind], "a rule denies "+rule)
	}
	return why
}

// targetOf removes the verb from a title: the name of the tool already contains it.
func targetOf(title string) string {
	if cmd, ok := strings.CutPrefix(title, "$ "); ok {
		return cmd
	}
	_, rest, _ := strings.Cut(title, " ")
	return rest
}
