// Package hosting holds the commands that serve tasks to other programs and maintain a root: serve, open, devices, server,
// team, migrate, doctor and root. A server that other machines could reach without TLS does not start; a check changes
// nothing unless the user asks for a repair.
package hosting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/view"
)

func (a *commands) serverCommand() *cobra.Command {
	var now, off, wait bool
	look := func(ctx context.Context, c *client.Client, _ []string) error {
		return a.serverStatus(ctx, c, http.MethodGet, "/v1/server")
	}
	status := help.Command("server status", a.onServer("look at the server", look))
	stop := help.Command("server stop", func(cmd *cobra.Command, _ []string) error {
		return a.OnServer("stop the server", func(c *client.Client) error { return a.serverStop(cmd.Context(), c, now) })
	})
	stop.Flags().BoolVar(&now, "now", false, "interrupt and save the working runs instead of finishing them")
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
	return help.Group("server", status, stop, drain)
}

// serverStatus makes a request that is answered with the server's status, and prints it.
func (a *commands) serverStatus(ctx context.Context, c *client.Client, method, path string) error {
	return app.Exchange(ctx, a.App, c, client.Request{Method: method, Path: path}, func(s api.Server) {
		a.Println(serverText(s, a.Now()))
	})
}

// serverText describes a server's status in lines.
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
	if s.LAN != nil {
		lines = append(lines, "local network: "+s.LAN.URL+"  (roost devices add)")
	}
	if n := s.Notifications; n != nil {
		text := fmt.Sprintf("notifications: %d sent, %d failed", n.Sent, n.Failed)
		if n.Problem != "" {
			text += "; " + n.Problem
		}
		lines = append(lines, text)
	}
	for _, g := range s.Group {
		text := "server of the group: " + g.URL
		if g.Host != "" {
			text += " on " + g.Host
		}
		for i, f := range g.Folders {
			text += map[bool]string{true: ", shares ", false: ", "}[i == 0] + f.Name + " at " + f.Path
		}
		if len(g.ClonesFrom) > 0 {
			text += ", clones from " + strings.Join(g.ClonesFrom, ", ")
		}
		lines = append(lines, text)
	}
	lines = api.Each(lines, display.OneLine)
	return strings.Join(lines, "\n")
}

// serverLook is the pause between two calls of look in until.
const serverLook = 100 * time.Millisecond

