// Package approval decides which calls of a model may run without asking.
//
// It fails closed: for anything unknown, it asks. Three rules hold under every policy: a deny pattern beats an allow
// pattern, no policy writes a protected file, and no policy answers the model's questions.
//
// A rule may allow what the mode does not: a tool, or the files that it touches (see Rule). Rules that deny come before
// rules that ask, those before rules that allow, and all of them before the mode.
//
// A command pattern is words. It matches a simple command whose first words equal them ("git log" matches `git log
// -3`, not `git logx` and not `gitk`). In doubt, an allow pattern does not match, and a deny pattern does:
//
//   - An allow pattern matches a simple command of plain words: no assignment, substitution, expansion, glob,
//     redirection to a file or control character anywhere, and no program that runs other commands. Of a known program
//     (see programs.txt) it covers the options and words that are known to be harmless; of any other program
//     its own words, and plain names of files in the workspace. A chain (&&, ||, ;) or pipe of such commands is allowed
//     when each of them is; any other line asks.
//   - A deny pattern matches anywhere in the line: in chains, pipes, substitutions and functions, behind wrappers (env,
//     sudo, xargs, sh -c, find -exec, ...), with any quoting, path or case of the program's name, with options between
//     its words, and with its own options anywhere. A deny of "*" matches every command. Where the words are only known
//     when the line runs, behind a wrapper, and where program text is on the line or is fed to a program, the verdict is
//     ask, never allow. A deny pattern cannot see into scripts, build tools and programs that the line starts: it guards
//     against slips and is no sandbox.
//
// Lines are read as Bash and as POSIX sh; the stricter reading counts. On Windows, where cmd.exe reads them differently,
// allow patterns match nothing.
package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// The modes of a policy.
const (
	ModeAsk   = "ask"   // without asking: reading inside the workspace
	ModeRead  = "read"  // also reading outside
	ModeEdits = "edits" // also writing inside, except hidden files and those that steer agents
	ModeAll   = "all"   // also everything else, except protected files, writes that a link leads out, and matches of a deny
)

// Policy holds the permissions that a person has given beforehand. The zero value asks, as ModeAsk does.
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

// Decision is the verdict on a call, with the reason.
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
	if d.State != Ask || class != tool.Read && class != tool.Write && class != mcp && class != tool.Web {
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
	case (class == mcp || class == tool.Web) && p.Mode == ModeAll:
		return by(Allow, "everything but protected files is allowed")
	case class == mcp && ask.Agreed != "":
		return Decision{Allow, "rule", ask.Agreed, "the server's settings allow it"}
	case class == mcp:
		return by(Ask, "what an MCP server does needs permission")
	case class == tool.Web:
		return by(Ask, "a request to a site needs permission")
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
	case v.State == Allow && ask.LinkedOutside:
		return Decision{Ask, "policy", p.Mode, "a link leads the change out of the workspace"}
	case v.State == Allow && unsafeGit(ask) != "":
		return Decision{Ask, "policy", p.Mode, unsafeGit(ask)}
	case v.State == Allow:
		return Decision{Allow, "allow", v.rule(Allow), v.Reason}
	default:
		return Decision{Ask, "policy", p.Mode, v.Reason}
	}
}

// unsafeGit returns why git must not run without asking in a line that the patterns allow; "" = it may.
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

// Rule names a tool, a kind of tool or "*", and perhaps files: "write_to_file", "write(docs/**)", "read(/etc/*)",
// "*". The kinds are "read", "write", "mcp" and "web". Paths are globs as in a gitignore file, in any letter case:
// relative ones are relative to the workspace ("docs/" is everything below docs), absolute ones match anywhere.
//
// An allow rule covers a call only when it covers every file of it, by the given path and by the path that it resolves
// to; without a path, it covers files of the workspace only, and no hidden ones (see workspace.Steers). For a rule to
// ask or deny, one file is enough. Files that a search or a listing finds below its folder are not checked: .rooignore
// hides files from those.
type Rule struct {
	tool string
	glob *workspace.Ignore // nil = any file
	far  bool              // the glob is for absolute paths
}

