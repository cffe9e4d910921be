package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/local"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/view"
)

// far is a client of the server that the person named; nil when none is named, and this
// process is to do it itself.
func (a *App) far() (*client.Client, error) {
	base, err := a.global(a.flags.server, "server")
	if base == "" || err != nil {
		return nil, err
	}
	token := a.Env("ROOST_TOKEN")
	if token == "" && near(base) {
		if token, err = a.ownToken(); err != nil {
			return nil, err
		}
	}
	c, err := client.New(base, client.Options{Token: token, Lost: a.lost})
	if err != nil {
		return nil, usage("use the server "+base, err.Error(), "roost --server http://127.0.0.1:7878 ...  # as roost serve prints it")
	}
	return c, nil
}

// near reports whether a server's address leads to this machine: no other one is given
// the token of this machine's root.
func near(base string) bool {
	if strings.HasPrefix(base, "unix:") {
		return true
	}
	u, err := url.Parse(base)
	return err == nil && loopback(u.Hostname())
}

// ownToken is the token in this machine's root; "" when there is none, or it may not be read: the
// server then answers that it wants one.
func (a *App) ownToken() (string, error) {
	root, err := a.global(a.flags.root, "root")
	if err == nil && root == "" {
		root, err = a.home("XDG_DATA_HOME", ".local/share")
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

// lost reports a stream that broke. While a run is followed, the display prints it between the
// run's events: a question may be on the screen.
func (a *App) lost(err error, again time.Duration) {
	if again < time.Second || err == nil {
		return
	}
	text := fmt.Sprintf("the connection to the server is lost (%s); again in %s", err, display.Duration(again))
	if a.screen != nil && !a.flags.json && !a.flags.quiet { // it was made before anything was followed
		a.screen.Lines([]view.Line{{Text: display.OneLine(text)}})
		return
	}
	a.say("%s", text)
}

// withClient gives a client of the server that the person named, or else of a server in
// this very process, with its engine: so a command that speaks to a server is written
// once. The engine is nil when the server is another process.
func (a *App) withClient(ctx context.Context, f func(*client.Client, *engine.Engine) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
		return f(c, nil)
	}
	return a.withEngine(ctx, func(s *local.Roost) error {
		c, end, err := a.local(s)
		if err != nil {
			return err
		}
		defer end()
		return f(c, s.Engine())
	})
}

// connect gives a client of the server that the user named, or else of one in this process: a
// command is written once. Settings that the engine refuses stop only what needs the engine: reading
// works without it.
func (a *App) connect(ctx context.Context, f func(*client.Client) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
		return f(c)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	settings, refused := a.engineConfig()
	if refused == nil {
		s.Start(engine.Options{Config: settings}, true)
	}
	c, stop, err := a.local(s)
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

// remotely does something on the server that the person named; done is false when none
// is, and this process is to do it.
func (a *App) remotely(f func(*client.Client) error) (done bool, err error) {
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
	if a.flags.server == "" {
		return nil
	}
	return usage(cmd.CommandPath()+" --server "+a.flags.server, "the command is for this machine only",
		cmd.CommandPath()+" without --server")
}

// onlyHere marks a command and its subcommands as ones that no server can run.
func (a *App) onlyHere(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentPreRunE = a.alone
	return cmd
}

// problemExits are the exit codes of server problems whose status alone would give another
// exit code than the same failure in this process.
var problemExits = map[string]int{
	"ambiguous_id":       ExitUsage,
	"workspace_missing":  ExitConfig,
	"workspace_moved":    ExitConfig,
	"workspace_refused":  ExitConfig,
	"unknown_profile":    ExitConfig,
	"configuration":      ExitConfig,
	"provider_auth":      ExitConfig,
	"provider_error":     ExitProvider,
	"too_short":          ExitFailed,
	"rolled_back":        ExitFailed,
	"restoring":          ExitFailed,
	"damaged":            ExitDamaged,
	"store_unavailable":  ExitConfig,
	"root_unusable":      ExitConfig,
	"input_needed":       ExitInput,
	"untrusted_settings": ExitInput,
	"other_model":        ExitInput,
	"untrusted_locks":    ExitConfig,
	"draining":           ExitBusy,
	"queue_full":         ExitBusy,
	"stopping":           ExitBusy,
}

// failureOfProblem is the failure that a server's problem document stands for.
func failureOfProblem(p *client.Problem) *Failure {
	why, settings := against(p)
	f := &Failure{Exit: ExitFailed, Code: p.Code, Status: p.Status, What: p.Title, Why: why, Task: p.Task, Retryable: p.Retryable}
	switch exit, own := problemExits[p.Code]; {
	case own:
		f.Exit = exit
	case settings:
		f.Exit = ExitConfig
	case p.Status == http.StatusUnauthorized:
		f.Exit, f.Try = ExitConfig, "ROOST_TOKEN=... roost ...  # the token is in server/token below the server's root"
	case p.Status == http.StatusForbidden && (p.Code == "denied" || strings.Contains(p.Code, "approval")):
		f.Exit = ExitDenied
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		f.Exit = ExitNotFound
	case p.Status == http.StatusConflict, p.Status == http.StatusPreconditionFailed, p.Status == http.StatusTooManyRequests:
		f.Exit = ExitBusy
	case p.Status == http.StatusBadRequest, p.Status == http.StatusUnprocessableEntity, p.Status == http.StatusRequestEntityTooLarge:
		f.Exit = ExitUsage
	}
	const list = "roost list"
	if p.Code == "task_not_found" && f.Why != "" && !slices.ContainsFunc(p.Suggestions, func(s string) bool {
		return strings.HasPrefix(s, "roost ") && s != list
	}) {
		f.What, f.Try = "find the task", list
	}
	for _, s := range p.Suggestions {
		switch method, _, _ := strings.Cut(s, " "); method {
		case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
			continue // for programs that speak HTTP
		}
		if s == f.Try {
			continue
		}
		if _, ours := flagAdvice[s]; f.Try == "" && (ours || strings.HasPrefix(s, "roost ")) {
			f.Try = s
		} else {
			f.Suggestions = append(f.Suggestions, s)
		}
	}
	if p.Code == "permission_denied" && len(p.Suggestions) > 0 {
		f.Try, f.Suggestions = p.Suggestions[0], p.Suggestions[1:]
	}
	if p.Code == "unknown_mode" {
		f.What, f.Try = "use the mode", "roost modes"
	}
	if f.Try == "" && p.Code == "ambiguous_id" && len(f.Suggestions) > 0 {
		f.What, f.Try = "find the task", "roost show "+f.Suggestions[0]
	}
	if f.Try == "" && slices.ContainsFunc(p.Errors, func(e client.Wrong) bool { return e.Parameter == "/workspace" }) {
		f.Try = nameFolder
	}
	if p.Code == "internal" && len(p.Suggestions) > 0 {
		f.Try, f.Suggestions = p.Suggestions[0], nil
	} else if what, why, ok := divide(f.Why); ok && p.Code == "internal" {
		f.What, f.Why = what, why
	}
	if f.Try == "" {
		f.Try = nothing
	}
	if p.Code == "configuration" {
		if what, why, ok := strings.Cut(f.Why, ": "); ok { // as the engine words it here
			f.What, f.Why = what, why
		}
	}
	return f
}

// failureOfServer is the failure of a client's error; nil when it is none.
func failureOfServer(err error) *Failure {
	var p *client.Problem
	var un *client.Unreachable
	switch {
	case errors.As(err, &p):
		return failureOfProblem(p)
	case errors.As(err, &un):
		return &Failure{Exit: ExitServer, Code: "server_unreachable", What: "reach the server " + un.Base, Why: un.Err.Error(),
			Retryable: true,
			Try:       "roost serve  # or leave --server and ROOST_SERVER out"}
	}
	return nil
}
