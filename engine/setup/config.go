// Package setup decides with which settings a run works: which provider and model it asks, in which mode, under
// which approvals and limits. It combines three sources: the settings that the task keeps, what the caller of the
// run names (Choice), and what the user has configured outside any task (Config).
//
// A provider is never replaced silently, and neither is a model: where the one that a task names is missing, the
// result is an error that names the setting to change, or a note for the user. The package reads configuration,
// modes, rules and the files of the workspace that hold them. It writes nothing and opens no connection.
package setup

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/toolset"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/skill"
)

// Error is something that the user has to set up. Exit code 10.
type Error struct {
	What string // what was attempted
	Why  string
	Try  string // what to do
}

func (e *Error) Error() string { return e.What + ": " + e.Why }

// Choice is what the caller of a run names of its settings. Zero members mean: as the task has it, or the default
// for a new task.
type Choice struct {
	Workspace string // absolute folder
	Mode      string
	Provider  string
	Model     string
	BaseURL   string
	Profile   string // a profile of Config: provider, model and settings at once; the other members here override it
	Preset    bool   // of a new task: the user's settings chose provider, model, address and profile, and not the caller
	Effort    string // none, minimal, low, medium, high, xhigh, max
	MaxTokens int    // of one reply; negative = no limit of the task's own
	Condense  int    // percent of the model's window at which older history is summarised; negative = never
	Stale     string // what the model is given of a file that others changed: task.StaleTell or task.StaleRead
	Approve   string // ask, read, edits, all
	Allow     []string
	Deny      []string
	// Rules of tools and files; see approval.Rule.
	AllowTools, AskTools, DenyTools []string
	// MaxDayMicros limits the cost of all tasks on one day, for this run: 0 = as Config has it, negative = no
	// limit. A task does not keep it.
	MaxDayMicros int64
	// Limits replaces those of the task's limits that are not zero here. A negative one removes the limit.
	Limits *api.RunLimits

	// StandIn is a profile or provider to use where the task's own profile is unknown. The task keeps its
	// profile's name.
	StandIn  string
	keepName bool // Profile is a replacement
	// Fallback: where neither is known, the provider of new tasks is used, and a note reports that.
	Fallback bool
}

// Resolver decides the settings of runs.
type Resolver struct {
	Config   Config
	Root     string // the store's root
	Confined bool   // a workspace must be a folder that can be a project; see CheckWorkspace
}

// Config is what the user has set up outside any task.
type Config struct {
	Provider string // for new tasks
	Model    string
	BaseURLs map[string]string // by provider
	Keys     map[string]string // by provider
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
	c := Config{Keys: map[string]string{}, BaseURLs: map[string]string{}}
	for name, p := range providers {
		for _, v := range p.keys {
			if key := getenv(v); key != "" {
				c.Keys[name] = key
				break
			}
		}
		if base := getenv(p.base); base != "" {
			c.BaseURLs[name] = base
		}
	}
	c.PreferKeyed()
	c.Zone = zoneName(time.Now())
	return c
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

// zoneName is the user's time zone with its offset, as Roo writes it.
func zoneName(now time.Time) string {
	name, seconds := now.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%s, UTC%c%d:%02d", name, sign, seconds/3600, seconds%3600/60)
}

// MCPServers are the MCP servers of a task in a workspace, with their states, and what could not be read, in words.
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
		Servers: servers, Workspace: workspace, Env: c.getenv, Mark: mark, Version: version(),
		Masks: masks,
	})
}

func (c Config) getenv(name string) string {
	if c.Env == nil {
		return os.Getenv(name)
	}
	return c.Env(name)
}

// version is this program's version, which MCP servers get.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
})

// Offer is which tools models are offered.
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
	return slices.ContainsFunc(append(toolset.All(), historytool.ListTasks(nil)), func(t tool.Tool) bool {
		s := t.Spec()
		return s.Name == name || slices.Contains(s.Aliases, name)
	})
}

// modesFile holds a workspace's own modes.
const modesFile = ".roomodes"

