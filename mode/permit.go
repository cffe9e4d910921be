package mode

import (
	"fmt"
	"slices"
	"strings"
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

// ForbiddenError: a mode does not have a tool.
type ForbiddenError struct {
	Tool, Mode string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("Tool %q is not allowed in %s mode.", e.Tool, e.Mode)
}

// FileError: a mode may not edit a file.
type FileError struct {
	Tool, Mode, Pattern, Description, Path string
}

func (e *FileError) Error() string {
	about := ""
	if e.Description != "" {
		about = " (" + e.Description + ")"
	}
	return fmt.Sprintf("Tool '%s' in mode '%s' can only edit files matching pattern: %s%s. Got: %s",
		e.Tool, e.Mode, e.Pattern, about, e.Path)
}

// Permits reports whether a mode has a tool: nil, or a *ForbiddenError. A tool that Roo does not know belongs to the
// group that the caller names; "always" is permitted everywhere.
func (m Mode) Permits(tool, group string) error {
	if known := GroupOf(tool); known != "" {
		group = known
	}
	if group == "always" {
		return nil
	}
	if _, ok := m.group(group); !ok {
		return &ForbiddenError{tool, m.Slug}
	}
	return nil
}

// PermitsFile reports whether a mode may edit a file with a tool: nil, or a *FileError. The path is relative to the
// workspace with "/" between its parts. It does not check whether the mode has the tool: Permits does.
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
	return &FileError{tool, m.Name, g.FileRegex, g.Description, path}
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
