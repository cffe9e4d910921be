package engine

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
)

// ConfigError is something the user has to set up. Exit code 10.
type ConfigError struct {
	What string // what was attempted
	Why  string
	Try  string // what to do
}

func (e *ConfigError) Error() string { return e.What + ": " + e.Why }

// settings are the task's, with what was given now on top. A task keeps them for
// later runs.
func (e *Engine) settings(s task.Settings, r Request) (task.Settings, error) {
	over := func(to *string, given string) {
		if given != "" {
			*to = given
		}
	}
	if r.Profile != "" {
		var err error
		was := s.Profile
		if s, err = e.withProfile(s, r.Profile); err != nil {
			return s, err
		}
		if r.keepName {
			s.Profile = was
		}
	}
	over(&s.Workspace, r.Workspace)
	over(&s.Mode, r.Mode)
	over(&s.Approve, r.Approve)
	if r.Provider != "" && r.Provider != s.Provider {
		// Another provider's model and address mean nothing here.
		s.Provider, s.Model, s.BaseURL, s.Account = r.Provider, "", "", ""
	}
	over(&s.Effort, r.Effort)
	over(&s.Stale, r.Stale)
	if r.Condense != 0 {
		s.Condense = r.Condense
	}
	if s.Condense == 0 {
		s.Condense = condenseAt
	}
	if r.MaxTokens != 0 {
		s.MaxTokens = max(r.MaxTokens, 0)
	}
	over(&s.Model, r.Model)
	over(&s.BaseURL, r.BaseURL)
	if err := plainAddress(s.BaseURL, "--base-url URL"); err != nil {
		return s, err
	}
	if s.Provider == "" {
		s.Provider = e.opt.Config.Provider
		if s.Model == "" {
			s.Model = e.opt.Config.Model
		}
	}
	if s.Model == "" {
		s.Model = providers[s.Provider].model
	}
	if s.Mode == "" {
		s.Mode = mode.Default
	}
	if s.Approve == "" {
		s.Approve = approval.ModeAsk
	}
	if !approval.ValidMode(s.Approve) {
		return s, &ConfigError{
			What: "approve " + s.Approve, Why: "there is no such policy",
			Try: "use ask, read, edits or all",
		}
	}
	if !slices.Contains([]string{"", task.StaleTell, task.StaleRead}, s.Stale) {
		return s, &ConfigError{What: "give the model changed files by " + s.Stale, Why: "there is no such way", Try: "use tell or read"}
	}
	if r.Allow != nil {
		s.Allow = r.Allow
	}
	if r.Deny != nil {
		s.Deny = r.Deny
	}
	if err := rules(&s, r); err != nil {
		return s, err
	}
	if r.Limits != nil {
		s.Limits = limits(s.Limits, *r.Limits)
	}
	if s.Workspace == "" {
		return s, errNoWorkspace
	}
	return s, nil
}

var errNoWorkspace = &ConfigError{What: "open the task's workspace", Why: "the task does not say where it was", Try: "name the folder with -C DIR"}

// noWorkspace says that a task has no workspace. Where its messages name a folder, the user is
// told and decides: a message may be anybody's.
func noWorkspace(id, named string) error {
	e := *errNoWorkspace
	e.Try = "name the folder: roost resume " + id + " -C DIR"
	if named != "" {
		e.Why += "; its messages name " + named
	}
	return &e
}

// project refuses a workspace that is nobody's project, where the engine is confined:
// everything of the user's, or Roost's own data, would be inside of it.
func (e *Engine) project(dir string) error {
	if !e.opt.Confined || dir == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil //nolint:nilerr // who opens it says why it cannot be
	}
	if why := checkpoint.Unfit(real, e.store.Root(), e.opt.Config.Home); why != "" {
		return &ConfigError{
			What: "work in " + dir, Why: why,
			Try: "name the folder with -C DIR",
		}
	}
	return nil
}

