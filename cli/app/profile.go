package app

import (
	"strconv"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/money"
)

// profiles are the profiles of the settings file, each with its own key if it has one.
func (a *App) profiles(s *Settings, kept *Secrets) map[string]setup.Profile {
	names, fields := config.Profiles(s.Values, s.File)
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
		p.Model = a.ModelName(p.Provider, text("model"))
		p.MaxTokens, _ = strconv.Atoi(text("max_tokens"))
		p.Key, _ = ProfileKey(name, kept, set)
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

// millis rounds up to milliseconds: a small limit must not become 0, which means none.
func millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
