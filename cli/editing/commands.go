// Package editing holds the commands that change stored tasks without a model's turn, or take
// such a change back: rewind, fork, undo, checkpoints, trash, titles, tags, pins, condensing and
// imports. What cannot be undone asks first, and does nothing where no person can be asked.
package editing

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands are the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.renameCommand(),
		a.tagCommand(),
		a.pinCommand("pin", "pinned", true),
		a.pinCommand("unpin", "not pinned", false),
		a.deleteCommand(),
		a.trashCommand(),
		a.rewindCommand(),
		a.forkCommand(),
		a.undoCommand("undo"),
		a.undoCommand("redo"),
		a.condenseCommand(),
		a.checkpointCommand(),
		a.importCommand(),
	}
}

// runE is what cobra calls for a command.
type runE = func(*cobra.Command, []string) error

// connected makes a command's RunE of a function that needs a connection.
func (a *commands) connected(f func(ctx context.Context, c *client.Client, args []string) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		return a.Connect(cmd.Context(), func(c *client.Client) error { return f(cmd.Context(), c, args) })
	}
}

// posted changes a task and shows the result.
func posted[T any](ctx context.Context, a *commands, c *client.Client, id, what string, body any, show func(T) error) error {
	return app.Exchange(ctx, a.App, c, client.Request{Method: http.MethodPost, Path: app.PathOf(id, what), Body: body}, show)
}

// restoring is a request that puts files back.
type restoring struct {
	path string                          // the request's
	what string                          // what it does, for failures
	try  string                          // its command line
	ask  bool                            // the user decides, where there is a terminal
	body func(dry bool, plan string) any // the request's body: for a dry run, and then with its plan
}

// agreed sends a request that puts files back. On a terminal it first shows what a dry run would do and
// asks; the plan of that dry run makes sure that nothing else happens.
func agreed[T any](ctx context.Context, a *commands, c *client.Client, r restoring,
	files func(T) *api.RestoreResult) (done T, doc json.RawMessage, err error) {
	send := func(dry bool, plan string) (err error) {
		_, err = c.Ask(ctx, client.Request{Method: http.MethodPost, Path: r.path, Body: r.body(dry, plan)}, &doc)
		if err == nil {
			if err = json.Unmarshal(doc, &done); err != nil {
				err = fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
			}
		}
		return err
	}
	plan := ""
	if r.ask && a.Interactive() {
		if err = send(true, ""); err != nil {
			return done, doc, err
		}
		if would := files(done); would != nil && len(would.Files) > 0 {
			if err = a.agree(ctx, r.what, *would, r.try); err != nil {
				return done, doc, err
			}
			plan = would.Plan
		}
		var none T
		done = none
	}
	err = send(false, plan)
	return done, doc, err
}

// checkpointPath is the path of a checkpoint; the one before the newest change when none
// is named.
func checkpointPath(id, c, what string) string {
	if c == "" {
		c = "newest"
	}
	return app.PathOf(id, "checkpoints", url.PathEscape(c), what)
}
