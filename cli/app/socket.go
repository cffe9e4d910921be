package app

import (
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/redact"
)

// Local is a client of a server in this very process; end must be called.
func (a *App) Local(s *local.Roost) (c *client.Client, end func(), err error) {
	var secrets []redact.Known
	if c, err := a.EngineConfig(); err == nil { // export refuses to mask without them
		secrets = SecretsOf(c)
	}
	return s.Client(secrets...)
}

// SecretsOf are the keys that exports for readers mask.
func SecretsOf(c setup.Config) (known []redact.Known) {
	for name, key := range c.Keys {
		known = append(known, redact.Known{Kind: name + "-key", Value: key})
	}
	return known
}
