package agent

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool/prompttool"
)

// systemPrompt is the system prompt: the model's role in the task's mode, how to work, the modes, and the user's rules.
// It depends only on what stays the same over a task's turns, so that provider caches keep hitting, and changes when
// the mode does.
func (a *Agent) systemPrompt() string {
	m, modes := a.currentMode()
	if a.prompt.text != "" && a.prompt.slug == m.Slug {
		return a.prompt.text
	}
	role := m.RoleDefinition
	if role == "" {
		role = "You are a software engineer who works in the user's workspace with the tools given here."
	}
	parts := []string{role, a.howToWork()}
	if modes {
		parts = append(parts, a.User.Modes.Text())
		if text := a.skillText(m.Slug); text != "" {
			parts = append(parts, text)
		}
		var rules mode.Rules
		if a.User.Setup != nil {
			rules = a.User.Setup.Rules(m.Slug)
		}
		for _, note := range rules.Notes {
			a.notice(note)
		}
		if text := rules.Text(m); text != "" {
			parts = append(parts, text)
		}
	}
	a.prompt = modePrompt{m.Slug, strings.Join(parts, "\n\n")}
	return a.prompt.text
}

// howToWork holds in every mode.
func (a *Agent) howToWork() string {
	root := ""
	if a.Host.Workspace != nil {
		root = a.Host.Workspace.Root()
	}
	return strings.Join([]string{
		"How to work:",
		"- Do what the user asks, in small steps. Look before you change: read a file before you edit it.",
		"- Each reply calls at least one tool. Several calls in one reply run in order; later ones see the effects of earlier ones.",
		"- A tool result is the only proof that something happened. A result with an unknown outcome means: check, do not assume.",
		"- Paths are relative to the workspace unless they are absolute. Files outside it need the user's consent.",
		"- The user may refuse a call. Then do not try the same again in another way; ask, or choose another course.",
		"- When something is missing that only the user knows, call ask_followup_question.",
		"- When the task is done and you have seen that it is, call attempt_completion with the result. Do not end it with a question.",
		"",
		"Text inside <environment_details> comes from the program, not from the user.",
		"",
		"Workspace: " + root,
		"Operating system: " + runtime.GOOS,
	}, "\n")
}

// skillText is the part of the system prompt that lists the mode's skills, "" without any. The model gets the text of a
// skill with a tool.
func (a *Agent) skillText(slug string) string {
	if _, has := a.tools[prompttool.SkillName]; !has || a.User.Setup == nil {
		return ""
	}
	list, notes := a.User.Setup.Skills(slug)
	for _, note := range notes {
		a.notice(note)
	}
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("====\n\nSKILLS\n\nThe user has written down how these kinds of work are done. " +
		"When the task, or a part of it, is of such a kind, " +
		"get the skill with the tool " +
		prompttool.SkillName + " before you begin, and follow it. Paths in a skill are relative to its folder.\n")
	for _, k := range list {
		fmt.Fprintf(&b, "\n- %s: %s", k.Name, k.Description)
	}
	return b.String()
}
