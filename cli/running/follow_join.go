package running

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/peer"
)

// joinTries is how often join tries to reach a run whose owner is just changing.
const joinTries = 20

// resume continues a task: here, or where another process works on it.
func (a *commands) resume(cmd *cobra.Command, r *app.RunFlags, s *local.Roost, req engine.Request) error {
	joined, err := a.join(cmd.Context(), s, req)
	if joined || err != nil {
		return err
	}
	if req, err = a.receive(cmd.Context(), s.Engine(), req); err == nil {
		err = a.resumeHere(cmd.Context(), r, s, req)
	}
	if report.CauseOf(err).Code == report.CauseBusy { // another process was faster
		if joined, err := a.join(cmd.Context(), s, req); joined {
			return err
		}
	}
	return err
}

// join continues a task that another process works on: it sends the words there, and
// follows the run here. joined is false when no other process works on the task, or it
// cannot be reached: then the error names the process that owns the task.
//
// join runs before the setup of a run in this process: another process's run may have what
// this one lacks, for example a key.
func (a *commands) join(ctx context.Context, s *local.Roost, req engine.Request) (joined bool, err error) {
	all := s.Service()
	defer all.Close()
	t, err := all.FindLatest(ctx, req.Task)
	if err != nil {
		return false, nil //nolint:nilerr // who starts the run finds it, too
	}
	held, alive := t.Holder()
	if !alive || held.Address == "" {
		return false, nil
	}
	conn, err := peer.Dial(ctx, held.Address)
	if err != nil {
		return false, nil //nolint:nilerr // it is as good as none; see above
	}
	if err := conn.Close(); err != nil {
		return false, fmt.Errorf("reach the process that works on task %s: %w", t.ID(), err)
	}
	if !a.Flags.JSON {
		a.Say("%s works on task %s; this follows it, and Ctrl-C only stops following", held.Who, t.ID())
	}
	if asksMore(req) {
		a.Warn("mode, model, limits and approvals of a run that works already stay as they are")
	}
	c, end, err := a.Local(s)
	if err != nil {
		return false, err
	}
	defer end()
	return true, a.follows(ctx, c, s.Engine(), t.ID(), req)
}

// asksMore reports whether the request is for another run than the one at work.
func asksMore(r engine.Request) bool {
	return r.Mode != "" || r.Provider != "" || r.Model != "" || r.Profile != "" || r.Approve != "" || r.Limits != nil
}

// follows sends the words of a request, if it has any, and follows the run that gets
// them, or else the one that works on the task.
func (a *commands) follows(ctx context.Context, c *client.Client, e *engine.Engine, id string, req engine.Request) error {
	w := watched{task: id, ask: req.Interactive}
	if strings.TrimSpace(req.Text) == "" && len(req.Images) == 0 {
		r, err := newestRun(ctx, c, id)
		if err != nil {
			return err
		}
		w.fresh = true // what led to the run may be of the same millisecond
		if w.run, w.after = r.ID, "0"; r.StartedAt != nil {
			w.since = *r.StartedAt
		}
		return a.watchOn(ctx, c, w)
	}
	from, err := c.Mark(ctx, id)
	if err != nil {
		return err
	}
	var sent api.Sent
	send := client.Request{
		Method: http.MethodPost,
		Path:   app.PathOf(id, "messages"),
		Body:   api.Message{Text: req.Text, Images: req.Images},
		Key:    uuid.NewString(),
	}
	for try := 1; ; try++ {
		_, err = c.Ask(ctx, send, &sent) // the same key each time: it is taken once
		var p *client.Problem
		if !errors.As(err, &p) || !p.Retryable || try == joinTries {
			break
		}
		if err := waitFor(ctx, 100*time.Millisecond); err != nil { // it is just coming or going
			return err
		}
	}
	if err != nil {
		return err
	}
	w.run, w.after = sent.Run, from
	w.here = sent.Delivered == "started" && runsHere(e) // the other run has just ended
	return a.watchOn(ctx, c, w)
}
