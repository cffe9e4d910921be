package cli

import (
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/redact"
)

// local is a client of a server in this very process; end must be called.
func (a *App) local(s *local.Roost) (c *client.Client, end func(), err error) {
	var secrets []redact.Known
	if c, err := a.engineConfig(); err == nil { // export refuses to mask without them
		secrets = secretsOf(c)
	}
	return s.Client(secrets...)
}
