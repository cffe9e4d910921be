package hosting

import (
	"strconv"
	"time"

	"github.com/roost-dev/roost/service"
)

// restarts are the settings for restarts by a server that was started here. They were checked when they were read.
func (a *commands) restarts() (service.Restart, error) {
	s, err := a.Settings()
	if err != nil {
		return service.Restart{}, err
	}
	out := service.Restart{
		Off: s.Text("restart.enabled") == "false", OwnOnly: s.Text("restart.cross_context") == "false", Workspace: a.Dir,
	}
	if text := s.Text("restart.max_attempts"); text != "" {
		if out.MaxAttempts, _ = strconv.Atoi(text); out.MaxAttempts == 0 {
			out.MaxAttempts = -1
		}
	}
	if text := s.Text("restart.load_timeout"); text != "" {
		out.LoadTimeout, _ = time.ParseDuration(text)
	}
	return out, nil
}
