// Package setup decides with which settings a run works: which provider and model it asks, in which mode, under
// which approvals and limits. It combines three sources: the settings that the task keeps, what the caller of the
// run names (Choice), and what the user has configured outside any task (Config).
//
// A provider is never replaced silently, and neither is a model: where the one that a task names is missing, the
// result is an error that names the setting to change, or a note for the user. The package reads configuration,
// modes, rules and the files of the workspace that hold them. It writes nothing and opens no connection.
package setup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent/hook"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/toolset"
	"github.com/roost-dev/roost/tool/webtool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/reach"
	"github.com/roost-dev/roost/workspace/skill"
)

// Error names something that the user has to set up. A command that ends with it has the exit code 10.
type Error struct {
	What string // what was attempted
	Why  string
	Try  string // what to do
}

func (e *Error) Error() string { return e.What + ": " + e.Why }

// WorkspaceError: the folder of a task is missing or not known, and the caller must name one.
type WorkspaceError struct {
	Fault *Error
	Of    api.FolderID // another server of the group may have this folder; zero: ask no other server
	Runs  bool         // a run needs the folder, so a server that clones it can help, too
}

func (e *WorkspaceError) Error() string { return e.Fault.Error() }

func (e *WorkspaceError) Unwrap() error { return e.Fault }

// Choice is what the caller of a run names of its settings. Zero members mean: as the task has it, or the default
// for a new task.
type Choice struct {
	Workspace string // absolute folder
	Mode      string
	Provider  string
	Model     string
	BaseURL   string
	Profile   string // a profile of Config: provider, model and settings at once; the other members here override it
	Preset    bool   // of a new task: the user's settings, and not the caller, chose provider, model, address and profile
	Effort    string // none, minimal, low, medium, high, xhigh, max
	MaxTokens int    // of one reply; negative = no limit of the task's own
	Condense  int    // percent of the model's window at which older history is summarised; negative = never
	Stale     string // what the model is given of a file that others changed: task.StaleTell or task.StaleRead
	Approve   string // ask, read, edits, all
	Allow     []string
	Deny      []string
	// Rules of tools and files; see approval.Rule.
	AllowTools, AskTools, DenyTools []string
	task.RunChoice
	// Limits replaces those of the task's limits that are not zero here. A negative one removes the limit.
	Limits *api.RunLimits

	keepName bool // Profile replaces the task's profile, whose name the task keeps
	// Fallback: where neither is known, the provider of new tasks is used, and a note reports that.
	Fallback bool
}

// Resolver decides the settings of runs.
type Resolver struct {
	Config   Config
	Root     string        // the store's root
	Confined bool          // a workspace must be a folder that can be a project; see CheckWorkspace
	Reach    *reach.Server // what this server of a group reaches; nil without a group
}

// Config is what the user has set up outside any task.
type Config struct {
	Provider string // for new tasks
	Model    string
	BaseURLs map[string]string // by provider
	Keys     map[string]string // by provider
	Clouds   map[string]string // settings of clouds, such as bedrock.region
	Zone     string            // the user's time zone
	Linter   string            // the command line whose findings @problems stands for; "" = none

	// MaxDayMicros is what all tasks together may cost on one day, in micro-dollars; 0 = no limit. It belongs to
	// the machine and not to a task.
	MaxDayMicros int64
	// Guarded are Roost's own folders and files outside the store's root, absolute. No policy lets a tool write
	// there without asking.
	Guarded []string

	// ModeFiles hold the user's own modes (Roo's custom_modes.yaml), absolute, the first one first; they need not
	// exist. Home holds the user's own rules, below .roo; "" = there are none.
	ModeFiles []string
	Home      string
	// Servers are the files that name MCP servers. Env resolves variables in their definitions; nil = the
	// environment.
	Servers mcp.Files
	Env     func(string) string
	// Hooks are the user's commands before and after calls and runs, in order. They come from the user's settings file and
	// from nowhere else.
	Hooks []Hook
	// Notify is how the user is called when a task waits for them. It comes from the user's settings and from nowhere else.
	Notify notify.Config
	// Settings is the folder of the user's settings, absolute, with the rules of imported modes; "" = there are
	// none.
	Settings string
	// ModeProfiles names the profile that answers in a mode, by slug, for tasks whose caller names no provider.
	ModeProfiles map[string]string

	// LateKeys get a provider's key when a task needs it, and not before: it may take time, and ask the user. A key
	// in Keys takes precedence.
	LateKeys map[string]func() (string, error)

	// IncludeTools are offered in addition to the usual tools. ExcludeTools are never offered, and calls of them
	// are refused. Both belong to the machine and not to a task.
	IncludeTools, ExcludeTools []string
	// PrivateHosts are the sites on private addresses that web_fetch may reach, as webtool.Options has them.
	PrivateHosts []string

	// NoCheckpoints keeps nothing of the files that runs change. The others bound what is kept, in bytes: of one
	// file, of one survey of a workspace before a command, and of a workspace's store; 0 = the defaults.
	NoCheckpoints    bool
	CheckpointFile   int64
	CheckpointSurvey int64
	CheckpointStore  int64

	// Defaults fills what the choice for a new task leaves open from the user's settings, and reports whether the
	// choice or the environment names the provider; nil = there are no settings. It is the one place where settings
	// become a task's, behind every door.
	Defaults func(Choice) (filled Choice, named bool)

	Profiles       map[string]Profile // by name
	SourceProfiles map[string]string  // by source: the profile, or provider, for tasks whose own profile is unknown
}

