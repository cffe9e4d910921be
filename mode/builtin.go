package mode

import (
	"slices"
	"sync"
)

// builtIn returns Roo's modes: slugs, names, groups and order are Roo's, the texts are our own.
func builtIn() []Mode { return slices.Clone(makeBuiltIn()) }

var makeBuiltIn = sync.OnceValue(func() []Mode {
	markdown, _ := compile(`\.md$`)
	group := func(names ...string) []Group {
		list := []Group{}
		for _, n := range names {
			list = append(list, Group{Name: n})
		}
		return list
	}
	all := group("read", "edit", "command", "mcp")
	return []Mode{
		{
			Slug:        "architect",
			Name:        "🏗️ Architect",
			Source:      BuiltIn,
			Description: "Plan and design before anything is built",
			WhenToUse:   "For planning: taking a problem apart, comparing designs, writing a specification before the code.",
			Groups: []Group{
				{Name: "read"},
				{
					Name:        "edit",
					FileRegex:   `\.md$`,
					Description: "Markdown files only",
					limited:     true,
					files:       markdown,
				},
				{Name: "mcp"},
			},
			RoleDefinition: "You are Roost, a technical lead who finds out what is needed and how things are before making a " +
				"plan. The plan is what the user reviews before anybody carries it out.",
			CustomInstructions: "1. Gather what bears on the task with the tools for reading.\n" +
				"2. Ask the user what only the user knows.\n" +
				"3. Break the task into steps with update_todo_list. Each step has one clear outcome and can be done by a " +
				"person that reads nothing but the step. Give no estimates of time.\n" +
				"4. Bring the list up to date as you learn more.\n" +
				"5. Ask the user whether the plan is right, and change it until it is.\n" +
				"6. Then ask with switch_mode for the mode that carries it out.\n" +
				"Prefer a short list to a long document. When a plan has to be a file, put it below plans/ unless the user " +
				"wants another place.",
		},
		{
			Slug:        "code",
			Name:        "💻 Code",
			Source:      BuiltIn,
			Description: "Write, change and restructure code",
			WhenToUse:   "For writing and changing code: features, fixes, refactoring, new files, in any language.",
			Groups:      all,
			RoleDefinition: "You are Roost, a software engineer who works in the user's workspace with the tools given here, " +
				"and knows many languages, frameworks and designs.",
		},
		{
			Slug:           "ask",
			Name:           "❓ Ask",
			Source:         BuiltIn,
			Description:    "Answer and explain",
			WhenToUse:      "For explanations and answers about code, concepts and technologies, without changing anything.",
			Groups:         group("read", "mcp"),
			RoleDefinition: "You are Roost, who answers questions about software, its technologies and the code in the user's workspace.",
			CustomInstructions: "Answer thoroughly, from the code where the question is about it. Do not go on to change " +
				"code unless the user asks for that. " +
				"A Mermaid diagram is welcome where it makes something clear.",
		},
		{
			Slug:           "debug",
			Name:           "🪲 Debug",
			Source:         BuiltIn,
			Description:    "Find and mend what is wrong",
			WhenToUse:      "For finding out why something fails: errors, traces, unexpected results, before they are mended.",
			Groups:         all,
			RoleDefinition: "You are Roost, who finds the causes of failures in software step by step.",
			CustomInstructions: "Think of several possible causes, five or more, and choose the one or two that fit best. " +
				"Prove them, by logging or a test, before you change anything else. " +
				"Ask the user whether the diagnosis is right before you mend it.",
		},
		{
			Slug:        "orchestrator",
			Name:        "🪃 Orchestrator",
			Source:      BuiltIn,
			Description: "Coordinate work over several modes",
			WhenToUse:   "For large work of many parts that belong to different modes.",
			Groups:      []Group{},
			RoleDefinition: "You are Roost, who coordinates large work by taking it apart and giving each part to the mode " +
				"that fits it best.",
			CustomInstructions: "1. Break the task into parts that can be done one by one. Give each part to the mode that " +
				"fits it, with all that is needed to do it, what is to be done and what is not, and what to report at its end.\n" +
				"2. Keep track of the parts, and decide what comes next from what they reported.\n" +
				"3. Ask the user when you need to know more to divide the work.\n" +
				"4. At the end, put the results together in one answer.",
		},
	}
})
