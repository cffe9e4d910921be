package setup

import "testing"

// A name that no tool has, one that no task can do without, and one that is wanted and
// not wanted are found before a task begins.
func TestCheckTools(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		name             string
	}{
		{},
		{include: []string{"edit", "edit_file", "search_replace", "search_and_replace"}, exclude: []string{"apply_diff", "list_tasks", "mcp--server--tool", "codebase_search", "run_slash_command"}},
		{include: []string{"edit", "Edit"}, name: "Edit"},
		{exclude: []string{"read_file", "nothing"}, name: "nothing"},
		{exclude: []string{"attempt_completion"}, name: "attempt_completion"},
		{include: []string{"edit"}, exclude: []string{"edit"}, name: "edit"},
	} {
		if name, problem := CheckTools(c.include, c.exclude); name != c.name || (problem != "") != (c.name != "") {
			t.Errorf(`got %q, %q: %q %q, want name = c.name and (problem != "") = (c.name != "")`,
				c.include, c.exclude, name, problem)
		}
	}
}
