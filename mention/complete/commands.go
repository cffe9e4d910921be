package complete

import (
	"context"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

// Commands returns the slash commands and the skills of a mode that match the typed beginning. If a command and a
// skill share a name, the command counts.
func Commands(ctx context.Context, commands slash.Set, skills skill.Set, mode, begun string) []api.Completion {
	var list []api.Completion
	have := map[string]bool{}
	for _, name := range commands.Names() {
		c, err := commands.Find(ctx, name)
		if err != nil {
			continue // it cannot be used
		}
		have[name] = true
		list = append(list, api.Completion{Text: name, About: tool.OneLine(c.Description), From: from(c.Source)})
	}
	known, _ := skills.In(mode)
	for _, k := range known {
		if !have[k.Name] {
			list = append(list, api.Completion{Text: k.Name, About: tool.OneLine(k.Description), From: from(k.Source)})
		}
	}
	return Rank(list, begun, false)
}

// from returns the source of a command in the words of completions.
func from(source string) string {
	if source == "built-in" {
		return "builtin"
	}
	return source
}
