package engine

import (
	"fmt"
	"time"

	"github.com/roost-dev/roost/task"
)

// ConfigFromEnv reads the variables that providers' own tools use.
func ConfigFromEnv(getenv func(string) string) Config {
	c := Config{Keys: map[string]string{}, BaseURLs: map[string]string{}}
	for name, p := range providers {
		for _, v := range p.keys {
			if key := getenv(v); key != "" {
				c.Keys[name] = key
				break
			}
		}
		if base := getenv(p.base); base != "" {
			c.BaseURLs[name] = base
		}
	}
	c.Prefer()
	c.Zone = zone(time.Now())
	return c
}

// Prefer names who is asked by new tasks, if nobody is named yet: the first provider
// that there is a key for.
func (c *Config) Prefer() {
	if c.Provider != "" {
		return
	}
	for _, name := range preferred {
		if c.Keys[name] != "" || c.LateKeys[name] != nil {
			c.Provider, c.Model = name, providers[name].model
			return
		}
	}
}

// late gets the key that a task needs and that nobody has yet; "" when there is none
// to get.
func (c *Config) late(s task.Settings) (string, error) {
	get := c.LateKeys[s.Provider]
	if get == nil || s.Account != "" || c.Keys[s.Provider] != "" {
		return "", nil
	}
	key, err := get()
	if err != nil {
		return "", &ConfigError{What: "ask " + s.Provider, Why: "there is no key: " + err.Error(), Try: "roost auth set " + s.Provider + "  # or set " + providers[s.Provider].keys[0]}
	}
	return key, nil
}

// zone names the user's time zone with its offset, as Roo writes it.
func zone(now time.Time) string {
	name, seconds := now.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%s, UTC%c%d:%02d", name, sign, seconds/3600, seconds%3600/60)
}