// ParseRule reads a rule. A rule that cannot be read is an error, and not a rule that matches nothing: a misspelled
// deny would let everything through.
func ParseRule(text string) (Rule, error) {
	name, glob, paths := strings.Cut(strings.TrimSpace(text), "(")
	r := Rule{tool: strings.TrimSpace(name)}
	if r.tool == "" || strings.ContainsAny(r.tool, " \t\n)/") {
		return r, fmt.Errorf("rule %q: want a tool's name, read, write, mcp, web or *, and perhaps a path in parentheses", text)
	}
	if !paths {
		return r, nil
	}
	glob, closed := strings.CutSuffix(glob, ")")
	if glob = strings.TrimSpace(glob); !closed || glob == "" || strings.ContainsAny(glob, "\n\r") || glob[0] == '!' || glob[0] == '#' {
		return r, fmt.Errorf("rule %q: want one path pattern in the parentheses", text)
	}
	glob = filepath.ToSlash(glob)
	if (r.tool == string(tool.Web) || r.tool == "web_fetch") && strings.Contains(glob, "/") {
		return r, fmt.Errorf("rule %q: want a site such as example.com, *.example.com or localhost:8080, without https:// and path", text)
	}
	r.far = strings.HasPrefix(glob, "/") || filepath.IsAbs(glob)
	if r.glob = workspace.ParseIgnore(glob, true); !r.glob.Any() {
		return r, fmt.Errorf("rule %q: %s is no pattern that a path can match", text, glob)
	}
	return r, nil
}

// coversTool reports whether the rule names the tool. A tool of an MCP server has two names: the one that all such
// tools share, and the one under which it is offered.
func (r Rule) coversTool(class tool.Class, ask tool.Ask) bool {
	offered, _, _ := strings.Cut(ask.Title, " ")
	if class == mcp && r.tool == offered {
		return true
	}
	switch r.tool {
	case "*":
		return true
	case string(tool.Read), string(tool.Write), string(mcp), string(tool.Web):
		return r.tool == string(class)
	}
	return r.tool == cmp.Or(ask.Tool, offered) // the title begins with the name, which comes from the tool and not from the model
}

// coversFile reports whether the rule covers one file of a call.
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

// coversAll reports whether the rule covers everything that the call touches, and nothing of it needs a question of
// its own.
func (r Rule) coversAll(class tool.Class, ask tool.Ask) bool {
	if !r.coversTool(class, ask) || ask.Protected || ask.Ignored {
		return false
	}
	if r.glob == nil {
		return !ask.Outside && (class != tool.Write || !touchesSteering(ask))
	}
	paths := ask.Paths
	if class == tool.Web && len(paths) > 1 {
		paths = paths[:1] // a rule for the host allows its usual port; one that asks or denies is about all its ports
	}
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return p != path.Clean(p) || !r.coversFile(p) })
}

// coversAny reports whether the rule covers something of the call.
func (r Rule) coversAny(class tool.Class, ask tool.Ask) bool {
	if !r.coversTool(class, ask) {
		return false
	}
	if r.glob == nil || len(ask.Paths) == 0 { // it may touch anything: assume the worst
		return true
	}
	return slices.ContainsFunc(ask.Paths, r.coversFile)
}

// firstRule returns the first rule that fits. With broken, a rule that cannot be read fits.
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

// touchesSteering reports whether a file of the call is hidden or steers agents.
func touchesSteering(ask tool.Ask) bool {
	return slices.ContainsFunc(ask.Paths, func(p string) bool { return workspace.SteersAgents(filepath.ToSlash(p)) })
}

// Roo are Roo's settings for auto-approval, under Roo's names.
type Roo struct {
	Enabled      bool        `json:"autoApprovalEnabled"`
	Read         bool        `json:"alwaysAllowReadOnly"`
	ReadOutside  bool        `json:"alwaysAllowReadOnlyOutsideWorkspace"`
	Write        bool        `json:"alwaysAllowWrite"`
	WriteOutside bool        `json:"alwaysAllowWriteOutsideWorkspace"`
	Execute      bool        `json:"alwaysAllowExecute"`
	Mode         bool        `json:"alwaysAllowModeSwitch"`
	Subtasks     bool        `json:"alwaysAllowSubtasks"`
	MCP          bool        `json:"alwaysAllowMcp"`
	Allowed      []string    `json:"allowedCommands"`
	Denied       []string    `json:"deniedCommands"`
	MaxRequests  *float64    `json:"allowedMaxRequests"` // nil = no limit
	MaxCost      *float64    `json:"allowedMaxCost"`     // US dollars; nil = no limit
	Servers      []RooServer `json:"mcpServers"`
}

// RooServer is an MCP server with its permissions.
type RooServer struct {
	Name  string `json:"name"`
	Tools []struct {
		Name   string `json:"name"`
		Always bool   `json:"alwaysAllow"`
	} `json:"tools"`
}

