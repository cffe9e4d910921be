package setup

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/script"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/skill"
)

// Profile is a choice under a name: of provider, model, address, effort, tokens, mode, policy, commands and limits. Empty
// members leave the provider's default, or what a task has.
type Profile struct {
	Choice
	Key     string // its own; "" = the provider's
	Foreign string // its name in another tool; "" = the same
}

// UnknownProfileError: a task of another tool names a profile that is unknown here, and the user has named no profile to
// use instead. Roost does not guess which model answers and which account pays.
type UnknownProfileError struct {
	Task, Source, Profile string
}

func (e *UnknownProfileError) Error() string {
	return fmt.Sprintf("the task names the profile %q, and no profile here goes by that name", e.Profile)
}

// Providers returns the names of the providers that ask a model over a network, in order.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// KeyVariables returns the variables that may hold a provider's key; the first one that is set counts.
func KeyVariables(provider string) []string { return slices.Clone(providers[provider].keys) }

// keyShape is how the keys of a provider look. Providers change this rarely and without notice, so a key of another shape is a
// reason to ask, not an error.
type keyShape struct {
	begins []string // none: they have no known shape
	least  int      // the least length of a key
	page   string   // where people make keys
}

// KeyPage returns the page where people make keys for a provider, "" when Roost knows none.
func KeyPage(provider string) string { return providers[provider].shape.page }

// KeyDoubt returns why a key does not look like one of its provider's; "" when it does or when the provider's keys
// have no known shape. It does not repeat the key.
func KeyDoubt(provider, key string) string {
	shape := providers[provider].shape
	if shape.begins == nil {
		return ""
	}
	begins := func(s string) bool { return strings.HasPrefix(key, s) }
	for other, its := range providers {
		if other != provider && slices.ContainsFunc(its.shape.begins, func(s string) bool { return begins(s) && len(s) > len("sk-") }) {
			return "it looks like a key of " + other
		}
	}
	switch {
	case !slices.ContainsFunc(shape.begins, begins):
		return "keys of " + provider + " begin with " + strings.Join(shape.begins, " or ")
	case len(key) < shape.least:
		return "keys of " + provider + " are longer"
	}
	return ""
}

// AddressVariable returns the variable that holds a provider's address.
func AddressVariable(provider string) string { return providers[provider].base }

// Keyless reports whether a provider can answer without a key: a model server of the user's own.
func Keyless(provider string) bool { return providers[provider].free }

// DefaultModel returns the model that a run uses when none is named; "" when one has to be named.
func DefaultModel(provider string) string { return providers[provider].model }

// Address returns where a provider answers when no other address is set; "" = it has none of its own.
func Address(provider string) string {
	p := providers[provider]
	if p.open == nil { // a cloud's address depends on the region
		return ""
	}
	at, _ := p.open(wire.Options{}).(fmt.Stringer)
	if at == nil {
		return ""
	}
	_, base, _ := strings.Cut(at.String(), " at ")
	return base
}

// applyProfile puts a profile's settings over those of a task.
func (r Resolver) applyProfile(s task.Settings, name string) (task.Settings, error) {
	p, is := r.Config.Profiles[name]
	if !is {
		why := "there is no such profile"
		if len(r.Config.Profiles) > 0 {
			why += "; there are " + strings.Join(slices.Sorted(maps.Keys(r.Config.Profiles)), ", ")
		}
		return s, &Error{"use the profile " + name, why, "roost config set profiles." + name + ".provider anthropic"}
	}
	if p.Provider == "" {
		return s, &Error{"use the profile " + name, "it names no provider",
			"roost config set profiles." + name + ".provider anthropic"}
	}
	s = p.answering(s, name)
	s.Mode, s.Approve = cmp.Or(p.Mode, s.Mode), cmp.Or(p.Approve, s.Approve)
	replaceList(&s.Allow, p.Allow)
	replaceList(&s.Deny, p.Deny)
	if p.Limits != nil {
		s.Limits = replaceLimits(s.Limits, *p.Limits)
	}
	return s, nil
}

// answering returns the settings s with the provider, model, address, effort, length and key of the profile.
func (p Profile) answering(s task.Settings, name string) task.Settings {
	s.Profile, s.Provider, s.Model, s.BaseURL = cmp.Or(p.Foreign, name), p.Provider, p.Model, p.BaseURL
	s.Effort, s.MaxTokens, s.Account = p.Effort, max(p.MaxTokens, 0), ""
	if p.Key != "" {
		s.Account = name
	}
	return s
}

// localProfile returns the profile here that another tool calls by the given name.
func (c Config) localProfile(foreign string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if c.Profiles[name].Foreign == foreign {
			return name, true
		}
	}
	p, is := c.Profiles[foreign]
	return foreign, is && p.Foreign == ""
}

