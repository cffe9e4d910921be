package setup

import (
	"slices"

	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/toolset"
)

// Offer is which tools models are offered.
func (c Config) Offer() tool.Offer {
	return tool.Offer{Include: c.IncludeTools, Exclude: c.ExcludeTools}
}

// requiredTool cannot be excluded: every task ends by a call of it.
const requiredTool = "attempt_completion"

// CheckTools reports a problem with the names of tools that are to be included or excluded: the name, and what is wrong
// with it; "" when nothing is.
func CheckTools(include, exclude []string) (name, problem string) {
	for _, n := range append(slices.Clone(include), exclude...) {
		if !knownTool(n) {
			return n, "there is no tool of that name"
		}
	}
	for _, n := range exclude {
		if n == requiredTool {
			return n, "a task ends by calling it, so it cannot be switched off"
		}
		if slices.Contains(include, n) {
			return n, "it is included and excluded"
		}
	}
	return "", ""
}

// knownTool accepts every name that Roo has, also those of MCP servers, and Roost's own.
func knownTool(name string) bool {
	if mode.GroupOf(name) != "" {
		return true
	}
	return slices.ContainsFunc(append(toolset.All(), historytool.ListTasks(nil)), func(t tool.Tool) bool {
		s := t.Spec()
		return s.Name == name || slices.Contains(s.Aliases, name)
	})
}
