package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/script"
	"github.com/roost-dev/roost/redact"
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
	over(&s.Workspace, r.Workspace)
	over(&s.Mode, r.Mode)
	over(&s.Approve, r.Approve)
	if r.Provider != "" && r.Provider != s.Provider {
		// Another provider's model and address mean nothing here.
		s.Provider, s.Model, s.BaseURL = r.Provider, "", ""
	}
	over(&s.Model, r.Model)
	over(&s.BaseURL, r.BaseURL)
	if s.Provider == "" {
		s.Provider = e.opt.Config.Provider
		if s.Model == "" {
			s.Model = e.opt.Config.Model
		}
	}
	if s.Provider == "anthropic" && s.Model == "" {
		s.Model = defaultModel
	}
	if s.Mode == "" {
		s.Mode = "code"
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
	if r.Allow != nil {
		s.Allow = r.Allow
	}
	if r.Deny != nil {
		s.Deny = r.Deny
	}
	if r.Limits != nil {
		s.Limits = limits(s.Limits, *r.Limits)
	}
	if s.Workspace == "" {
		return s, &ConfigError{
			What: "open the task's workspace", Why: "the task does not say where it was",
			Try: "name the folder with -C DIR",
		}
	}
	return s, nil
}

// limits are those of the task, with each that was given in its place.
func limits(has, given task.Limits) task.Limits {
	return task.Limits{
		MaxTurns:       limit(has.MaxTurns, given.MaxTurns),
		MaxCostMicros:  limit(has.MaxCostMicros, given.MaxCostMicros),
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
	return approval.Policy{Mode: s.Approve, Allow: s.Allow, Deny: s.Deny, AllowTools: s.Tools}
}

// providerChoice is a provider and what must never be shown of it.
type providerChoice struct {
	llm   llm.Provider
	masks *redact.Redactor
}

// provider makes the provider a task names. It is never swapped silently.
func (e *Engine) provider(s task.Settings) (providerChoice, error) {
	c := e.opt.Config
	var known []redact.Known
	for name, key := range c.Keys {
		known = append(known, redact.Known{Kind: name + "-key", Value: key})
	}
	choice := providerChoice{masks: redact.New(known...)}
	switch s.Provider {
	case "":
		return choice, &ConfigError{
			What: "ask a model", Why: "no provider is named and no key was found",
			Try: "set ANTHROPIC_API_KEY, or play a script with --provider script --model FILE",
		}
	case "script":
		model, err := loadScript(s.Model)
		if err != nil {
			return choice, &ConfigError{What: "load the script " + s.Model, Why: err.Error(), Try: "name a YAML file with --model"}
		}
		choice.llm = model
	case "anthropic":
		key := c.Keys["anthropic"]
		if key == "" {
			return choice, &ConfigError{What: "ask anthropic", Why: "there is no key", Try: "set ANTHROPIC_API_KEY"}
		}
		base := s.BaseURL
		if base == "" {
			base = c.BaseURLs["anthropic"]
		}
		choice.llm = anthropic.New(anthropic.Options{APIKey: key, BaseURL: base, Model: s.Model})
	default:
		return choice, &ConfigError{
			What: "ask " + s.Provider, Why: "this version has no such provider",
			Try: "use --provider anthropic or --provider script",
		}
	}
	return choice, nil
}

func loadScript(name string) (llm.Provider, error) {
	if name == "" || name == "demo" {
		return script.Default(), nil
	}
	return script.Load(name)
}

// gitHead is the commit that a workspace's repository stands on, "" without one.
// It is read from files: asking git would run the user's hooks and settings.
func gitHead(root string) string {
	dir := filepath.Join(root, ".git")
	head, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(head))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text
	}
	if commit, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(commit))
	}
	return fmt.Sprintf("%s (no commit found)", ref)
}
