package engine

import (
	"fmt"
	"time"
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
	for _, name := range preferred {
		if c.Keys[name] != "" {
			c.Provider, c.Model = name, providers[name].model
			break
		}
	}
	c.Zone = zone(time.Now())
	return c
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
