package running

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// askProfile asks which provider replaces a profile that is not known here, and
// remembers it for the source.
func (a *commands) askProfile(ctx context.Context, unknown *setup.UnknownProfileError, req engine.Request) (engine.Request, error) {
	c, err := a.EngineConfig()
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
	a.Say("%s", strings.TrimRight(lines, "\n"))
	for {
		line, err := a.Prompter().Read(ctx, "  a number (q stops) > ")
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
		a.Say("  one of the numbers, please; Enter alone is not an answer")
	}
}

func (a *commands) chosen(unknown *setup.UnknownProfileError, req engine.Request, name string) engine.Request {
	key := config.SourceProfiles + "." + unknown.Source
	if err := a.ConfigSet(key, []string{name}); err != nil {
		a.Warn("the answer is not remembered: " + err.Error())
	} else {
		a.Say("remembered; roost config set %s NAME changes it", key)
	}
	a.Loaded = nil
	req.StandIn = name
	return req
}

// askModel asks whether another tool's task continues with another model than it was made with.
func (a *commands) askModel(ctx context.Context, other *setup.OtherModelError) error {
	a.Say("? %s", other.Error())
	answer, err := a.Prompter().Read(ctx, "  go on with "+other.Model+"? (y, or anything else) > ")
	if err != nil {
		return errors.Join(other, err)
	}
	if strings.TrimSpace(answer) != "y" {
		return other
	}
	return nil
}
