package engine

import (
	"fmt"
	"time"
)

// ConfigFromEnv reads the variables that providers' own tools use.
func ConfigFromEnv(getenv func(string) string) Config {
	c := Config{Keys: map[string]string{}, BaseURLs: map[string]string{}}
	if key := getenv("ANTHROPIC_API_KEY"); key != "" {
		c.Keys["anthropic"] = key
		c.Provider, c.Model = "anthropic", defaultModel
	}
	if base := getenv("ANTHROPIC_BASE_URL"); base != "" {
		c.BaseURLs["anthropic"] = base
	}
	c.Zone = zone(time.Now())
	return c
}

// defaultModel is asked when neither the user nor the task names one.
const defaultModel = "claude-sonnet-5-5"

// zone names the user's time zone with its offset, as Roo writes it.
func zone(now time.Time) string {
	name, seconds := now.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%s, UTC%c%d:%02d", name, sign, seconds/3600, seconds%3600/60)
}
