package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/money"
)

// profiles are the profiles of the settings file, each with its own key if it has one.
func (a *App) profiles(s *settings, kept *secrets) map[string]setup.Profile {
	names, fields := config.Profiles(s.values, s.file)
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]setup.Profile, len(names))
	for _, name := range names {
		set := fields[name]
		text := func(field string) string { return set[field].Value.Text }
		p := setup.Profile{
			Provider: text("provider"), BaseURL: text("base_url"), Effort: text("effort"), Mode: text("mode"), Approve: text("approve"),
			Allow: set["allow"].Value.List, Deny: set["deny"].Value.List, Foreign: text("roo_name"), Limits: limitsOf(text),
		}
		p.Model = a.modelName(p.Provider, text("model"))
		p.MaxTokens, _ = strconv.Atoi(text("max_tokens"))
		p.Key, _ = profileKey(name, kept, set)
		out[name] = p
	}
	return out
}

// limitsOf reads the limits of a profile; they were checked with the file. A 0 takes
// a limit away.
func limitsOf(text func(string) string) (l api.RunLimits) {
	number := func(field string) int64 {
		n, err := strconv.ParseInt(text(field), 10, 64)
		if err == nil && n == 0 {
			return -1
		}
		return n
	}
	span := func(field string) int64 {
		d, err := time.ParseDuration(text(field))
		if err == nil && d == 0 {
			return -1
		}
		return millis(d)
	}
	l.MaxTurns = int(number("max_turns"))
	if usd, err := money.Parse(text("max_cost")); err == nil {
		if l.MaxCostMicros = int64(usd); usd == 0 {
			l.MaxCostMicros = -1
		}
	}
	l.IdleTimeoutMS, l.TotalTimeoutMS = span("idle_timeout"), span("total_timeout")
	return l
}

// sourceProfiles is what was remembered for sources.
func sourceProfiles(s *settings) map[string]string {
	var out map[string]string
	for name, v := range s.values {
		if source, ok := strings.CutPrefix(name, config.SourceProfiles+"."); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[source] = v.Value.Text
		}
	}
	return out
}

func (a *App) profileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	a.muted = true
	s, err := a.settings()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := config.Profiles(s.values, s.file)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// askProfile asks which provider replaces a profile that is not known here, and
// remembers it for the source.
func (a *App) askProfile(ctx context.Context, unknown *setup.UnknownProfileError, req engine.Request) (engine.Request, error) {
	c, err := a.engineConfig()
	if err != nil {
		return req, err
	}
	type choice struct{ name, text string }
	var choices []choice
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		choices = append(choices, choice{name, strings.TrimSpace("profile " + name + ": " + p.Provider + " " + p.Model)})
	}
	for _, name := range setup.Providers() {
		if model := setup.DefaultModel(name); c.Keys[name] != "" && model != "" && c.Profiles[name].Provider == "" {
			choices = append(choices, choice{name, name + " " + model})
		}
	}
	if len(choices) == 0 {
		return req, unknown
	}
	lines := fmt.Sprintf("? the task's profile %q is known only to its editor. "+
		"Which provider answers tasks of %s whose profile is not known here?\n",
		unknown.Profile, unknown.Source)
	for i, one := range choices {
		lines += fmt.Sprintf("  %d. %s\n", i+1, one.text)
	}
	a.say("%s", strings.TrimRight(lines, "\n"))
	for {
		line, err := a.prompter().Read(ctx, "  a number (q stops) > ")
		if err != nil {
			return req, errors.Join(unknown, err)
		}
		line = strings.TrimSpace(line)
		n, err := strconv.Atoi(line)
		for i, one := range choices {
			if err == nil && n == i+1 || line == one.name {
				return a.chosen(unknown, req, one.name), nil
			}
		}
		if line == "q" || line == "quit" {
			return req, unknown
		}
		a.say("  one of the numbers, please; Enter alone is not an answer")
	}
}

func (a *App) chosen(unknown *setup.UnknownProfileError, req engine.Request, name string) engine.Request {
	key := config.SourceProfiles + "." + unknown.Source
	if err := a.configSet(key, []string{name}); err != nil {
		a.warn("the answer is not remembered: " + err.Error())
	} else {
		a.say("remembered; roost config set %s NAME changes it", key)
	}
	a.loaded = nil
	req.StandIn = name
	return req
}

// askModel asks whether another tool's task continues with another model than it was made with.
func (a *App) askModel(ctx context.Context, other *setup.OtherModelError) error {
	a.say("? %s", other.Error())
	answer, err := a.prompter().Read(ctx, "  go on with "+other.Model+"? (y, or anything else) > ")
	if err != nil {
		return errors.Join(other, err)
	}
	if strings.TrimSpace(answer) != "y" {
		return other
	}
	return nil
}
