package setup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Profile is a provider with a model and settings, under a name. Empty members leave the provider's default, or what
// a task has.
type Profile struct {
	Provider  string
	Model     string
	BaseURL   string
	Effort    string
	MaxTokens int
	Mode      string
	Approve   string
	Allow     []string
	Deny      []string
	Limits    api.RunLimits
	Key       string // its own; "" = the provider's
	Foreign   string // its name in another tool; "" = the same
}

// UnknownProfileError: a task of another tool names a profile that is unknown here, and the user has named none to use
// instead. Roost does not guess which model answers and which account pays.
type UnknownProfileError struct {
	Task, Source, Profile string
}

func (e *UnknownProfileError) Error() string {
	return fmt.Sprintf("the task names the profile %q, and no profile here goes by that name", e.Profile)
}

// Providers are the names of the providers that ask a model over a network, in order.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// KeyVariables are the variables that may hold a provider's key; the first one that is set counts.
func KeyVariables(provider string) []string { return slices.Clone(providers[provider].keys) }

// DefaultModel is the model that a run uses when none is named; "" when one has to be named.
func DefaultModel(provider string) string { return providers[provider].model }

// applyProfile puts a profile's settings over those of a task.
func (r Resolver) applyProfile(s task.Settings, name string) (task.Settings, error) {
	p, is := r.Config.Profiles[name]
	if !is {
		why := "there is no such profile"
		if len(r.Config.Profiles) > 0 {
			why += "; there are " + strings.Join(slices.Sorted(maps.Keys(r.Config.Profiles)), ", ")
		}
		return s, &Error{What: "use the profile " + name, Why: why, Try: "roost config set profiles." + name + ".provider anthropic"}
	}
	if p.Provider == "" {
		return s, &Error{What: "use the profile " + name, Why: "it names no provider",
			Try: "roost config set profiles." + name + ".provider anthropic"}
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
	s.Limits = replaceLimits(s.Limits, p.Limits)
	return s, nil
}

// localProfile is the profile here that another tool calls by the given name.
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
	if c.Mode == "" {
		c.Mode = has.Mode // its own, not the profile's
	}
	return c, notes, nil
}

// useDefaultProvider names in the choice what a new task would ask; false when that is nothing.
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

// HasProfile reports whether a profile here answers a task of another tool that names this profile.
func (c Config) HasProfile(foreign string) bool {
	_, known := c.localProfile(foreign)
	return known
}
