package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
)

// Items returns all settings with their origins: first those of Keys, in their order, then those of profiles, hooks
// and the like, in the order of the file.
func (p Place) Items(s *Settings) []api.Setting {
	items := api.Each(Keys, func(k Key) api.Setting { return p.Item(s.Values[k.Name]) })
	for _, e := range s.File.Entries {
		if v, ok := s.Values[e.Key]; ok && !slices.ContainsFunc(Keys, func(k Key) bool { return k.Name == e.Key }) {
			items = append(items, p.Item(v))
		}
	}
	return items
}

// Item returns a setting in the form for display: a secret without its value, and a setting that is not set with the
// value that applies.
func (p Place) Item(s Setting) api.Setting {
	i := api.Setting{Key: s.Key.Name, Origin: s.Origin}
	switch flag := p.Flags[s.Key.Name]; {
	case flag != "":
		i.Value, i.Origin = flag, "--"+s.Key.Flag
	case !s.Set():
		if text := p.fallback(s.Key.Name); text != "" {
			i.Value = text
		}
	case s.Key.Secret:
		i.Value = "***"
	case s.Value.IsList:
		i.Value = s.Value.List
	default:
		i.Value = s.Value.Text
	}
	return i
}

// fallback returns the value that applies to a key that is not set, "" when there is none.
func (p Place) fallback(key string) string {
	var dir string
	switch key {
	case "root":
		dir, _ = p.Home("XDG_DATA_HOME", ".local/share")
	case "cache":
		dir, _ = p.Home("XDG_CACHE_HOME", ".cache")
	}
	return cmp.Or(dir, map[string]string{"sources": "auto", "approve": "ask", "mode": mode.Default}[key])
}

// ProviderState returns the visible state of a provider's key, or of credentials that a cloud's own programs keep.
func (p Place) ProviderState(provider string, kept *Secrets, s *Settings, c setup.Config) api.KeyState {
	key, origin := p.ProviderKey(provider, kept, s)
	if origin == "" {
		login, err := c.CloudLogin(provider)
		if err != nil {
			return api.KeyState{Provider: provider, Problem: err.Error()}
		}
		if login.Origin != "" {
			return api.KeyState{Provider: provider, Set: true, Origin: login.Origin, Ends: login.Ends}
		}
	}
	return api.KeyState{
		Provider: provider,
		Set:      key != "" || origin == RingOrigin,
		Origin:   origin,
		Ends:     Ends(key),
		Page:     setup.KeyPage(provider),
	}
}

// ProfileStates returns the visible states of the keys of those profiles that have one.
func ProfileStates(kept *Secrets, s *Settings) (list []api.KeyState) {
	names, fields := Profiles(s.Values, s.File)
	for _, e := range kept.File.Entries {
		if name, ok := strings.CutPrefix(e.Key, "profiles."); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if key, origin := ProfileKey(name, kept, fields[name]); key != "" {
			list = append(list, api.KeyState{
				Profile:  name,
				Provider: fields[name]["provider"].Value.Text,
				Set:      true,
				Origin:   origin,
				Ends:     Ends(key),
			})
		}
	}
	return list
}

// Models returns the models of a provider that Roost knows; "" = of all providers.
func Models(provider string) api.Models {
	out := api.Models{Date: catalogue.Date(), Items: []api.Model{}}
	for _, m := range catalogue.Offers() {
		if provider == "" || provider == m.Provider {
			out.Items = append(out.Items, m)
		}
	}
	return out
}

// Server returns an MCP server in the form for display.
func Server(s mcp.Server) api.MCPServer {
	return api.MCPServer{
		Name:     s.Name,
		State:    strings.ReplaceAll(string(s.State), " ", "_"),
		Problem:  s.Problem,
		Scope:    string(s.Scope),
		File:     s.File,
		Kind:     string(s.Kind),
		Line:     s.Line(),
		Env:      names(s.Env),
		Headers:  names(s.Headers),
		Always:   append([]string{}, s.Always...),
		Disabled: append([]string{}, s.Off...),
		Timeout:  s.Timeout.Seconds(),
	}
}

func names(m map[string]string) []string { return append([]string{}, slices.Sorted(maps.Keys(m))...) }
