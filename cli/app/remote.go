package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/view"
)

// far is a client of the server that the person named; nil when none is named, and this
// process is to do it itself.
func (a *App) far() (*client.Client, error) {
	base, err := a.Global(a.Flags.Server, "server")
	if base == "" || err != nil {
		return nil, err
	}
	token := a.Env("ROOST_TOKEN")
	if token == "" && Near(base) {
		if token, err = a.ownToken(); err != nil {
			return nil, err
		}
	}
	c, err := client.New(base, client.Options{Token: token, Lost: a.Lost})
	if err != nil {
		return nil, failure.Usage("use the server "+base, err.Error(), "roost --server http://127.0.0.1:7878 ...  # as roost serve prints it")
	}
	return c, nil
}

// Near reports whether a server's address leads to this machine: no other one is given
// the token of this machine's root.
func Near(base string) bool {
	if strings.HasPrefix(base, "unix:") {
		return true
	}
	u, err := url.Parse(base)
	return err == nil && Loopback(u.Hostname())
}

// ownToken is the token in this machine's root; "" when there is none, or it may not be read: the
// server then answers that it wants one.
func (a *App) ownToken() (string, error) {
	root, err := a.Global(a.Flags.Root, "root")
	if err == nil && root == "" {
		root, err = a.Home("XDG_DATA_HOME", ".local/share")
	}
	if err != nil {
		return "", err
	}
	data, err := inputfile.Read(server.TokenFile(root))
	if err != nil {
		return "", nil //nolint:nilerr // see above
	}
	return strings.TrimSpace(string(data)), nil
}

// Lost reports a stream that broke. While a run is followed, the display prints it between the
// run's events: a question may be on the screen.
func (a *App) Lost(err error, again time.Duration) {
	if again < time.Second || err == nil {
		return
	}
	text := fmt.Sprintf("the connection to the server is lost (%s); again in %s", err, display.Duration(again))
	if a.Screen != nil && !a.Flags.JSON && !a.Flags.Quiet { // it was made before anything was followed
		a.Screen.Lines([]view.Line{{Text: display.OneLine(text)}})
		return
	}
	a.Say("%s", text)
}

// WithClient gives a client of the server that the person named, or else of a server in
// this very process, with its engine: so a command that speaks to a server is written
// once. The engine is nil when the server is another process.
func (a *App) WithClient(ctx context.Context, f func(*client.Client, *engine.Engine) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
		return f(c, nil)
	}
	return a.WithEngine(ctx, func(s *local.Roost) error {
		c, end, err := a.Local(s)
		if err != nil {
			return err
		}
		defer end()
		return f(c, s.Engine())
	})
}

// Connect gives a client of the server that the user named, or else of one in this process: a
// command is written once. Settings that the engine refuses stop only what needs the engine: reading
// works without it.
func (a *App) Connect(ctx context.Context, f func(*client.Client) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
		return f(c)
	}
	s, err := a.Open()
	if err != nil {
		return err
	}
	settings, refused := a.EngineConfig()
	if refused == nil {
		s.Start(engine.Options{Config: settings}, true)
	}
	c, stop, err := a.Local(s)
	if err == nil {
		err = f(c)
		stop()
	}
	var p *client.Problem
	if refused != nil && errors.As(err, &p) && p.Code == "read_only" {
		err = refused
	}
	return errors.Join(err, s.Close(ctx))
}

// Remotely does something on the server that the person named; done is false when none
// is, and this process is to do it.
func (a *App) Remotely(f func(*client.Client) error) (done bool, err error) {
	c, err := a.far()
	if err != nil || c == nil {
		return err != nil, err
	}
	defer c.Close()
	return true, f(c)
}

// alone refuses --server for a command that concerns this machine only. It ignores a server
// from the environment or the settings: that one is for the commands that can use it.
func (a *App) alone(cmd *cobra.Command, _ []string) error {
	if a.Flags.Server == "" {
		return nil
	}
	return failure.Usage(cmd.CommandPath()+" --server "+a.Flags.Server, "the command is for this machine only",
		cmd.CommandPath()+" without --server")
}

// OnlyHere marks a command and its subcommands as ones that no server can run.
func (a *App) OnlyHere(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentPreRunE = a.alone
	return cmd
}

// Loopback reports whether only this machine reaches a host. A name may resolve to
// any address; only localhost is known.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