// ConfigFromEnv reads the variables that providers' own tools use.
func ConfigFromEnv(getenv func(string) string) Config {
	c := Config{Keys: map[string]string{}, BaseURLs: map[string]string{}, Clouds: map[string]string{}}
	put := func(to map[string]string, name string, variables ...string) {
		set := func(v string) bool { return getenv(v) != "" }
		if i := slices.IndexFunc(variables, set); i >= 0 {
			to[name] = getenv(variables[i])
		}
	}
	for name, p := range providers {
		put(c.Keys, name, p.keys...)
		put(c.BaseURLs, name, p.base)
	}
	for name, variables := range cloudSettings {
		put(c.Clouds, name, variables...)
	}
	c.PreferKeyed()
	c.Zone = zoneName(time.Now())
	return c
}

// KnownKeys are the keys of providers and clouds in the settings and the environment, which must never be shown.
func (c Config) KnownKeys() (known []redact.Known) {
	for name, p := range providers {
		known = append(known, redact.Known{Kind: name + "-key", Value: c.Keys[name]})
		for _, variable := range p.keys {
			known = append(known, redact.Known{Kind: name + "-key", Value: c.getenv(variable)})
		}
	}
	for _, p := range c.Profiles {
		known = append(known, redact.Known{Kind: p.Provider + "-key", Value: p.Key})
	}
	for _, name := range secretVariables {
		known = append(known, redact.Known{Kind: "aws-key", Value: c.getenv(name)})
	}
	return known
}

// PreferKeyed chooses the provider for new tasks where none is named yet: the first one that has a key.
func (c *Config) PreferKeyed() {
	if c.Provider != "" {
		return
	}
	for _, name := range preferred {
		if c.Keys[name] != "" || c.LateKeys[name] != nil {
			c.Provider, c.Model = name, providers[name].model
			return
		}
	}
}

// lateKey gets the key that a task needs where Keys has none; "" when there is none to get.
func (c *Config) lateKey(s task.Settings) (string, error) {
	get := c.LateKeys[s.Provider]
	if get == nil || s.Account != "" || c.Keys[s.Provider] != "" {
		return "", nil
	}
	key, err := get()
	if err != nil {
		return "", &Error{"ask " + s.Provider, "there is no key: " + err.Error(),
			"roost auth set " + s.Provider + "  # or set " + providers[s.Provider].keys[0]}
	}
	return key, nil
}

// zoneName returns the user's time zone with its offset, as Roo writes it.
func zoneName(now time.Time) string {
	name, seconds := now.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%s, UTC%c%d:%02d", name, sign, seconds/3600, seconds%3600/60)
}

// MCPServers returns the MCP servers of a task in a workspace, with their states, and what could not be read, in
// words.
func (c Config) MCPServers(workspace string) ([]mcp.Server, []string) {
	if workspace == "" {
		return nil, nil
	}
	return c.Servers.Load(workspace)
}

// Connect makes the connections to those of the servers that are allowed; the caller closes them. mark identifies
// their processes.
func (c Config) Connect(servers []mcp.Server, workspace, mark string, masks *redact.Redactor) *mcp.Hub {
	return mcp.NewHub(mcp.Options{
		Servers: servers, Workspace: workspace, Env: c.getenv, Mark: mark, Version: api.ProgramVersion().Version,
		Masks: masks, Logins: c.Servers.Logins,
	})
}

func (c Config) getenv(name string) string {
	if c.Env == nil {
		return os.Getenv(name)
	}
	return c.Env(name)
}

// Hook is a command of the user that runs at an event of a run.
type Hook = hook.Hook

// CheckPrivateHosts reports what is wrong with names of sites on private addresses.
func CheckPrivateHosts(hosts []string) error { return webtool.CheckPrivate(hosts) }

// Web returns the options with which web_fetch reaches sites.
func (c Config) Web() webtool.Options {
	return webtool.Options{Private: c.PrivateHosts, Version: api.ProgramVersion().Version}
}

// Offer returns which tools models are offered.
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
	return slices.ContainsFunc(append(toolset.All(webtool.Options{}), historytool.ListTasks("", nil)), func(t tool.Tool) bool {
		s := t.Spec()
		return s.Name == name || slices.Contains(s.Aliases, name)
	})
}

