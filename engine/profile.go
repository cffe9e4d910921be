package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Profile is a provider with a model and settings, under a name. Empty members say
// nothing: the provider's default or what a task has holds.
type Profile struct {
	Provider, Model, BaseURL string
	Effort                   string
	MaxTokens                int
	Mode, Approve            string
	Allow, Deny              []string
	Limits                   task.Limits
	Key                      string // its own; "" = the provider's
	Foreign                  string // what another tool calls it, "" = by the same name
}

// UnknownProfileError: a task of another tool names a profile that is not known
// here, and nobody said who is to be asked instead. Whose model answers, and who
// pays, is not guessed.
type UnknownProfileError struct {
	Task, Source, Profile string
}

func (e *UnknownProfileError) Error() string {
	return fmt.Sprintf("the task names the profile %q, and no profile here goes by that name", e.Profile)
}

// Providers are the names of the providers that ask a model somewhere, in order.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// KeyVariables are the variables that may hold a provider's key; the first one that
// is set counts.
func KeyVariables(provider string) []string { return slices.Clone(providers[provider].keys) }

// DefaultModel is the model that is asked when nobody names one, "" when one has to
// be named.
func DefaultModel(provider string) string { return providers[provider].model }

// withProfile puts a profile's settings over those of a task.
func (e *Engine) withProfile(s task.Settings, name string) (task.Settings, error) {
	p, is := e.opt.Config.Profiles[name]
	if !is {
		why := "there is no such profile"
		if len(e.opt.Config.Profiles) > 0 {
			why += "; there are " + strings.Join(slices.Sorted(maps.Keys(e.opt.Config.Profiles)), ", ")
		}
		return s, &ConfigError{What: "use the profile " + name, Why: why, Try: "roost config set profiles." + name + ".provider anthropic"}
	}
	if p.Provider == "" {
		return s, &ConfigError{What: "use the profile " + name, Why: "it names no provider", Try: "roost config set profiles." + name + ".provider anthropic"}
	}
	s.Profile = name
	if p.Foreign != "" {
		s.Profile = p.Foreign
	}
	s.Provider, s.Model, s.BaseURL, s.Effort, s.MaxTokens, s.Account = p.Provider, p.Model, p.BaseURL, p.Effort, p.MaxTokens, ""
	if p.Key != "" {
		s.Account = name
	}
	for _, m := range []struct {
		to   *string
		text string
	}{{&s.Mode, p.Mode}, {&s.Approve, p.Approve}} {
		if m.text != "" {
			*m.to = m.text
		}
	}
	if p.Allow != nil {
		s.Allow = p.Allow
	}
	if p.Deny != nil {
		s.Deny = p.Deny
	}
	s.Limits = limits(s.Limits, p.Limits)
	return s, nil
}

// named is the profile that another tool calls by a name.
func (e *Engine) named(foreign string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(e.opt.Config.Profiles)) {
		if e.opt.Config.Profiles[name].Foreign == foreign {
			return name, true
		}
	}
	p, is := e.opt.Config.Profiles[foreign]
	return foreign, is && p.Foreign == ""
}

// sticky finds the profile of a task of another tool that never ran here, and that
// names one. What the caller names wins; then a profile of that name; then what was
// remembered for the source, with a word.
func (e *Engine) sticky(ref store.Ref, has task.Settings, r Request) (Request, []string, error) {
	if has.Provider != "" || has.Profile == "" || r.Provider != "" || r.Profile != "" {
		return r, nil, nil
	}
	name, known := e.named(has.Profile)
	var told []string
	if !known {
		name = cmp.Or(r.StandIn, e.opt.Config.SourceProfiles[ref.Source])
		if name == "" && r.Fallback && e.asNew(&r) {
			told = append(told, fmt.Sprintf("the task's profile %q is not known here: %s is asked in its place, as for new tasks", has.Profile, cmp.Or(r.Profile, r.Provider)))
			if r.keepName = r.Profile != ""; r.keepName && r.Mode == "" {
				r.Mode = has.Mode
			}
			return r, told, nil
		}
		if name == "" {
			return r, nil, &UnknownProfileError{Task: ref.ID, Source: ref.Source, Profile: has.Profile}
		}
		told = append(told, fmt.Sprintf("the task's profile %q is not known here: %s is asked in its place, as you said for %s", has.Profile, name, ref.Source))
		if _, is := e.opt.Config.Profiles[name]; !is {
			if _, is := providers[name]; is || name == "script" {
				r.Provider = name
				return r, told, nil
			}
		}
	}
	r.Profile, r.keepName = name, !known
	if r.Mode == "" {
		r.Mode = has.Mode // its own, not the profile's
	}
	return r, told, nil
}

// asNew lets a request ask whom a new task would ask; false when that is nobody.
func (e *Engine) asNew(r *Request) bool {
	var f Request
	if e.opt.Config.Defaults != nil {
		f, _ = e.opt.Config.Defaults(f)
	}
	if f.Profile == "" && f.Provider == "" {
		f.Provider, f.Model = e.opt.Config.Provider, cmp.Or(f.Model, e.opt.Config.Model)
	}
	r.Profile, r.Provider, r.Model, r.BaseURL = f.Profile, f.Provider, cmp.Or(r.Model, f.Model), f.BaseURL
	return r.Profile != "" || r.Provider != ""
}

// Knows reports whether a task that names this profile is answered by a profile of that name.
func (e *Engine) Knows(profile string) bool {
	_, known := e.named(profile)
	return known
}