// ResolveProfile finds the profile of another tool's task that never ran here and names one. What the caller names
// takes precedence; then a profile of that name; then the one that the user has set for the source, with a note.
func (r Resolver) ResolveProfile(source, id string, has task.Settings, c Choice) (Choice, []string, error) {
	if has.Provider != "" || has.Profile == "" || c.Provider != "" || c.Profile != "" {
		return c, nil, nil
	}
	name, known := r.Config.localProfile(has.Profile)
	var notes []string
	if !known {
		name = cmp.Or(c.StandIn, r.Config.SourceProfiles[source])
		if name == "" && c.Fallback && r.useDefaultProvider(&c) {
			answers := cmp.Or(c.Profile, c.Provider)
			notes = append(notes, fmt.Sprintf("the task's profile %q is not known here: %s is used in its place, as for new "+
				"tasks", has.Profile, answers))
			if c.keepName = c.Profile != ""; c.keepName && c.Mode == "" {
				c.Mode = has.Mode
			}
			return c, notes, nil
		}
		if name == "" {
			return c, nil, &UnknownProfileError{Task: id, Source: source, Profile: has.Profile}
		}
		notes = append(notes, fmt.Sprintf("the task's profile %q is not known here: %s is used in its place, as set for "+
			"%s", has.Profile, name, source))
		if _, is := r.Config.Profiles[name]; !is {
			if _, is := providers[name]; is || name == "script" {
				c.Provider = name
				return c, notes, nil
			}
		}
	}
	c.Profile, c.keepName = name, !known
	c.Mode = cmp.Or(c.Mode, has.Mode) // its own, not the profile's
	return c, notes, nil
}

// useDefaultProvider puts the provider or profile of new tasks into the choice; false when there is none.
func (r Resolver) useDefaultProvider(c *Choice) bool {
	var d Choice
	if r.Config.Defaults != nil {
		d, _ = r.Config.Defaults(d)
	}
	if d.Profile == "" && d.Provider == "" {
		d.Provider, d.Model = r.Config.Provider, cmp.Or(d.Model, r.Config.Model)
	}
	c.Profile, c.Provider, c.Model, c.BaseURL = d.Profile, d.Provider, cmp.Or(c.Model, d.Model), d.BaseURL
	return c.Profile != "" || c.Provider != ""
}

// HasProfile reports whether a profile here answers tasks of another tool that name the given profile.
func (c Config) HasProfile(foreign string) bool {
	_, known := c.localProfile(foreign)
	return known
}

// A mode may have a profile of its own, which answers while a task is in that mode. It is for tasks whose caller names
// no provider: those follow the profiles of their modes from their beginning on, and one whose caller names a provider
// later keeps that one. The rights and limits of a task are its own in every mode: of the profile only provider, model,
// address, effort, length and key are used.

// EnterMode lets the profile of the mode answer where the task has just changed to that mode. The notes are for the
// user, before any request is sent.
func (r Resolver) EnterMode(before, s task.Settings, c Choice, isNew bool) (task.Settings, []string) {
	if !c.Preset && (c.Provider != "" || c.Profile != "" || c.Model != "" || c.BaseURL != "") {
		s.ByMode = false
		return s, nil
	}
	if isNew {
		s.ByMode = len(r.Config.ModeProfiles) > 0
	}
	if !s.ByMode || before.Mode == s.Mode {
		return s, nil
	}
	out, notes, _ := r.Config.applyModeProfile(s)
	out.Effort = cmp.Or(c.Effort, out.Effort)
	out.MaxTokens = replaceLimit(out.MaxTokens, c.MaxTokens)
	return out, notes
}

// EnterSubtaskMode lets the profile of a new subtask's mode answer there, if its parent follows those of its modes. The
// notes report that.
func (r Resolver) EnterSubtaskMode(s *task.Settings) (notes []string) {
	if s.ByMode {
		*s, notes, _ = r.Config.applyModeProfile(*s)
	}
	return notes
}

// applyModeProfile gives the settings with the profile of their mode, a note about it, and whether that profile differs
// from what the settings have. A mode without a profile changes nothing.
func (c Config) applyModeProfile(s task.Settings) (out task.Settings, notes []string, changed bool) {
	name := c.ModeProfiles[s.Mode]
	if name == "" {
		return s, nil, false
	}
	p := c.Profiles[name]
	if p.Provider == "" {
		return s, []string{fmt.Sprintf("mode_profiles.%s names the profile %s, which does not exist or names no provider: "+
			"it is not used", s.Mode, name)}, false
	}
	out = p.answering(s, name)
	out.Model = cmp.Or(p.Model, providers[p.Provider].model)
	if out.Provider == s.Provider && out.Model == s.Model && out.BaseURL == s.BaseURL &&
		out.Effort == s.Effort && out.MaxTokens == s.MaxTokens && out.Account == s.Account {
		return out, nil, false
	}
	return out, []string{fmt.Sprintf("mode %s has a profile of its own: from now on %s %s answers (profile %s)", s.Mode,
		out.Provider, out.Model, name)}, true
}

