package mode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// groups are Roo's tools by group.
var groups = map[string][]string{
	"read":    {"read_file", "search_files", "list_files", "codebase_search"},
	"edit":    {"apply_diff", "write_to_file", "generate_image", "edit", "search_replace", "edit_file", "apply_patch"},
	"command": {"execute_command", "read_command_output"},
	"mcp":     {"use_mcp_tool", "access_mcp_resource"},
	"modes":   {"switch_mode", "new_task"},
}

// always lists the tools of every mode.
var always = []string{
	"ask_followup_question", "attempt_completion", "switch_mode", "new_task", "update_todo_list", "run_slash_command", "skill",
}

// aliases are other names of tools.
var aliases = map[string]string{"write_file": "write_to_file", "search_and_replace": "edit"}

func canonical(tool string) string {
	if name, ok := aliases[tool]; ok {
		return name
	}
	return tool
}

// GroupOf is the group of a tool of Roo's: "" for a tool that Roo does not know, "always" for one that no mode forbids.
func GroupOf(tool string) string {
	switch name := canonical(tool); {
	case slices.Contains(always, tool):
		return "always"
	case strings.HasPrefix(tool, "mcp_") || strings.HasPrefix(tool, "mcp--"): // a tool of an MCP server
		return "mcp"
	default:
		for group, tools := range groups {
			if slices.Contains(tools, name) {
				return group
			}
		}
	}
	return ""
}

// Permits returns nil if a mode has a tool, else an error in Roo's words. A tool that Roo does not know belongs to the
// group that the caller names; "always" is permitted everywhere.
func (m Mode) Permits(tool, group string) error {
	if known := GroupOf(tool); known != "" {
		group = known
	}
	if _, ok := m.group(group); !ok && group != "always" {
		return fmt.Errorf("Tool %q is not allowed in %s mode.", tool, m.Slug) //nolint:staticcheck // Roo's words
	}
	return nil
}

// PermitsFile returns nil if a mode may edit a file with a tool, else an error in Roo's words. The path is relative to
// the workspace with "/" between its parts. It does not check whether the mode has the tool: Permits does.
func (m Mode) PermitsFile(tool, path string) error {
	g, ok := m.group("edit")
	if !ok || g.FileRegex == "" {
		return nil
	}
	if g.files == nil { // the group was made in code, not read from a file
		g.files, _ = compile(g.FileRegex)
	}
	if g.files != nil && g.files.match(path) {
		return nil
	}
	about := ""
	if g.Description != "" {
		about = " (" + g.Description + ")"
	}
	return fmt.Errorf( //nolint:staticcheck // Roo's words
		"Tool '%s' in mode '%s' can only edit files matching pattern: %s%s. Got: %s", tool, m.Name, g.FileRegex, about, path)
}

func (m Mode) group(name string) (Group, bool) {
	if i := slices.IndexFunc(m.Groups, func(g Group) bool { return g.Name == name }); i >= 0 && name != "" {
		return m.Groups[i], true
	}
	return Group{}, false
}

// Names returns the files that an editing call names in its parameters: a path, or those in the headers of a patch.
// They are as the model wrote them.
func Names(tool string, text func(parameter string) string) []string {
	if GroupOf(tool) != "edit" {
		return nil
	}
	var out []string
	for _, key := range []string{"path", "file_path"} {
		if path := text(key); path != "" {
			out = append(out, path)
			break
		}
	}
	if tool != "apply_patch" {
		return out
	}
	for line := range strings.Lines(text("patch")) {
		line = strings.TrimSpace(line)
		for _, head := range []string{"*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok && path != "" {
				out = append(out, strings.TrimSpace(path))
			}
		}
	}
	return out
}

// matchTime bounds the match of one name. Patterns with look-around may take time that grows exponentially with the
// name, and name and pattern may come from an attacker.
const matchTime = 200 * time.Millisecond

// pattern is a JavaScript pattern without flags.
type pattern struct {
	plain *regexp.Regexp  // where Go's engine gives the same results: it takes linear time
	full  *regexp2.Regexp // otherwise
}

// common matches patterns that both engines read alike.
var common = regexp.MustCompile(`^(?:[A-Za-z0-9_/ .^$|*+?)\[\]-]|\((?:\?:)?|\\[dwDW./\\()\[\]^$|*+?-])*$`)

// notJavaScript matches what the full engine accepts although JavaScript does not.
var notJavaScript = regexp.MustCompile(`\(\?(?:[^:=!<]|<[^=!A-Za-z_$])`)

func compile(text string) (*pattern, error) {
	full, err := regexp2.Compile(text, regexp2.ECMAScript)
	if err == nil && notJavaScript.MatchString(strings.ReplaceAll(text, `\\`, "")) {
		err = fmt.Errorf("a group begins with (? and nothing that JavaScript knows")
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", text, err)
	}
	p := &pattern{full: full}
	full.MatchTimeout = matchTime
	// In JavaScript a class may be empty: [] matches nothing, and [^] anything. In Go the bracket after it is the first
	// character of the class.
	if common.MatchString(text) && !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") {
		if plain, err := regexp.Compile(text); err == nil {
			p.plain = plain
		}
	}
	return p, nil
}

// match reports whether s matches the pattern. A match that is not decided in time counts as none: the pattern grants
// permission.
func (p *pattern) match(s string) bool {
	if p.plain != nil {
		return p.plain.MatchString(s)
	}
	ok, err := p.full.MatchString(s)
	return ok && err == nil
}
