package hosting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/service"
)

func (a *commands) serverCommand() *cobra.Command {
	parent := help.Command("server", failure.OnlySubcommands)
	var now, off, wait bool
	status := help.Command("server status", func(cmd *cobra.Command, _ []string) error {
		return a.OnServer("look at the server", func(c *client.Client) error {
			return a.serverStatus(cmd.Context(), c, http.MethodGet, "/v1/server")
		})
	})
	stop := help.Command("server stop", func(cmd *cobra.Command, _ []string) error {
		return a.OnServer("stop the server", func(c *client.Client) error { return a.serverStop(cmd.Context(), c, now) })
	})
	stop.Flags().BoolVar(&now, "now", false, "interrupt what works, saved, instead of finishing it")
	drain := help.Command("server drain", func(cmd *cobra.Command, _ []string) error {
		if off && wait {
			return failure.Usage("roost server drain --off --wait", "--off has nothing to wait for", "roost server drain --off")
		}
		return a.OnServer("drain the server", func(c *client.Client) error {
			return a.serverDrain(cmd.Context(), c, off, wait)
		})
	})
	drain.Flags().BoolVar(&off, "off", false, "start runs again, the queued ones first")
	drain.Flags().BoolVar(&wait, "wait", false, "wait until no run works any more")
	parent.AddCommand(status, stop, drain)
	return parent
}

// serverStatus makes a request that is answered with the server's status, and prints it.
func (a *commands) serverStatus(ctx context.Context, c *client.Client, method, path string) error {
	return app.Exchange(ctx, a.App, c, client.Request{Method: method, Path: path}, func(s api.Server) error {
		return a.Println(serverText(s, a.Now()))
	})
}

// serverText is a server's status in lines.
func serverText(s api.Server, now time.Time) string {
	where := cmp.Or(s.URL, "a process with a socket")
	since := s.StartedAt
	if at, err := time.Parse(time.RFC3339, s.StartedAt); err == nil {
		since = at.Local().Format("2006-01-02 15:04:05") + ", for " + display.Duration(now.Sub(at).Round(time.Second))
	}
	lines := []string{
		fmt.Sprintf("%s  process %d, version %s", where, s.PID, s.Version),
		"since " + since,
		fmt.Sprintf("runs: %d at work of at most %d, %d waiting for a person, %d queued", s.Runs.Running, s.Limits.MaxRuns,
			s.Runs.Waiting, s.Runs.Queued),
		fmt.Sprintf("streams: %d", s.Streams),
	}
	switch {
	case s.Stopping:
		lines = append(lines, "it is stopping")
	case s.Draining:
		lines = append(lines, "it starts no more runs; roost server drain --off takes that back")
	}
	if s.Recovery == "going_on" || s.Recovery == "failed" {
		lines = append(lines, "what an earlier server left: "+strings.ReplaceAll(s.Recovery, "_", " "))
	}
	for i, line := range lines {
		lines[i] = display.OneLine(line)
	}
	return strings.Join(lines, "\n")
}

// serverLook is how often the command asks whether the server has finished what it was asked for.
const serverLook = 100 * time.Millisecond

func (a *commands) serverStop(ctx context.Context, c *client.Client, now bool) error {
	if _, err := c.Do(ctx, http.MethodPost, "/v1/server/stop", nil, api.Stop{Now: now}, nil); err != nil {
		return err
	}
	return a.until(ctx, "stop", "wait for the server's end", func(ctx context.Context) (bool, error) {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := c.Do(one, http.MethodGet, "/healthz", nil, nil, nil)
		var gone *client.Unreachable
		if errors.As(err, &gone) || err != nil && one.Err() != nil { // no server answers there
			return true, a.Println("stopped")
		}
		return false, err
	})
}

func (a *commands) serverDrain(ctx context.Context, c *client.Client, off, wait bool) error {
	if off {
		return a.serverStatus(ctx, c, http.MethodDelete, "/v1/server/drain")
	}
	if !wait {
		return a.serverStatus(ctx, c, http.MethodPost, "/v1/server/drain")
	}
	if _, err := c.Do(ctx, http.MethodPost, "/v1/server/drain", nil, nil, nil); err != nil {
		return err
	}
	return a.until(ctx, "drain", "wait until no run works", func(ctx context.Context) (bool, error) {
		s, err := client.Get[api.Server](ctx, c, "/v1/server", nil)
		if err != nil || s.Runs.Running > 0 {
			return false, err
		}
		return true, a.serverStatus(ctx, c, http.MethodGet, "/v1/server")
	})
}

// until looks again and again whether a server has finished what it was asked for. A signal ends the waiting alone.
func (a *commands) until(ctx context.Context, verb, what string, look func(context.Context) (done bool, err error)) error {
	stop := a.StopperWith(ctx, func() { fmt.Fprintln(a.Err, "\nthe server continues to "+verb) })
	defer stop.Undo()
	for {
		done, err := look(stop.Ctx)
		if stop.Exit() != 0 {
			return failure.New(stop.Exit(), "stopped", what,
				"a signal ended the waiting; the server continues to "+verb, "roost server status")
		}
		if done || err != nil {
			return err
		}
		select {
		case <-stop.Ctx.Done():
		case <-time.After(serverLook):
		}
	}
}

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
