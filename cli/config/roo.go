package config

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// RooProfile is a profile of Roo Code's exported settings, as one of ours.
type RooProfile struct {
	Name    string           // what it goes by here
	Roo     string           // what Roo calls it
	Values  map[string]Value // of [profiles.NAME]
	Key     string           // its key, "" when the file holds none
	Skipped string           // why it cannot be taken over; "" = it can
	Notes   []string         // what of it was left out
}

// RooExport is what is taken from such a file.
type RooExport struct {
	Profiles []RooProfile // in the file's order
	Current  string       // the profile in use, as Roo calls it
	Custom   []byte       // those modes, as a file of modes; nil when there are none

	ModeProfiles []RooModeProfile // which profile is used in which mode, in the file's order
}

// RooModeProfile is the profile that Roo uses in a mode.
type RooModeProfile struct {
	Mode    string // its slug
	Profile string // what it goes by here; "" when it cannot be taken over
	Roo     string // what Roo calls it; "" when the file does not hold it
}

// ErrNotRoo: the file holds no profiles of Roo Code.
var ErrNotRoo = errors.New("it is no settings file that Roo Code exported: it has no providerProfiles.apiConfigs")

// rooProvider names the settings of one of Roo's providers, and how Roost reaches it. Servers that speak chat
// completions have an address of their own.
type rooProvider struct {
	provider         string
	model, base, key string // members
	address          string // when base is not set
}

// rooPage has a line for each of Roo's providers: its name there, and then what rooProvider has; - is nothing.
//
//go:embed roo.txt
var rooPage string

var rooProviders = func() map[string]rooProvider {
	all := map[string]rooProvider{}
	for line := range strings.Lines(rooPage) {
		f := strings.Fields(line)
		for i := range f {
			f[i] = strings.TrimPrefix(f[i], "-")
		}
		all[f[0]] = rooProvider{f[1], f[2], f[3], f[4], f[5]}
	}
	return all
}()

// Roo reads a settings file that Roo Code exported. Nothing in it makes this fail
// but its not being one.
func Roo(data []byte) (RooExport, error) {
	var out RooExport
	data = []byte(strings.TrimPrefix(string(data), "\ufeff"))
	if !esjson.Valid(data) {
		return out, ErrNotRoo
	}
	profiles, _ := esjson.Get(data, "providerProfiles")
	configs, ok := esjson.Get(profiles, "apiConfigs")
	if !ok || esjson.TypeOf(configs) != esjson.TypeObject {
		return out, ErrNotRoo
	}
	out.Current, _ = esjson.GetString(profiles, "currentApiConfigName")
	taken, byID := map[string]bool{}, map[string]int{}
	for name, raw := range esjson.Members(configs) {
		p := rooProfile(name, raw)
		if id, ok := esjson.GetString(raw, "id"); ok && id != "" {
			byID[id] = len(out.Profiles)
		}
		if p.Skipped == "" {
			p.Name = free(slug(name), taken)
			if p.Name != name {
				p.Values["roo_name"] = Value{Text: name}
			}
		}
		out.Profiles = append(out.Profiles, p)
	}
	uses, _ := esjson.Get(profiles, "modeApiConfigs")
	if esjson.TypeOf(uses) == esjson.TypeObject {
		for slug, raw := range esjson.Members(uses) {
			id, _ := esjson.Unquote(raw)
			if !modeSlug.MatchString(slug) {
				continue
			}
			use := RooModeProfile{Mode: slug}
			if i, known := byID[id]; known {
				use.Profile, use.Roo = out.Profiles[i].Name, out.Profiles[i].Roo
			}
			out.ModeProfiles = append(out.ModeProfiles, use)
		}
	}
	global, _ := esjson.Get(data, "globalSettings")
	modes, _ := esjson.Get(global, "customModes")
	if esjson.TypeOf(modes) == esjson.TypeArray {
		out.Custom = append(append([]byte(`{"customModes":`), modes...), '}')
	}
	return out, nil
}

func rooProfile(name string, raw []byte) RooProfile {
	p := RooProfile{Roo: name, Values: map[string]Value{}}
	text := func(member string) string {
		s, _ := esjson.GetString(raw, member)
		return strings.TrimSpace(s)
	}
	provider := text("apiProvider")
	known, ok := rooProviders[provider]
	azure, _ := esjson.GetBool(raw, "openAiUseAzure")
	switch {
	case esjson.TypeOf(raw) != esjson.TypeObject:
		p.Skipped = "it is no object"
	case provider == "":
		p.Skipped = "it names no provider"
	case !ok:
		p.Skipped = fmt.Sprintf("its provider %s is not spoken here", strconv.Quote(provider))
	case provider == "openai" && azure:
		p.Skipped = "Azure's form of the protocol is not spoken here"
	}
	if p.Skipped != "" {
		return p
	}
	set := func(field, value string) {
		if value != "" {
			p.Values[field] = Value{Text: value}
		}
	}
	set("provider", known.provider)
	set("model", text(known.model))
	set("base_url", cmp.Or(text(known.base), known.address))
	p.Key = text(known.key)
	effort := text("reasoningEffort")
	if on, is := esjson.GetBool(raw, "enableReasoningEffort"); is && !on {
		effort = ""
	}
	if effort == "disable" {
		effort = "none"
	}
	if effort == "" || slices.Contains(api.Efforts, effort) {
		set("effort", effort)
	} else {
		p.Notes = append(p.Notes, "its reasoning effort "+strconv.Quote(effort)+" is not known here")
	}
	if n, ok := esjson.GetFloat(raw, "modelMaxTokens"); ok && n >= 1 && n < 1e9 {
		set("max_tokens", strconv.FormatInt(int64(n), 10))
	}
	for _, m := range []string{"modelTemperature", "openAiHeaders", "rateLimitSeconds", "openRouterSpecificProvider"} {
		if v, has := esjson.Get(raw, m); has && string(v) != "null" && string(v) != "0" && string(v) != "{}" && string(v) != `""` {
			p.Notes = append(p.Notes, m+" has no place here")
		}
	}
	return p
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// slug is a name that TOML takes without quotes.
func slug(name string) string {
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(name, "-"), "-"), "profile")
}

func free(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[out]; n++ {
		out = name + "-" + strconv.Itoa(n)
	}
	taken[out] = true
	return out
}