// ErrNoRoo: the bytes are no settings of Roo's.
var ErrNoRoo = errors.New("the JSON is not Roo's auto-approval settings")

// ReadRoo reads the file that Roo's "Export" writes, or its globalSettings alone.
func ReadRoo(data []byte) (Roo, error) {
	var file struct {
		Global json.RawMessage `json:"globalSettings"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Roo{}, fmt.Errorf("%w: %w", ErrNoRoo, err)
	}
	if len(file.Global) > 0 {
		data = file.Global
	}
	var any map[string]json.RawMessage
	var r Roo
	if err := errors.Join(json.Unmarshal(data, &any), json.Unmarshal(data, &r)); err != nil {
		return Roo{}, fmt.Errorf("%w: %w", ErrNoRoo, err)
	}
	for _, key := range []string{"autoApprovalEnabled", "alwaysAllowReadOnly", "alwaysAllowWrite", "alwaysAllowExecute",
		"allowedCommands", "deniedCommands"} {
		if _, ok := any[key]; ok {
			return r, nil
		}
	}
	return Roo{}, ErrNoRoo
}

// Policy returns a policy that allows nothing for which Roo would ask under these settings. In three things it is
// stricter, because no policy here allows them: protected files, answers to the model's questions, and commands that
// are more than plain words. Commands that Roo denies stay denied, although Roo only denies them while it runs others
// unasked.
func (r Roo) Policy() Policy {
	p := Policy{Mode: ModeAsk, Deny: trimmed(r.Denied)}
	if !r.Enabled {
		p.AskTools = []string{"*"}
		return p
	}
	if r.Execute {
		// Roo's "*" allows every command; here no pattern does, and the mode "all" is for that.
		p.Allow = slices.DeleteFunc(trimmed(r.Allowed), func(pattern string) bool { return pattern == "*" })
	}
	switch {
	case !r.Read:
		p.AskTools = append(p.AskTools, "read")
	case r.ReadOutside:
		p.Mode = ModeRead
	}
	if r.Write {
		p.AllowTools = append(p.AllowTools, "write")
		if r.WriteOutside {
			p.AllowTools = append(p.AllowTools, "write(/**)")
		}
	}
	if !r.Mode {
		p.AskTools = append(p.AskTools, "switch_mode")
	}
	if !r.Subtasks {
		p.AskTools = append(p.AskTools, "new_task", "finish_task")
	}
	if r.MCP {
		p.AllowTools = append(p.AllowTools, "access_mcp_resource")
		for _, s := range r.Servers {
			for _, t := range s.Tools {
				if t.Always && plainName(s.Name) && plainName(t.Name) {
					p.AllowTools = append(p.AllowTools, "use_mcp_tool("+s.Name+"/"+t.Name+")")
				}
			}
		}
	}
	return p
}

// trimmed returns Roo's patterns as patterns of words.
func trimmed(patterns []string) []string {
	return api.Some(patterns, func(p string) (string, bool) {
		p = strings.TrimSpace(p)
		return p, p != ""
	})
}

// plainName reports whether a name has no character with a meaning in a path pattern.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\*?[]!#() \t\r\n")
}

// Limits returns Roo's limits of auto-approval: the run asks the user after so many requests, or so much money in
// micro-dollars. 0 = no limit.
func (r Roo) Limits() (requests int, micros int64) {
	if r.MaxRequests != nil && *r.MaxRequests >= 1 && *r.MaxRequests < 1<<31 {
		requests = int(*r.MaxRequests)
	}
	if r.MaxCost != nil && *r.MaxCost > 0 && *r.MaxCost < 1e9 {
		micros = int64(*r.MaxCost*1e6 + 0.5)
	}
	return requests, micros
}

// Reached checks, before the next request, whether the requests and the money since a person last agreed to continue
// reach Roo's limits, and returns the text of the row that Roo shows, "" for none. The next request counts; money
// counts with Roo's tolerance of a hundredth of a cent.
func Reached(maxRequests int, maxMicros int64, requests int, micros int64) (row string) {
	const tolerance = 100 // micro-dollars
	switch {
	case maxRequests > 0 && requests+1 > maxRequests:
		return `{"count":` + strconv.Itoa(maxRequests) + `,"type":"requests"}`
	case maxMicros > 0 && micros > maxMicros+tolerance:
		return `{"count":"` + strconv.FormatFloat(float64(maxMicros)/1e6, 'f', 2, 64) + `","type":"cost"}`
	}
	return ""
}