func (a *commands) serverStop(ctx context.Context, c *client.Client, now bool) error {
	if err := c.Do(ctx, http.MethodPost, "/v1/server/stop", nil, api.Stop{Now: now}, nil); err != nil {
		return err
	}
	return a.until(ctx, "stop", "wait for the server's end", func(ctx context.Context) (bool, error) {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := c.Do(one, http.MethodGet, "/healthz", nil, nil, nil)
		var gone *client.Unreachable
		if errors.As(err, &gone) || err != nil && one.Err() != nil { // no server answers there
			return true, a.Outcome(map[string]bool{"stopped": true}, "stopped")
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
	if err := c.Do(ctx, http.MethodPost, "/v1/server/drain", nil, nil, nil); err != nil {
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

// until calls look until a server has carried out the request. A signal ends only the waiting.
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
		sleep.For(stop.Ctx, serverLook)
	}
}

func (a *commands) doctorCommand() *cobra.Command {
	var n api.NewCheckup
	cmd := help.Command("doctor", func(cmd *cobra.Command, args []string) error {
		n.Tasks, n.Folder = args, a.Dir
		return a.Connect(cmd.Context(), func(c *client.Client) error {
			ctx, shown := a.Watched(cmd.Context())
			found, err := client.Post[api.Checkup](ctx, c, "/v1/checkups", n)
			shown()
			if err != nil {
				return err
			}
			err = app.Show(a.App, found, a.showReport)
			if err != nil && !app.ReaderGone(err) || len(found.Damaged) == 0 {
				return err
			}
			return damage(found, n)
		})
	})
	cmd.Flags().BoolVar(&n.Repair, "repair", false, "repair what can be repaired, and keep what is replaced")
	cmd.Flags().BoolVar(&n.Rebuild, "rebuild", false, "build derived data again where it is missing or wrong")
	return cmd
}

// damage returns the failure of a check that found damage.
func damage(r api.Checkup, n api.NewCheckup) *failure.Failure {
	f := failure.New(failure.ExitDamaged, "damaged", damagedTasks(r),
		"nothing was changed; what can be read is shown and can be continued",
		"roost doctor --repair  # or roost show ID")
	switch {
	case n.Repair:
		f.Why = "this cannot be repaired and was left as it is; what can be read is shown and can be continued"
		f.Try = "roost show ID"
	case n.Rebuild:
		f.Why = "derived data was rebuilt; nothing else was changed"
	}
	return f
}

// unpairedOnly counts the tasks whose only damage is calls without results. Lists, which read no messages, do not
// show them as damaged.
func unpairedOnly(r api.Checkup) int {
	only := map[string]bool{}
	for _, f := range r.Damaged {
		known, seen := only[f.Path]
		only[f.Path] = f.ID != "" && f.Kind == api.FindingUnpaired && (known || !seen)
	}
	n := 0
	for _, yes := range only {
		if yes {
			n++
		}
	}
	return min(n, r.Tasks-r.OK)
}

func damagedTasks(r api.Checkup) string {
	unpaired := unpairedOnly(r)
	n := r.Tasks - r.OK - unpaired
	verb := map[bool]string{true: "is", false: "are"}[n == 1]
	text := fmt.Sprintf("%d of %s %s damaged", n, api.Plural(r.Tasks, "task"), verb)
	other := 0
	for _, f := range r.Damaged {
		if f.ID == "" {
			other++
		}
	}
	if unpaired > 0 {
		text += fmt.Sprintf(", %d lack%s results of tool calls", unpaired, map[bool]string{true: "s"}[unpaired == 1])
	}
	switch {
	case n == 0 && other == 0 && unpaired > 0:
		return text
	case n == 0 && other == 0: // of tasks that are not among those that were counted
		return fmt.Sprintf("%d deleted or hidden tasks or rows of the catalogue are damaged", len(r.Damaged))
	case n == 0 && unpaired == 0:
		return fmt.Sprintf("%d of the files that all tasks share are damaged", other)
	case other > 0:
		return fmt.Sprintf("%s, and %d of the files that all tasks share", text, other)
	}
	return text
}

func (a *commands) showReport(r api.Checkup) {
	print := func(s view.Style, text string) { a.Styled(s, display.OneLineIndented(text)) }
	for _, d := range r.Damaged {
		print(view.Bad, where(d)+": "+d.Problem)
		print(view.Dim, "  "+d.Path)
		if text := fate(d); text != "" {
			print(view.Dim, text)
		}
	}
	for _, list := range []struct {
		word  string
		style view.Style
		found []api.Finding
	}{{"derived", view.Dim, r.Stale}, {"left over", view.Dim, r.Leftovers}, {"not trusted", view.Asked, r.Untrusted},
		{"repaired", view.Good, r.Repaired}} {
		for _, d := range list.found {
			line := list.word + ": " + where(d) + ": " + d.Problem
			if d.Recovered != "" {
				line += "; " + d.Recovered
			}
			if d.Copy != "" {
				line += "; as it was: " + d.Copy
			}
			print(list.style, line)
		}
	}
	a.Flush()
	unpaired := unpairedOnly(r)
	text := fmt.Sprintf("%s checked, %d whole, %d damaged", api.Plural(r.Tasks, "task"), r.OK, r.Tasks-r.OK-unpaired)
	if unpaired > 0 {
		text += fmt.Sprintf(", %d without results of some tool calls", unpaired)
	}
	if n := len(r.Untrusted); n > 0 {
		text += fmt.Sprintf(", %d not trusted (roost root trust, if the root is yours)", n)
	}
	if n := len(r.Leftovers); n > 0 {
		text += fmt.Sprintf("; %d left over", n)
	}
	if n := len(r.Stale); n > 0 {
		text += fmt.Sprintf("; %d to rebuild (--rebuild)", n)
	}
	a.Say("%s", text)
}

// where names the task and the file of a finding.
func where(f api.Finding) string {
	if f.ID == "" {
		return f.File
	}
	if inside, err := filepath.Rel(f.Path, f.File); err == nil && filepath.IsAbs(f.File) && filepath.IsLocal(inside) {
		if inside == "." { // the next line shows the folder
			return f.ID
		}
		return f.ID + "  " + inside
	}
	return f.ID + "  " + f.File
}

// fate describes what was recovered and what was lost, as far as that is known.
func fate(d api.Finding) string {
	text := ""
	if d.Recovered != "" {
		text += "; recovered: " + d.Recovered
	}
	if d.Lost != "" {
		text += "; lost: " + d.Lost
	}
	return strings.Replace(text, "; ", "  ", 1)
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands returns the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.doctorCommand(),
		a.OnlyHere(a.rootCommand()),
		a.OnlyHere(a.migrateCommand()),
		a.OnlyHere(a.serveCommand()),
		a.openCommand(),
		a.devicesCommand(),
		a.serverCommand(),
		a.teamCommand(),
	}
}

func (a *commands) rootCommand() *cobra.Command {
	var dry bool
	trust := help.Command("root trust", func(cmd *cobra.Command, _ []string) error { return a.trustRoot(cmd.Context(), dry) })
	trust.Flags().BoolVar(&dry, "dry-run", false, "show which tasks would continue, and change nothing")
	return help.Group("root", trust)
}

func (a *commands) trustRoot(ctx context.Context, dry bool) error {
	s, err := a.Open()
	if err != nil {
		return err
	}
	all := s.Service()
	defer all.Close()
	watched, shown := a.Watched(ctx)
	r, err := all.TrustRoot(watched, dry)
	shown()
	if err != nil {
		return err
	}
	err = app.Show(a.App, r, func(r api.TrustedRoot) { a.showTrust(r, dry) })
	failed := 0
	for _, t := range r.Tasks {
		if t.Problem != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		err = failure.New(failure.ExitFailed, "trust_incomplete", "trust the root "+r.Root,
			fmt.Sprintf("%s could not be read or written", api.Plural(failed, "task")),
			"roost root trust  # again, when what is named above is mended")
	}
	return err
}

func (a *commands) showTrust(r api.TrustedRoot, dry bool) {
	for _, t := range r.Tasks {
		paint, text := view.Plain, t.ID+": "+strings.Join(t.Holds, "; ")
		if t.Problem != "" {
			paint, text = view.Bad, t.ID+": "+t.Problem
		}
		a.Styled(paint, display.OneLineIndented(text))
	}
	a.Flush()
	if dry {
		a.Say("%s would be trusted; nothing was changed", api.Plural(len(r.Tasks), "task"))
		return
	}
	a.Say("the root %s is trusted here: %s of other places count%s, and %s may continue",
		r.Root, api.Plural(r.Keys, "key"), map[bool]string{true: "s"}[r.Keys == 1], api.Plural(len(r.Tasks), "more task"))
}