// ModeSetup is an agent.ModeSetup for runs in one workspace.
type ModeSetup struct {
	Resolver  Resolver
	Workspace string // the folder
	Choice    Choice
}

// Rules loads the user's rules for a mode.
func (m ModeSetup) Rules(slug string) mode.Rules { return m.Resolver.Config.rules(m.Workspace, slug) }

// Skills lists the skills of a mode.
func (m ModeSetup) Skills(slug string) ([]skill.Skill, []string) {
	return m.Resolver.Config.Skills(m.Workspace).In(slug)
}

// ModelFor opens the model that answers in the mode of the settings, where that is another one than now.
func (m ModeSetup) ModelFor(s task.Settings) (agent.ModeModel, bool, error) {
	if !s.ByMode {
		return agent.ModeModel{}, false, nil
	}
	now, notes, changed := m.Resolver.Config.applyModeProfile(s)
	if !changed {
		return agent.ModeModel{Settings: s, Note: strings.Join(notes, "; ")}, false, nil
	}
	provider, err := m.Resolver.Provider(now)
	if err != nil {
		return agent.ModeModel{}, false, err
	}
	model, _ := catalogue.Find(now.Provider, now.Model)
	notes = append(notes, m.Resolver.UnknownPrice(now, model, m.Choice)...)
	return agent.ModeModel{
		Settings: now,
		Model:    agent.Model{Provider: provider.LLM, Entry: model},
		Note:     strings.Join(notes, "; "),
	}, true, nil
}

// providerEntry describes how a provider is configured and opened.
type providerEntry struct {
	keys  []string // variables that may hold its key; the first one that is set counts
	base  string   // variable of its address
	shape keyShape // of its keys
	free  bool     // works without a key
	model string   // the default; "" = a model has to be named
	open  func(wire.Options) llm.Provider
	cloud cloudEntry // opens the provider instead, with credentials of its own
}

// providers are those that ask a model over a network.
var providers = map[string]providerEntry{
	"anthropic": {
		keys: []string{"ANTHROPIC_API_KEY"}, base: "ANTHROPIC_BASE_URL", model: "claude-sonnet-5-5",
		shape: keyShape{[]string{"sk-ant-"}, 20, "https://console.anthropic.com/settings/keys"},
		open:  func(o wire.Options) llm.Provider { return anthropic.New(o) },
	},
	"openai": {
		keys: []string{"OPENAI_API_KEY"}, base: "OPENAI_BASE_URL", model: "gpt-6.2-sol",
		shape: keyShape{[]string{"sk-"}, 20, "https://platform.openai.com/api-keys"},
		open:  func(o wire.Options) llm.Provider { return openai.New(o) },
	},
	"google": {
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "GOOGLE_BASE_URL", model: "gemini-2.5-pro",
		shape: keyShape{[]string{"AIza", "AQ."}, 30, "https://aistudio.google.com/apikey"},
		open:  func(o wire.Options) llm.Provider { return google.New(o) },
	},
	"openai-compatible": {
		keys: []string{"OPENAI_COMPATIBLE_API_KEY", "OPENROUTER_API_KEY"}, base: "OPENAI_COMPATIBLE_BASE_URL", free: true,
		open: func(o wire.Options) llm.Provider {
			o.Compatible = true
			return openai.New(o)
		},
	},
	cloud.Bedrock: {
		keys: []string{"AWS_BEARER_TOKEN_BEDROCK"}, base: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", cloud: openBedrock,
	},
	cloud.Vertex: {
		keys: []string{"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"}, base: "VERTEX_BASE_URL", cloud: openVertex,
	},
	cloud.Azure: {
		keys: []string{"AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"}, base: "AZURE_OPENAI_ENDPOINT", cloud: openAzure,
	},
}

// preferred are the providers that are used when none is named: the first one that has a key.
var preferred = []string{"anthropic", "openai", "google"}

// Provider is an open provider, with the secrets that must never be shown.
type Provider struct {
	LLM   llm.Provider
	Masks *redact.Redactor
}

