package agent

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/mode"
)

// instead says what does the work of tools that histories of other programs hold and
// that are not here: those that need a service of theirs, and those of older times.
var instead = map[string]string{
	"codebase_search":            "it needs an index that there is none of here; use search_files, list_files and read_file",
	"generate_image":             "it needs a service that there is none of here; no tool makes images, so tell the user",
	"browser_action":             "there is no browser here; use execute_command where a command line can do it",
	"list_code_definition_names": "use search_files with a pattern for definitions, or read_file",
	"search_and_replace":         "use apply_diff or apply_patch",
	"insert_content":             "use apply_diff or apply_patch",
	"fetch_instructions":         "what can be done is in the system prompt",
	"fetch":                      "use execute_command where a command line can do it",
}

// unknown is what the model is told of a call to a tool that is not here.
func (a *Agent) unknown(name string) string {
	if why, known := instead[name]; known {
		return fmt.Sprintf("there is no tool named %q here: %s", name, why)
	}
	var names []string
	for _, s := range a.toolSpecs() {
		names = append(names, s.Name)
	}
	if mode.GroupOf(name) == "mcp" {
		return fmt.Sprintf("there is no tool named %q: its server is not set up here. There are %s", name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("there is no tool named %q. There are %s", name, strings.Join(names, ", "))
}
