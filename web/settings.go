package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
)

// settingsData is the data of the page of settings.
type settingsData struct {
	api.UserSettings
	Groups    []settingGroup
	Models    api.Models
	Modes     []api.Mode
	Servers   []api.MCPServer
	Storages  []api.SourceState
	Workspace string       // whose own settings files are shown, too; "" = none
	Trouble   *api.Problem // the problem of the workspace
}

// settingGroup are settings that belong together.
type settingGroup struct {
	Name  string
	Items []settingRow
}

// ID returns the id of the group's element.
func (g settingGroup) ID() string { return strings.ReplaceAll(strings.ToLower(g.Name), " ", "-") }

// settingRow is a setting, and whether this request may change it.
type settingRow struct {
	api.UserSetting
	May  bool
	File bool // the user's file holds the setting, so it can be removed from there
}

// Text returns the value, one element a line.
func (r settingRow) Text() string { return strings.Join(r.Value, "\n") }

// Given returns the value that the user gave, one element a line; "" for the default.
func (r settingRow) Given() string {
	if r.Origin == "default" {
		return ""
	}
	return clean(r.Text())
}

// groupsOfSettings are the groups of the page with their settings; the last group has all other settings.
var groupsOfSettings = []struct {
	name string
	keys []string
}{
	{"New tasks", []string{"provider", "model", "profile", "base_url", "mode", "effort", "max_tokens", "condense_at", "stale"}},
	{"Approvals", []string{"approve", "allow", "deny", "allow_tools", "ask_tools", "deny_tools"}},
	{"Limits", []string{"max_turns", "max_cost", "max_cost_task", "max_cost_day", "ask_after_requests", "ask_after_cost", "idle_timeout",
		"total_timeout"}},
	{"Everything else", nil},
}

// settings shows the user's settings.
func (w *Web) settings(a *asked) (*page, error) {
	all, err := w.opt.Reader.UserSettings(a.Context())
	if err != nil {
		return nil, err
	}
	d := settingsData{UserSettings: all, Models: w.opt.Reader.Models(""), Workspace: redact.Unmarked(a.URL.Query().Get("workspace"))}
	where := map[string]int{}
	for i, g := range groupsOfSettings {
		d.Groups = append(d.Groups, settingGroup{Name: g.name})
		for _, key := range g.keys {
			where[key] = i
		}
	}
	for _, item := range all.Items {
		i, known := where[item.Key]
		if !known {
			i = len(d.Groups) - 1
		}
		secret := slices.Equal(item.Value, []string{"***"}) || strings.HasSuffix(item.Key, ".api_key")
		d.Groups[i].Items = append(d.Groups[i].Items, settingRow{
			UserSetting: item,
			May:         (all.Here || item.Plain) && !secret,
			File:        strings.HasPrefix(item.Origin, all.Path+":"),
		})
	}
	if d.Modes, err = w.opt.Reader.Modes(a.Context(), d.Workspace); err == nil {
		d.Servers, err = w.opt.Reader.MCPServers(a.Context(), d.Workspace)
	}
	if err != nil {
		d.Trouble, d.Workspace = w.opt.Reader.Problem(a.Context(), err, ""), ""
	}
	d.Storages, err = w.opt.Reader.Sources(a.Context())
	return &page{Kind: "settings", Title: "Settings", Body: settingsPage(d)}, err
}

// setup is the data of the first steps: a provider, its key, a model, a test request.
type setup struct {
	api.UserSettings
	Chosen   *api.ProviderState // nil: the user has not chosen one yet
	Models   []api.Model        // of the chosen one
	Done     bool               // a model can answer tasks
	Storages []api.SourceState  // of other tools
}

// Link returns the address that chooses a provider.
func (s setup) Link(name string) string { return address("/start", url.Values{"provider": {name}}) }

// Left names the storages of other tools with the number of their tasks.
func (s setup) Left() string {
	return strings.Join(api.Each(s.Storages, func(one api.SourceState) string {
		return clean(one.Name) + " (" + api.Plural(one.Tasks, "task") + ")"
	}), ", ")
}

// exampleAddress is where a model server listens unless its user changes that.
const exampleAddress = "http://127.0.0.1:11434/v1"

// start leads through the first steps.
func (w *Web) start(a *asked) (*page, error) {
	s, err := w.setup(a)
	return &page{Kind: "start", Title: "Set up a model", Body: startPage(s)}, err
}

func (w *Web) setup(a *asked) (*setup, error) {
	all, err := w.opt.Reader.UserSettings(a.Context())
	if err != nil {
		return nil, err
	}
	s := &setup{UserSettings: all, Done: all.Problem == ""}
	for _, one := range all.Providers {
		if one.Name == a.URL.Query().Get("provider") {
			s.Chosen = &one
			s.Models = w.opt.Reader.Models(one.Name).Items
		}
	}
	sources, err := w.opt.Reader.Sources(a.Context())
	s.Storages = api.Some(sources, func(one api.SourceState) (api.SourceState, bool) {
		return one, one.Name != api.OwnSource && err == nil
	})
	return s, nil
}
