package engine

import (
	"slices"

	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/toolset"
)

// offer is which tools the user wants models to be told of.
func (e *Engine) offer() tool.Offer {
	return tool.Offer{Include: e.opt.Config.IncludeTools, Exclude: e.opt.Config.ExcludeTools}
}

// needed is the one tool that no task can do without: it ends by a call of it.
const needed = "attempt_completion"

// CheckTools says what is wrong with names of tools that are to be included or
// excluded, in words behind the name; "" when nothing is.
func CheckTools(include, exclude []string) (name, problem string) {
	for _, n := range append(slices.Clone(include), exclude...) {
		if !knownTool(n) {
			return n, "there is no tool of that name"
		}
	}
	for _, n := range exclude {
		if n == needed {
			return n, "a task ends by calling it, so it cannot be switched off"
		}
		if slices.Contains(include, n) {
			return n, "it is included and excluded"
		}
	}
	return "", ""
}

// knownTool takes every name that Roo knows, those of MCP servers too, and ours.
func knownTool(name string) bool {
	if mode.GroupOf(name) != "" {
		return true
	}
	return slices.ContainsFunc(append(toolset.All(), historytool.ListTasks(nil)), func(t tool.Tool) bool {
		s := t.Spec()
		return s.Name == name || slices.Contains(s.Aliases, name)
	})
}
