package approval

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// Rule is a tool, a kind of tool or "*", and perhaps the files that it is about: "write_to_file", "write(docs/**)",
// "read(/etc/*)", "*". The kinds are "read", "write" and "mcp". Paths are globs as in a gitignore file, in any letter
// case: relative ones are relative to the workspace ("docs/" is everything below docs), absolute ones match anywhere.
//
// An allow rule covers a call only when it covers every file of it, by the given path and by the path that it resolves
// to; without a path, it covers files of the workspace only, and no hidden ones (see workspace.Steers). For a rule to
// ask or deny, one file is enough. Files that a search or a listing finds below its folder are not checked: .rooignore
// hides files from those.
type Rule struct {
	Text string // as it was written
	tool string
	glob *workspace.Ignore // nil = any file
	far  bool              // the glob is about absolute paths
}

// ParseRule reads a rule. A rule that cannot be read is an error and not one that matches nothing: a misspelled deny
// would let everything through.
func ParseRule(text string) (Rule, error) {
	r := Rule{Text: strings.TrimSpace(text)}
	name, glob, paths := strings.Cut(r.Text, "(")
	r.tool = strings.TrimSpace(name)
	if r.tool == "" || strings.ContainsAny(r.tool, " \t\n)/") {
		return r, fmt.Errorf("rule %q: want a tool's name, read, write or *, and perhaps a path in parentheses", text)
	}
	if !paths {
		return r, nil
	}
	glob, closed := strings.CutSuffix(glob, ")")
	if glob = strings.TrimSpace(glob); !closed || glob == "" || strings.ContainsAny(glob, "\n\r") || glob[0] == '!' || glob[0] == '#' {
		return r, fmt.Errorf("rule %q: want one path pattern in the parentheses", text)
	}
	glob = filepath.ToSlash(glob)
	r.far = strings.HasPrefix(glob, "/") || filepath.IsAbs(glob)
	if r.glob = workspace.ParseIgnore(glob, true); !r.glob.Any() {
		return r, fmt.Errorf("rule %q: %s is no pattern that a path can match", text, glob)
	}
	return r, nil
}

// coversTool reports whether the rule is about the tool. A tool of an MCP server has two names: the one that all of
// them share, and the one under which it is offered.
func (r Rule) coversTool(class tool.Class, ask tool.Ask) bool {
	name := toolName(ask)
	if offered, _, _ := strings.Cut(ask.Title, " "); class == mcp && r.tool == offered {
		return true
	}
	switch r.tool {
	case "*":
		return true
	case string(tool.Read), string(tool.Write), string(mcp):
		return r.tool == string(class)
	}
	return name != "" && r.tool == name
}

// coversFile reports whether the rule is about one file of a call.
func (r Rule) coversFile(file string) bool {
	file = filepath.ToSlash(file)
	if r.glob == nil {
		return true
	}
	abs := path.IsAbs(file) || filepath.IsAbs(file)
	if abs != r.far {
		return false
	}
	return r.glob.Hides(strings.TrimPrefix(path.Clean(file), "/"), false)
}

// coversAll reports that the rule covers everything that the call touches, and that nothing of it needs a question of
// its own.
func (r Rule) coversAll(class tool.Class, ask tool.Ask) bool {
	if !r.coversTool(class, ask) || ask.Protected || ask.Ignored {
		return false
	}
	if r.glob == nil {
		return !ask.Outside && (class != tool.Write || !touchesSteering(ask))
	}
	for _, p := range ask.Paths {
		if !r.coversFile(p) {
			return false
		}
	}
	return len(ask.Paths) > 0
}

// coversAny reports that the rule covers something of the call.
func (r Rule) coversAny(class tool.Class, ask tool.Ask) bool {
	if !r.coversTool(class, ask) {
		return false
	}
	if r.glob == nil || len(ask.Paths) == 0 { // it may touch anything: assume the worst
		return true
	}
	for _, p := range ask.Paths {
		if r.coversFile(p) {
			return true
		}
	}
	return false
}

// firstRule is the first rule that fits; a rule that cannot be read fits when broken is true.
func firstRule(texts []string, broken bool, fits func(Rule) bool) (rule string, ok bool) {
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		r, err := ParseRule(text)
		if err != nil && broken || err == nil && fits(r) {
			return text, true
		}
	}
	return "", false
}

// mcp is the class of MCP servers' tools: each call has "server/tool" as its path. Rules name such tools by "mcp", by
// use_mcp_tool with or without that path, and by the name under which they are offered.
const mcp = tool.MCP

// toolName falls back to the title, which begins with the name and comes from the tool, not from the model.
func toolName(ask tool.Ask) string {
	if ask.Tool != "" {
		return ask.Tool
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
}

// touchesSteering reports that a file of the call is hidden or steers agents.
func touchesSteering(ask tool.Ask) bool {
	return slices.ContainsFunc(ask.Paths, func(p string) bool { return workspace.SteersAgents(filepath.ToSlash(p)) })
}
