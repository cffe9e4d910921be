package config

import (
	"regexp"
	"strings"

	"github.com/roost-dev/roost/api"
)

// profileKeys are what [profiles.NAME] may hold. What a setting of its own has by
// the same name means the same.
var profileKeys = []Key{
	{Name: "provider", Doc: "which provider answers"},
	{Name: "model"},
	{Name: "base_url", Doc: "the provider's address"},
	{Name: "api_key", Doc: "a key of its own; better kept by roost auth set --profile", Secret: true},
	{Name: "effort", check: oneOf(api.Efforts...)},
	{Name: "max_tokens", check: count},
	{Name: "mode"},
	{Name: "approve", check: oneOf("ask", "read", "edits", "all")},
	{Name: "allow", List: true},
	{Name: "deny", List: true},
	{Name: "max_turns", check: count},
	{Name: "max_cost", check: amount},
	{Name: "idle_timeout", check: span},
	{Name: "total_timeout", check: span},
	{Name: "roo_name", Doc: "what Roo Code calls the profile, where that is another name"},
}

// profileName is what a profile, or a source, may be called: a name that TOML takes
// without quotes.
var profileName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// ProfileFields are the names of what a profile may hold, in order.
func ProfileFields() []string {
	out := make([]string, len(profileKeys))
	for i, k := range profileKeys {
		out[i] = k.Name
	}
	return out
}

// ValidProfile reports whether a profile may go by a name.
func ValidProfile(name string) bool { return profileName.MatchString(name) }

// SourceProfiles is the table of what was remembered for the sources of tasks whose
// own profile is not known.
const SourceProfiles = "source_profiles"

// ModeProfiles is the table of the profiles that answer in a mode.
const ModeProfiles = "mode_profiles"

var modeSlug = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)

// profileField takes the name of a setting in a profile apart.
func profileField(name string) (profile, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "profiles.")
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 || !ValidProfile(rest[:i]) {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// inProfile is the key of a setting in a profile, or of the profile of a source or of a
// mode.
func inProfile(name string) (Key, bool) {
	if source, ok := strings.CutPrefix(name, SourceProfiles+"."); ok && ValidProfile(source) {
		return Key{Name: name, Doc: "the profile of its tasks whose own is not known"}, true
	}
	if slug, ok := strings.CutPrefix(name, ModeProfiles+"."); ok && modeSlug.MatchString(slug) {
		return Key{Name: name, Doc: "the profile that answers in that mode, for tasks without a provider of their own"}, true
	}
	_, field, ok := profileField(name)
	if !ok {
		return Key{}, false
	}
	for _, k := range profileKeys {
		if k.Name == field {
			k.Name = name
			return k, true
		}
	}
	return Key{}, false
}

// Profiles are the profiles of a file in its order, each with what it sets, by the
// field's name.
func Profiles(values map[string]Setting, f *File) (names []string, fields map[string]map[string]Setting) {
	fields = map[string]map[string]Setting{}
	for _, e := range f.Entries {
		profile, field, ok := profileField(e.Key)
		s, known := values[e.Key]
		if !ok || !known {
			continue
		}
		if fields[profile] == nil {
			names, fields[profile] = append(names, profile), map[string]Setting{}
		}
		fields[profile][field] = s
	}
	return names, fields
}