// modesFile holds a workspace's own modes.
const modesFile = ".roomodes"

// Modes returns the modes that a task in a workspace may be in, and what could not be read of them, in words. Where
// several of the user's own files define a mode, the first one counts.
func (c Config) Modes(workspace string) (mode.Set, []string) {
	var notes []string
	collect := func(f mode.File, path string) []mode.Mode {
		notes = append(notes, api.Each(f.Problems, func(p string) string { return path + ": " + p })...)
		return f.Modes
	}
	var project, global []mode.Mode
	path := filepath.Join(workspace, modesFile)
	if err := inWorkspace(workspace, func(fsys fs.FS) {
		project = collect(mode.ReadFile(fsys, modesFile, mode.Project, path), path)
	}); err != nil {
		notes = append(notes, fmt.Sprintf("%s: it cannot be read: %v", path, err))
	}
	for _, path := range c.ModeFiles {
		global = append(global, collect(mode.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), mode.Global, path), path)...)
	}
	return mode.Merge(project, global), notes
}

// Skills returns the skills of a workspace and of the user's own.
func (c Config) Skills(root string) skill.Set { return skill.Set{Workspace: root, Home: c.Home} }

// inWorkspace lets f read a workspace's files and follow no link out of it: what a repository contains is sent to a
// provider without a question.
func inWorkspace(workspace string, f func(fs.FS)) error {
	root, err := inputfile.OpenDir(workspace)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	f(inputfile.FS(root))
	return nil
}

// rules loads the user's rules for a mode: those of the workspace and those below the home folder.
func (c Config) rules(workspace, slug string) (rules mode.Rules) {
	var p mode.Places
	if c.Home != "" {
		p.Home = os.DirFS(c.Home)
	}
	if c.Settings != "" {
		p.Settings = os.DirFS(c.Settings)
	}
	if err := inWorkspace(workspace, func(fsys fs.FS) { p.Project = fsys; rules = mode.LoadRules(p, slug) }); err != nil {
		p.Project = nil
		rules = mode.LoadRules(p, slug)
		rules.Notes = append(rules.Notes, fmt.Sprintf("the workspace's rules cannot be read: %v", err))
	}
	return rules
}

// DayLimit returns the limit of what all tasks may cost on one day, in micro-dollars; 0 = none.
func (r Resolver) DayLimit(c Choice) int64 {
	return replaceLimit(r.Config.MaxDayMicros, c.MaxDayMicros)
}

// replaceLimits returns the task's limits, each replaced by the chosen one where there is one.
func replaceLimits(has, chosen api.RunLimits) api.RunLimits {
	return api.RunLimits{
		MaxTurns:       replaceLimit(has.MaxTurns, chosen.MaxTurns),
		MaxCostMicros:  replaceLimit(has.MaxCostMicros, chosen.MaxCostMicros),
		MaxTaskMicros:  replaceLimit(has.MaxTaskMicros, chosen.MaxTaskMicros),
		AskRequests:    replaceLimit(has.AskRequests, chosen.AskRequests),
		AskCostMicros:  replaceLimit(has.AskCostMicros, chosen.AskCostMicros),
		IdleTimeoutMS:  replaceLimit(has.IdleTimeoutMS, chosen.IdleTimeoutMS),
		TotalTimeoutMS: replaceLimit(has.TotalTimeoutMS, chosen.TotalTimeoutMS),
	}
}

func replaceLimit[N int | int64](has, chosen N) N {
	switch {
	case chosen < 0:
		return 0
	case chosen > 0:
		return chosen
	}
	return has
}

// Policy returns the approval policy that the settings describe.
func Policy(s task.Settings) approval.Policy {
	return approval.Policy{
		Mode: s.Approve, Allow: s.Allow, Deny: s.Deny, AllowTools: s.Tools, AskTools: s.AskTools,
		DenyTools: s.DenyTools,
	}
}

// OpenWorkspace opens a folder and guards Roost's own data in it.
func (r Resolver) OpenWorkspace(root string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(root)
	if err != nil {
		return nil, &WorkspaceError{Fault: &Error{"open the workspace " + root, err.Error(), "name the folder with -C DIR"}}
	}
	ws.Guard(slices.Concat([]string{r.Root}, r.Config.Guarded, r.Reach.Marks())...)
	return ws, nil
}

// UnknownPrice warns of limits of cost that cannot hold, because the model's price is unknown.
func (r Resolver) UnknownPrice(s task.Settings, model catalogue.Model, c Choice) []string {
	l := s.Limits
	if l.MaxCostMicros <= 0 && l.MaxTaskMicros <= 0 && l.AskCostMicros <= 0 && r.DayLimit(c) <= 0 {
		return nil
	}
	if _, known := model.Cost(llm.Usage{Input: 1, Output: 1}); known && len(model.IDs) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("the price of %s is not known, so no limit of cost can stop this run; --max-turns can", s.Model)}
}