// withItsModel lets another tool's task go on with the model that its histories name, where
// the provider has that one and nobody named another.
func (e *Engine) withItsModel(has task.Settings, was string, r Request) Request {
	if has.Model != "" || has.Provider != "" || was == "" || r.Model != "" || r.Profile != "" || r.Provider == "" && e.opt.Config.Model != "" {
		return r
	}
	if _, known := catalogue.Find(cmp.Or(r.Provider, e.opt.Config.Provider), was); known {
		r.Model = was
	}
	return r
}

// OtherModelError: another tool's task would go on with a model that nobody chose, because the
// provider does not have the one that the histories name. A request that names the model confirms.
type OtherModelError struct {
	Task, Was       string
	Provider, Model string // what would answer
}

func (e *OtherModelError) Error() string {
	return fmt.Sprintf("task %s was made with the model %s, which %s is not known to have; %s would answer", e.Task, e.Was, e.Provider, e.Model)
}

// modelNamed reports whether the user named the model, by a request, a profile or the settings.
// The older call cannot name one: there the change is told and not asked about.
func (e *Engine) modelNamed(r Request) bool {
	return r.Model != "" || r.Profile != "" || r.Fallback || r.Provider == "" && e.opt.Config.Model != ""
}

// defaults fills a request from the user's settings where the task has none yet: it is new,
// or another tool's that never ran here. Such a task keeps its own mode and model, and
// whose model answers a task that names its profile is not for the settings of new tasks
// to say.
func (e *Engine) defaults(has task.Settings, r Request) Request {
	if has.Approve != "" || e.opt.Config.Defaults == nil {
		return r
	}
	filled, named := e.opt.Config.Defaults(r)
	if r.Task == "" {
		return filled
	}
	filled.Preset = r.Preset
	if has.Mode != "" {
		filled.Mode = r.Mode
	}
	if has.Provider != "" || has.Profile != "" && !named {
		filled.Provider, filled.Model, filled.BaseURL = r.Provider, r.Model, r.BaseURL
		filled.Profile, filled.Effort, filled.MaxTokens = r.Profile, r.Effort, r.MaxTokens
	}
	return filled
}

// condenseAt is when older history is summarised, where nobody says otherwise: when
// all of the window is used, or the next request would not fit.
const condenseAt = 100

// limits are those of the task, with each that was given in its place.
func limits(has, given task.Limits) task.Limits {
	return task.Limits{
		MaxTurns:       limit(has.MaxTurns, given.MaxTurns),
		MaxCostMicros:  limit(has.MaxCostMicros, given.MaxCostMicros),
		MaxTaskMicros:  limit(has.MaxTaskMicros, given.MaxTaskMicros),
		AskRequests:    limit(has.AskRequests, given.AskRequests),
		AskCostMicros:  limit(has.AskCostMicros, given.AskCostMicros),
		IdleTimeoutMS:  limit(has.IdleTimeoutMS, given.IdleTimeoutMS),
		TotalTimeoutMS: limit(has.TotalTimeoutMS, given.TotalTimeoutMS),
	}
}

func limit[N int | int64](has, given N) N {
	switch {
	case given < 0:
		return 0
	case given > 0:
		return given
	}
	return has
}

func policy(s task.Settings) approval.Policy {
	return approval.Policy{
		Mode: s.Approve, Allow: s.Allow, Deny: s.Deny, AllowTools: s.Tools, AskTools: s.AskTools, DenyTools: s.DenyTools,
	}
}

// gitHead is the commit that a workspace's repository stands on, "" without one.
// It is read from files: asking git would run the user's hooks and settings.
func gitHead(root string) string {
	dir := filepath.Join(root, ".git")
	head, err := inputfile.Read(filepath.Join(dir, "HEAD"))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(head))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text
	}
	if commit, err := inputfile.Read(filepath.Join(dir, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(commit))
	}
	return fmt.Sprintf("%s (no commit found)", ref)
}
