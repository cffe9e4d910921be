package cli

import (
	"strconv"
	"time"

	"github.com/roost-dev/roost/service"
)

// restarts are the settings for restarts by a server that was started here. They were checked when they were read.
func (a *App) restarts() (service.Restart, error) {
	s, err := a.settings()
	if err != nil {
		return service.Restart{}, err
	}
	out := service.Restart{
		Off: s.text("restart.enabled") == "false", OwnOnly: s.text("restart.cross_context") == "false", Workspace: a.Dir,
	}
	if text := s.text("restart.max_attempts"); text != "" {
		if out.MaxAttempts, _ = strconv.Atoi(text); out.MaxAttempts == 0 {
			out.MaxAttempts = -1
		}
	}
	if text := s.text("restart.load_timeout"); text != "" {
		out.LoadTimeout, _ = time.ParseDuration(text)
	}
	return out, nil
}
