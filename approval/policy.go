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

// The modes of a policy.
const (
	ModeAsk   = "ask"   // allowed without asking: reading inside the workspace
	ModeRead  = "read"  // reading outside, too
	ModeEdits = "edits" // writing inside, too, except hidden files and those that steer agents
	ModeAll   = "all"   // all else, too, except protected files, writes that a link leads out, and what a deny matches
)

// Policy is what a person has agreed to beforehand. The zero value asks, as ModeAsk does.
type Policy struct {
	Mode       string   // one of the modes; "" and unknown ones are ModeAsk
	Allow      []string // command patterns
	Deny       []string // command patterns
	AllowTools []string // rules (see Rule) for calls that need not ask
	AskTools   []string // rules for calls that ask, under every mode
	DenyTools  []string // rules for calls that are refused
}

// ValidMode reports whether s names a mode.
func ValidMode(s string) bool {
	return s == ModeAsk || s == ModeRead || s == ModeEdits || s == ModeAll
}

// Decision is whether a call may run, and why.
type Decision struct {
	State  State
	By     string // "policy" (the mode), "allow", "deny" (a command pattern), "rule" (one of the tool rules)
	Rule   string // the mode, the pattern or the rule
	Reason string // for people, and for the model when denied
}

// Decide applies p to a call. It depends on nothing but its arguments.
func Decide(p Policy, class tool.Class, ask tool.Ask) Decision {
	if !ValidMode(p.Mode) {
		p.Mode = ModeAsk
	}
	if rule, ok := firstRule(p.DenyTools, false, func(r Rule) bool { return r.coversAny(class, ask) }); ok {
		return Decision{Deny, "rule", rule, fmt.Sprintf("the rule %q denies it", rule)}
	}
	var d Decision
	if class == tool.Command {
		d = decideCommand(p, ask)
	} else {
		d = decideClass(p, class, ask)
	}
	if d.State == Deny || d.State == Ask && ask.Protected {
		return d // the reason names a protected file, even if other rules exist
	}
	if rule, ok := firstRule(append(p.AskTools[:len(p.AskTools):len(p.AskTools)], p.DenyTools...), true,
		func(r Rule) bool { return r.coversAny(class, ask) }); ok {
		return Decision{Ask, "rule", rule, fmt.Sprintf("the rule %q requires a question", rule)}
	}
	if d.State != Ask || class != tool.Read && class != tool.Write && class != mcp {
		return d
	}
	if rule, ok := firstRule(p.AllowTools, false, func(r Rule) bool { return r.coversAll(class, ask) }); ok {
		return Decision{Allow, "rule", rule, fmt.Sprintf("the rule %q allows it", rule)}
	}
	return d
}

func decideClass(p Policy, class tool.Class, ask tool.Ask) Decision {
	by := func(s State, reason string) Decision { return Decision{s, "policy", p.Mode, reason} }
	switch {
	case class == tool.Control:
		if ask.Kind == "followup" || ask.Kind == "resume_task" {
			return by(Ask, "a question to the user is answered by the user")
		}
		return by(Allow, "needs no permission")
	case class == mcp && p.Mode == ModeAll:
		return by(Allow, "everything but protected files is allowed")
	case class == mcp && ask.Agreed != "":
		return Decision{Allow, "rule", ask.Agreed, "the server's settings allow it"}
	case class == mcp:
		return by(Ask, "what an MCP server does needs permission")
	case class != tool.Read && class != tool.Write:
		return by(Ask, "an unknown kind of call")
	case ask.Protected:
		return by(Ask, "it touches a protected file")
	case class == tool.Write && ask.LinkedOutside:
		return by(Ask, "a link leads the write out of the workspace")
	case p.Mode == ModeAll:
		return by(Allow, "everything but protected files is allowed")
	case ask.Ignored:
		return by(Ask, "it touches what .rooignore hides")
	case class == tool.Read && ask.Outside && p.Mode == ModeAsk:
		return by(Ask, "it reads outside the workspace")
	case class == tool.Read:
		return by(Allow, "reading is allowed")
	case ask.Outside:
		return by(Ask, "it writes outside the workspace")
	case p.Mode == ModeEdits && touchesSteering(ask):
		return by(Ask, "a hidden file, or one that agents obey, can make programs run later")
	case p.Mode == ModeEdits:
		return by(Allow, "writing inside the workspace is allowed")
	default:
		return by(Ask, "writing needs permission")
	}
}

func decideCommand(p Policy, ask tool.Ask) Decision {
	// The two texts must not differ: otherwise a person, or a pattern, would judge the wrong one.
	if ask.Command == "" || ask.Text != "" && ask.Text != ask.Command {
		return Decision{Ask, "policy", p.Mode, "the command line is not known for sure"}
	}
	v := Command(ask.Command, p.Allow, p.Deny)
	switch {
	case v.State == Deny:
		return Decision{Deny, "deny", v.rule(Deny), v.Reason}
	case v.unsure:
		return Decision{Ask, "policy", p.Mode, v.Reason}
	case ask.Protected:
		return Decision{Ask, "policy", p.Mode, "it touches a protected file"}
	case p.Mode == ModeAll:
		return Decision{Allow, "policy", p.Mode, "every command that is not denied is allowed"}
	case ask.Outside || ask.Ignored:
		return Decision{Ask, "policy", p.Mode, "it runs outside the visible workspace"}
	case v.State == Allow && unsafeGit(ask) != "":
		return Decision{Ask, "policy", p.Mode, unsafeGit(ask)}
	case v.State == Allow:
		return Decision{Allow, "allow", v.rule(Allow), v.Reason}
	default:
		return Decision{Ask, "policy", p.Mode, v.Reason}
	}
}

// unsafeGit is why a line that the patterns allow does not run git unasked.
func unsafeGit(ask tool.Ask) string {
	list, _ := plainCommands(ask.Command)
	switch changes, any := changesRepository(list); {
	case any && ask.Git != "":
		return ask.Git
	case changes && ask.GitHooks != "":
		return ask.GitHooks
	}
	return ""
}

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
	return len(ask.Paths) > 0 && !slices.ContainsFunc(ask.Paths, func(p string) bool { return !r.coversFile(p) })
}

// coversAny reports that the rule covers something of the call.
func (r Rule) coversAny(class tool.Class, ask tool.Ask) bool {
	if !r.coversTool(class, ask) {
		return false
	}
	if r.glob == nil || len(ask.Paths) == 0 { // it may touch anything: assume the worst
		return true
	}
	return slices.ContainsFunc(ask.Paths, r.coversFile)
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
