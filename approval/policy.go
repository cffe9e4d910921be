package approval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// State is what a decision comes to.
type State string

// The states.
const (
	Allow State = "allow"
	Ask   State = "ask"
	Deny  State = "deny"
)

// The modes of a policy.
const (
	ModeAsk   = "ask"   // free: reading inside the workspace
	ModeRead  = "read"  // and reading outside
	ModeEdits = "edits" // and writing inside, but hidden files and those that agents obey
	ModeAll   = "all"   // and all else, except protected files, writes that a link leads out, and what a deny matches
)

// mcp is the class of what MCP servers offer: a call of their own, with "server/tool"
// as its path. Rules name such tools by "mcp", by use_mcp_tool with or without that
// path, and by the name that they are offered by.
const mcp = tool.MCP

// Policy is what a person has agreed to beforehand. The zero value asks, as
// ModeAsk does.
type Policy struct {
	Mode       string   // one of the modes; "" and unknown ones are ModeAsk
	Allow      []string // command patterns
	Deny       []string // command patterns
	AllowTools []string // rules (see Rule) of what need not ask
	AskTools   []string // rules of what asks, under every mode
	DenyTools  []string // rules of what is refused
}

// ValidMode reports whether s names a mode.
func ValidMode(s string) bool {
	return s == ModeAsk || s == ModeRead || s == ModeEdits || s == ModeAll
}

// Decision says whether a call may run, and why.
type Decision struct {
	State  State
	By     string // "policy" (the mode), "allow", "deny" (a command pattern), "rule" (one of the tool rules)
	Rule   string // the mode, the pattern or the rule
	Reason string // for people, and for the model when denied
}

// Decide applies p to a call. It looks at nothing but its arguments.
func Decide(p Policy, class tool.Class, ask tool.Ask) Decision {
	if !ValidMode(p.Mode) {
		p.Mode = ModeAsk
	}
	if rule, ok := first(p.DenyTools, false, func(r Rule) bool { return r.touches(class, ask) }); ok {
		return Decision{Deny, "rule", rule, fmt.Sprintf("the rule %q denies it", rule)}
	}
	var d Decision
	if class == tool.Command {
		d = decideCommand(p, ask)
	} else {
		d = decideClass(p, class, ask)
	}
	if d.State == Deny || d.State == Ask && ask.Protected {
		return d // a protected file is said to be one, whatever rules say
	}
	if rule, ok := first(append(p.AskTools[:len(p.AskTools):len(p.AskTools)], p.DenyTools...), true, func(r Rule) bool { return r.touches(class, ask) }); ok {
		return Decision{Ask, "rule", rule, fmt.Sprintf("the rule %q wants it asked for", rule)}
	}
	if d.State != Ask || class != tool.Read && class != tool.Write && class != mcp {
		return d
	}
	if rule, ok := first(p.AllowTools, false, func(r Rule) bool { return r.allows(class, ask) }); ok {
		return Decision{Allow, "rule", rule, fmt.Sprintf("the rule %q allows it", rule)}
	}
	return d
}

// toolName falls back on the title, which begins with the name and comes from
// the tool, not from the model.
func toolName(ask tool.Ask) string {
	if ask.Tool != "" {
		return ask.Tool
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
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
	case class == tool.Write && ask.Led:
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
	case p.Mode == ModeEdits && steers(ask):
		return by(Ask, "a hidden file, or one that agents obey, can make programs run later")
	case p.Mode == ModeEdits:
		return by(Allow, "writing inside the workspace is allowed")
	default:
		return by(Ask, "writing needs permission")
	}
}

func decideCommand(p Policy, ask tool.Ask) Decision {
	// Two texts must not differ: a person, or a pattern, would judge the wrong one.
	if ask.Command == "" || ask.Text != "" && ask.Text != ask.Command {
		return Decision{Ask, "policy", p.Mode, "the command line is not known for sure"}
	}
	v := Command(ask.Command, p.Allow, p.Deny)
	switch {
	case v.Decision == Deny:
		return Decision{Deny, "deny", v.rule(Deny), v.Reason}
	case v.unsure:
		return Decision{Ask, "policy", p.Mode, v.Reason}
	case ask.Protected:
		return Decision{Ask, "policy", p.Mode, "it touches a protected file"}
	case p.Mode == ModeAll:
		return Decision{Allow, "policy", p.Mode, "every command that is not denied is allowed"}
	case ask.Outside || ask.Ignored:
		return Decision{Ask, "policy", p.Mode, "it runs outside the visible workspace"}
	case v.Decision == Allow && unsafeGit(ask) != "":
		return Decision{Ask, "policy", p.Mode, unsafeGit(ask)}
	case v.Decision == Allow:
		return Decision{Allow, "allow", v.rule(Allow), v.Reason}
	default:
		return Decision{Ask, "policy", p.Mode, v.Reason}
	}
}

// steers: a file of the call is hidden or one that agents obey.
func steers(ask tool.Ask) bool {
	return slices.ContainsFunc(ask.Paths, func(p string) bool { return workspace.Steers(filepath.ToSlash(p)) })
}

// unsafeGit says why a line that the patterns allow does not run git unasked.
func unsafeGit(ask tool.Ask) string {
	list, _ := plain(ask.Command)
	switch changes, any := changesRepository(list); {
	case any && ask.Git != "":
		return ask.Git
	case changes && ask.GitHooks != "":
		return ask.GitHooks
	}
	return ""
}