// ErrNoModel: neither the task nor the user names a provider, and no key of one was found.
var ErrNoModel = &Error{
	What: "no model is configured",
	Why:  "no provider is configured and no API key was found",
	Try: "roost auth set anthropic  # or openai, google; or set ANTHROPIC_API_KEY, OPENAI_API_KEY or " +
		"GEMINI_API_KEY. roost try needs no key",
}

// Provider opens the provider that a task names. No other provider is ever used in its place.
func (r Resolver) Provider(s task.Settings) (Provider, error) {
	c := r.Config
	known := c.KnownKeys()
	servers, _ := c.MCPServers(s.Workspace)
	known = append(known, mcp.Secrets(servers, s.Workspace, c.getenv)...)
	late, lateErr := c.lateKey(s)
	if late != "" {
		known = append(known, redact.Known{Kind: s.Provider + "-key", Value: late})
	}
	choice := Provider{Masks: redact.New(known...)}
	if lateErr != nil {
		return choice, lateErr
	}
	switch s.Provider {
	case "":
		return choice, ErrNoModel
	case "script":
		choice.LLM = script.Default()
		if s.Model != "" && s.Model != "demo" {
			model, err := script.Load(s.Model)
			if err != nil {
				return choice, &Error{"load the script " + s.Model, err.Error(), "name a YAML file with --model"}
			}
			choice.LLM = model
		}
		return choice, nil
	}
	p, is := providers[s.Provider]
	if !is {
		return choice, &Error{"ask " + s.Provider, "this version has no such provider",
			"roost help run  # --provider is anthropic, openai, google, openai-compatible, bedrock, vertex, azure or script"}
	}
	key, base := cmp.Or(c.Keys[s.Provider], late), cmp.Or(s.BaseURL, c.BaseURLs[s.Provider])
	if s.Account != "" {
		if key = c.Profiles[s.Account].Key; key == "" {
			return choice, &Error{
				What: "ask " + s.Provider + " with the key of the profile " + s.Account,
				Why:  "that key is missing, and no other key replaces it",
				Try:  "roost auth set --profile " + s.Account + ", or resume with --profile or --provider",
			}
		}
	}
	if err := checkAddress(base, "providers."+s.Provider+".base_url, or "+p.base); err != nil {
		return choice, err
	}
	if s.Account == "" && p.free && leaksKey(key, base) {
		key = ""
	}
	switch {
	case key == "" && !p.free && p.cloud == nil:
		return choice, &Error{"ask " + s.Provider, "there is no key",
			"roost auth set " + s.Provider + "  # or set " + p.keys[0]}
	case base == "" && p.free:
		return choice, &Error{
			What: "ask " + s.Provider,
			Why:  "no address is named",
			Try:  "roost config set providers." + s.Provider + ".base_url http://127.0.0.1:11434/v1  # or --base-url, or set " + p.base,
		}
	case s.Model == "" && s.Provider == cloud.Azure:
		return choice, &Error{"ask azure", "no model is named",
			"roost run --provider azure --model DEPLOYMENT  # the name that you deployed a model under"}
	case s.Model == "" && p.model == "":
		return choice, &Error{"ask " + s.Provider, "no model is named",
			"roost models --provider " + s.Provider + "  # and name one with --model"}
	}
	options := wire.Options{APIKey: key, BaseURL: base, Model: s.Model, Effort: s.Effort}
	if p.cloud == nil {
		choice.LLM = p.open(options)
		return choice, nil
	}
	model, secrets, err := p.cloud(c, options)
	for _, secret := range secrets {
		if secret != "" {
			known = append(known, redact.Known{Kind: s.Provider + "-key", Value: secret})
		}
	}
	return Provider{LLM: model, Masks: redact.New(known...)}, err
}

// leaksKey reports whether a key is OpenRouter's and the address is another server's: many servers are configured as
// openai-compatible, and the key of one must not be sent to another.
func leaksKey(key, base string) bool {
	if !strings.HasPrefix(key, "sk-or-") {
		return false
	}
	u, err := url.Parse(base)
	return err != nil || u.Hostname() != "openrouter.ai" && !strings.HasSuffix(u.Hostname(), ".openrouter.ai")
}

// CheckAddress refuses a provider's address that is none, or that holds a name or password.
func CheckAddress(base string) error {
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("want an address such as http://127.0.0.1:11434/v1")
	}
	return wire.CheckAddress(base)
}

// checkAddress refuses an address with a user's name or password in it: the journal would hold it, and views of the
// task would show it.
func checkAddress(base, where string) error {
	if err := wire.CheckAddress(base); err != nil {
		return &Error{"use the provider's address", err.Error(),
			"name the address without it (" + where + "), and keep the key apart: roost auth set PROVIDER"}
	}
	return nil
}