// Modes are the modes that a task in a workspace may be in, and what could not be read of them, in words. Where several
// of the user's own files define a mode, the first one counts.
func (c Config) Modes(workspace string) (mode.Set, []string) {
	var notes []string
	collect := func(f mode.File, path string) []mode.Mode {
		for _, p := range f.Problems {
			notes = append(notes, path+": "+p)
		}
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

// Skills are the skills of a workspace and of the user's own.
func (c Config) Skills(root string) skill.Set { return skill.Set{Workspace: root, Home: c.Home} }

// inWorkspace lets f read a workspace's files and follow no link out of it: what a repository contains is sent to a
// provider without a question.
func inWorkspace(workspace string, f func(fs.FS)) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	f(root.FS())
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

// defaultCondense is the percentage of the model's window at which older history is summarised by default: when all
// of it is used, or the next request would not fit.
const defaultCondense = 100

// Settings puts the caller's choice over the settings that a task has. The task keeps the result for later runs.
func (r Resolver) Settings(s task.Settings, c Choice) (task.Settings, error) {
	if c.Profile != "" {
		var err error
		before := s.Profile
		if s, err = r.applyProfile(s, c.Profile); err != nil {
			return s, err
		}
		if c.keepName {
			s.Profile = before
		}
	}
	s.Workspace = cmp.Or(c.Workspace, s.Workspace)
	s.Mode = cmp.Or(c.Mode, s.Mode)
	s.Approve = cmp.Or(c.Approve, s.Approve)
	if c.Provider != "" && c.Provider != s.Provider {
		// Another provider's model and address mean nothing here.
		s.Provider, s.Model, s.BaseURL, s.Account = c.Provider, "", "", ""
	}
	s.Effort = cmp.Or(c.Effort, s.Effort)
	s.Stale = cmp.Or(c.Stale, s.Stale)
	s.Condense = cmp.Or(c.Condense, s.Condense, defaultCondense)
	s.MaxTokens = replaceLimit(s.MaxTokens, c.MaxTokens)
	s.Model = cmp.Or(c.Model, s.Model)
	s.BaseURL = cmp.Or(c.BaseURL, s.BaseURL)
	if err := checkAddress(s.BaseURL, "--base-url URL"); err != nil {
		return s, err
	}
	if s.Provider == "" {
		s.Provider, s.Model = r.Config.Provider, cmp.Or(s.Model, r.Config.Model)
	}
	s.Model = cmp.Or(s.Model, providers[s.Provider].model)
	s.Mode, s.Approve = cmp.Or(s.Mode, mode.Default), cmp.Or(s.Approve, approval.ModeAsk)
	if !approval.ValidMode(s.Approve) {
		return s, &Error{"approve " + s.Approve, "there is no such policy", "use ask, read, edits or all"}
	}
	if !slices.Contains([]string{"", api.StaleTell, api.StaleRead}, s.Stale) {
		return s, &Error{"set stale to " + s.Stale, "there is no such value", "use tell or read"}
	}
	if c.Allow != nil {
		s.Allow = c.Allow
	}
	if c.Deny != nil {
		s.Deny = c.Deny
	}
	if err := replaceRules(&s, c); err != nil {
		return s, err
	}
	if c.Limits != nil {
		s.Limits = replaceLimits(s.Limits, *c.Limits)
	}
	if s.Workspace == "" {
		return s, ErrNoWorkspace
	}
	return s, nil
}

// replaceRules puts the chosen rules of tools in the place of the task's. A rule that cannot be parsed is an error: a
// deny that matches nothing would deny nothing.
func replaceRules(s *task.Settings, c Choice) error {
	for _, list := range []struct {
		to     *[]string
		chosen []string
	}{{&s.Tools, c.AllowTools}, {&s.AskTools, c.AskTools}, {&s.DenyTools, c.DenyTools}} {
		for _, text := range list.chosen {
			if _, err := approval.ParseRule(text); err != nil {
				return &Error{"use the rule " + text, err.Error(),
					`write it like write_to_file, read or "write(docs/**)"`}
			}
		}
		if list.chosen != nil {
			*list.to = list.chosen
		}
	}
	return nil
}

// ErrNoWorkspace: the task names no workspace, and neither does the caller.
var ErrNoWorkspace = &Error{"open the task's workspace", "the task does not record where it was",
	"name the folder with -C DIR"}

// NoWorkspace is ErrNoWorkspace for a task. Where its messages name a folder, the error shows it and the user decides:
// anybody may have written the message.
func NoWorkspace(id, named string) error {
	e := *ErrNoWorkspace
	e.Try = "roost resume " + id + " -C DIR"
	if named != "" {
		e.Why += "; its messages name " + named
	}
	return &e
}

// CheckWorkspace refuses a workspace that cannot be a project, where the resolver is confined: a disk, the home folder
// or Roost's own data would be inside it.
func (r Resolver) CheckWorkspace(dir string) error {
	if !r.Confined || dir == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil //nolint:nilerr // opening the folder reports why it fails
	}
	if why := checkpoint.Unfit(real, r.Root, r.Config.Home); why != "" {
		return &Error{"work in " + dir, why, "name the folder with -C DIR"}
	}
	return nil
}

// KeepModel lets another tool's task continue with the model that its histories name, where the provider has that
// model and the caller names no other one.
func (r Resolver) KeepModel(has task.Settings, before string, c Choice) Choice {
	if has.Model != "" || has.Provider != "" || before == "" || c.Model != "" || c.Profile != "" ||
		c.Provider == "" && r.Config.Model != "" {
		return c
	}
	if _, known := catalogue.Find(cmp.Or(c.Provider, r.Config.Provider), before); known {
		c.Model = before
	}
	return c
}

// OtherModelError: another tool's task would continue with a model that the user did not choose, because the provider
// does not have the one that the histories name. A choice that names the model confirms it.
type OtherModelError struct {
	Task, Was       string
	Provider, Model string // what would answer
}

func (e *OtherModelError) Error() string {
	return fmt.Sprintf("task %s was made with the model %s, which %s is not known to have; %s would answer", e.Task, e.Was,
		e.Provider, e.Model)
}

// ModelNamed reports whether the user named the model, by the choice, a profile or the settings. The older restart
// call cannot name one: there a note reports the change, without a question.
func (r Resolver) ModelNamed(c Choice) bool {
	return c.Model != "" || c.Profile != "" || c.Fallback || c.Provider == "" && r.Config.Model != ""
}

// Defaults completes a choice from the user's settings where the task has none yet: the task is new, or another
// tool's that never ran here. Such a task keeps its own mode and model, and the settings for new tasks do not decide
// which model answers a task that names its profile.
func (r Resolver) Defaults(has task.Settings, c Choice, isNew bool) Choice {
	if has.Approve != "" || r.Config.Defaults == nil {
		return c
	}
	filled, named := r.Config.Defaults(c)
	if isNew {
		return filled
	}
	filled.Preset = c.Preset
	if has.Mode != "" {
		filled.Mode = c.Mode
	}
	if has.Provider != "" || has.Profile != "" && !named {
		filled.Provider, filled.Model, filled.BaseURL = c.Provider, c.Model, c.BaseURL
		filled.Profile, filled.Effort, filled.MaxTokens = c.Profile, c.Effort, c.MaxTokens
	}
	return filled
}

// DayLimit is the limit of what all tasks may cost on one day, in micro-dollars; 0 = none.
func (r Resolver) DayLimit(c Choice) int64 {
	return replaceLimit(r.Config.MaxDayMicros, c.MaxDayMicros)
}

// replaceLimits are the task's limits, each replaced by the chosen one where there is one.
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

// Policy is the approval policy that the settings describe.
func Policy(s task.Settings) approval.Policy {
	return approval.Policy{
		Mode: s.Approve, Allow: s.Allow, Deny: s.Deny, AllowTools: s.Tools, AskTools: s.AskTools,
		DenyTools: s.DenyTools,
	}
}

// Environment is what a run with certain settings works with.
type Environment struct {
	Provider  Provider
	Workspace *workspace.Workspace
	Model     catalogue.Model
	Modes     mode.Set
	Notes     []string // for the user
}

// Open opens the workspace, the provider and the modes that settings name.
func (r Resolver) Open(s task.Settings) (Environment, error) {
	if !filepath.IsAbs(s.Workspace) { // a path of another machine: here it would name some folder below the current one
		return Environment{}, &Error{"open the workspace " + s.Workspace, "it is no absolute folder on this machine",
			"name the folder with -C DIR"}
	}
	ws, err := r.OpenWorkspace(s.Workspace)
	if err != nil {
		return Environment{}, err
	}
	provider, err := r.Provider(s)
	if err != nil {
		return Environment{}, err
	}
	model, _ := catalogue.Find(s.Provider, s.Model)
	modes, notes := r.Config.Modes(ws.Root())
	return Environment{Provider: provider, Workspace: ws, Model: model, Modes: modes, Notes: notes}, nil
}

// OpenWorkspace opens a folder and guards Roost's own data in it.
func (r Resolver) OpenWorkspace(root string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(root)
	if err != nil {
		return nil, &Error{"open the workspace " + root, err.Error(), "name the folder with -C DIR"}
	}
	ws.Guard(append([]string{r.Root}, r.Config.Guarded...)...)
	return ws, nil
}

// CheckMode checks the mode of the settings. A mode that the caller has named must exist. One that the task has kept
// may have been removed with its file: then the task continues in Roo's fallback mode, and a note reports that. The
// error is a *mode.UnknownError.
func (e *Environment) CheckMode(s *task.Settings, named bool) error {
	m, err := e.Modes.Lookup(s.Mode)
	switch {
	case err != nil && named:
		return err
	case err != nil:
		e.Notes = append(e.Notes, fmt.Sprintf("the task's mode %s does not exist any more: it continues in mode %s; --mode "+
			"names another one", s.Mode, mode.Fallback))
		s.Mode = mode.Fallback
	case m.Source == mode.Project && slices.Contains(e.Modes.Redefined(), s.Mode):
		e.Notes = append(e.Notes, fmt.Sprintf("the mode %s is not the built-in one: %s of this workspace redefines it", s.Mode, modesFile))
	}
	return nil
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

// Prepare lets the profile of the settings' mode answer, and opens what the run works with. before are the settings of
// the task's last run.
func (r Resolver) Prepare(before, s task.Settings, c Choice, isNew bool) (task.Settings, Environment, error) {
	s, notes := r.EnterMode(before, s, c, isNew)
	env, err := r.Open(s)
	if err == nil {
		err = env.CheckMode(&s, c.Mode != "")
	}
	env.Notes = append(env.Notes, notes...)
	return s, env, err
}
