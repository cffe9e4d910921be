package setup

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Prepare applies the profile of the settings' mode, and opens what the run works with. before are the settings of the
// task's last run.
func (r Resolver) Prepare(before, s task.Settings, c Choice, isNew bool) (task.Settings, Environment, error) {
	s, notes := r.EnterMode(before, s, c, isNew)
	env, err := r.Open(s)
	if err == nil && c.Workspace == "" {
		if bad := r.Reach.Check(env.Workspace.Root(), s.Folder); bad != nil {
			return s, env, Lacking(s, bad)
		}
	}
	if err == nil {
		tree := s.Folder.Tree
		s.Folder = r.Reach.Identify(env.Workspace.Root())
		if c.Workspace == "" { // it is the workspace of before, and may be cloned as before
			s.Folder.Tree = tree
		}
		err = env.CheckMode(&s, c.Mode != "")
	}
	env.Notes = append(env.Notes, notes...)
	return s, env, err
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
	if c.Workspace == "" {
		var err error
		if c.Workspace, err = r.FindWorkspace(s); err != nil {
			return s, err
		}
	}
	s.Workspace = c.Workspace
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

// replaceRules puts the chosen rules in the place of the task's. A rule of tools that cannot be parsed is an error: a deny
// that matches nothing would deny nothing.
func replaceRules(s *task.Settings, c Choice) error {
	for _, text := range slices.Concat(c.AllowTools, c.AskTools, c.DenyTools) {
		if _, err := approval.ParseRule(text); err != nil {
			return &Error{"use the rule " + text, err.Error(),
				`write it like write_to_file, read or "write(docs/**)"`}
		}
	}
	replaceList(&s.Allow, c.Allow)
	replaceList(&s.Deny, c.Deny)
	replaceList(&s.Tools, c.AllowTools)
	replaceList(&s.AskTools, c.AskTools)
	replaceList(&s.DenyTools, c.DenyTools)
	return nil
}

// replaceList replaces a list unless nothing is chosen: an empty list is a choice.
func replaceList(list *[]string, chosen []string) {
	if chosen != nil {
		*list = chosen
	}
}

// ErrNoWorkspace: the task names no workspace, and neither does the caller.
var ErrNoWorkspace = &Error{"open the task's workspace", "the task does not record where it was",
	"name the folder with -C DIR"}

// NoWorkspace is ErrNoWorkspace for a task. Where the task's messages name a folder, the error shows the folder and the
// user decides: anybody may have written the message.
func NoWorkspace(id, named string) error {
	e := *ErrNoWorkspace
	e.Try = "roost resume " + api.ShellWord(id) + " -C DIR"
	if named != "" {
		e.Why += "; its messages name " + named
	}
	return &WorkspaceError{Fault: &e}
}

// FindWorkspace returns the path of a task's workspace on this server; "" = the task names none. The error is a
// *WorkspaceError.
func (r Resolver) FindWorkspace(s task.Settings) (string, error) {
	if s.Workspace == "" {
		return "", nil
	}
	dir, err := r.Reach.Find(s.Workspace, s.Folder)
	if err != nil {
		return "", Lacking(s, err)
	}
	return dir, nil
}

// Lacking returns the error of a server that lacks the workspace of a task.
func Lacking(s task.Settings, why error) *WorkspaceError {
	return &WorkspaceError{Of: s.Folder, Fault: &Error{"open the workspace " + s.Workspace + " on this server", why.Error(),
		"roost resume ID -C DIR  # or a server that has the folder: roost server status"}}
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

// ModelNamed reports whether the user named the model, by the choice, a profile or the settings. The older call (see
// package server) cannot name one: there a note reports the change, without a question.
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
