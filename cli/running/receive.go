package running

import (
	"context"
	"errors"
	"strings"

	"github.com/roost-dev/roost/engine"
)

// receive lets a task continue that is not proven to be this root's own. If the task holds
// open work or settings that would take effect, it first asks the user, on a terminal.
func (a *commands) receive(ctx context.Context, e *engine.Engine, req engine.Request) (engine.Request, error) {
	_, err := e.Receive(ctx, req)
	var held *engine.UntrustedError
	if !errors.As(err, &held) || !a.Interactive() {
		return req, err
	}
	a.Say("%s", held.Error())
	a.Say("  Continuing ends all that is open in it, and uses your own settings. If the root is yours, stop and")
	a.Say("  run: roost root trust")
	answer, err := a.Prompter().Read(ctx, "  go on with it? (y, or anything else) > ")
	if err != nil {
		return req, err
	}
	if strings.TrimSpace(answer) != "y" {
		return req, held
	}
	req.OwnSettings = true
	_, err = e.Receive(ctx, req)
	return req, err
}
