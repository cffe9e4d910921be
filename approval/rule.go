package approval

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// Rule is a tool, a kind of tool or "*", and perhaps the files that it is about:
// "write_to_file", "write(docs/**)", "read(/etc/*)", "*". The kinds are "read",
// "write" and "mcp". Paths are globs as in a gitignore file, in any letter case: relative ones
// mean the workspace ("docs/" is all below docs), absolute ones any place.
//
// As an allow rule it covers a call only when it covers every file of it, by the path
// that was given and by the place that it leads to; without a path, it covers files of
// the workspace only, and no hidden ones (see workspace.Steers). As a rule to ask or deny, one file is enough. What a search or a
// listing finds below its folder is not looked at: .rooignore hides files from those.
type Rule struct {
	Text string // as it was written
	tool string
	glob *workspace.Ignore // nil = any file
	far  bool              // the glob is about absolute paths
}

// ParseRule reads a rule. A rule that cannot be read is an error and not one that
// matches nothing: a deny that is misspelled would let everything through.
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

// named reports whether the rule speaks of the tool. One of an MCP server has two names:
// the one that all of them share, and the one that it is offered by.
func (r Rule) named(class tool.Class, ask tool.Ask) bool {
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

// about reports whether the rule speaks of one file of a call.
func (r Rule) about(file string) bool {
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

// allows: everything that the call touches is covered, and nothing that has to be
// asked for by itself.
func (r Rule) allows(class tool.Class, ask tool.Ask) bool {
	if !r.named(class, ask) || ask.Protected || ask.Ignored {
		return false
	}
	if r.glob == nil {
		return !ask.Outside && (class != tool.Write || !steers(ask))
	}
	for _, p := range ask.Paths {
		if !r.about(p) {
			return false
		}
	}
	return len(ask.Paths) > 0
}

// touches: something of the call is covered.
func (r Rule) touches(class tool.Class, ask tool.Ask) bool {
	if !r.named(class, ask) {
		return false
	}
	if r.glob == nil || len(ask.Paths) == 0 { // what it touches is not known: to be safe
		return true
	}
	for _, p := range ask.Paths {
		if r.about(p) {
			return true
		}
	}
	return false
}

// first is the first rule that fits; one that cannot be read fits when broken says so.
func first(texts []string, broken bool, fits func(Rule) bool) (rule string, ok bool) {
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
