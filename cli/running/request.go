package running

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/money"
)

// newTaskOf is the document that asks for a new task.
func newTaskOf(r engine.Request) api.NewTask {
	return api.NewTask{Workspace: r.Workspace, Settings: apiSettings(r), Message: wordsOf(r), Origin: r.Origin, OneRun: oneRunOf(r)}
}

// newRunOf is the document that asks for another run of a task.
func newRunOf(r engine.Request) api.NewRun {
	return api.NewRun{
		Message: wordsOf(r), Yes: r.Yes, Workspace: r.Workspace, Settings: apiSettings(r),
		OwnSettings: r.OwnSettings, TrustSettings: r.TrustSettings, OneRun: oneRunOf(r),
	}
}

func oneRunOf(r engine.Request) api.OneRun {
	return api.OneRun{
		Unattended: !r.Interactive, NoCheckpoints: r.NoCheckpoints, StandIn: r.StandIn, MaxCostDay: apiAmount(r.MaxDayMicros),
	}
}

// apiAmount is an amount of a request; nil when it was not given.
func apiAmount(micros int64) *money.USD {
	if micros == 0 {
		return nil
	}
	return new(money.USD(max(micros, 0)))
}

// apiSettings are the settings of a request as the API has them.
func apiSettings(r engine.Request) api.Settings {
	return api.Settings{
		Mode: r.Mode, Provider: r.Provider, Model: r.Model, BaseURL: r.BaseURL, Profile: r.Profile,
		Effort: r.Effort, MaxTokens: apiCount(r.MaxTokens), CondenseAt: apiCount(r.Condense), Stale: r.Stale,
		Limits: apiLimits(r.Limits), Approve: r.Approve, Allow: r.Allow, Deny: r.Deny,
		AllowTools: r.AllowTools, AskTools: r.AskTools, DenyTools: r.DenyTools,
	}
}

// apiCount is a number of a request. To remove a limit, the engine takes a negative number and the API 0; nil when it
// was not given.
func apiCount(n int) *int {
	if n == 0 {
		return nil
	}
	return new(max(n, 0))
}

func wordsOf(r engine.Request) *api.Words {
	if r.Text == "" && len(r.Images) == 0 {
		return nil
	}
	return &api.Words{Text: r.Text, Images: r.Images}
}

// apiLimits are limits as the API has them: 0 removes a limit, where the engine takes a negative number.
func apiLimits(l *api.RunLimits) *api.Limits {
	if l == nil {
		return nil
	}
	span := func(ms int64) *string {
		if ms == 0 {
			return nil
		}
		return new((time.Duration(max(ms, 0)) * time.Millisecond).String())
	}
	return &api.Limits{
		MaxTurns: apiCount(l.MaxTurns), MaxCost: apiAmount(l.MaxCostMicros), MaxCostTask: apiAmount(l.MaxTaskMicros),
		AskAfterRequests: apiCount(l.AskRequests), AskAfterCost: apiAmount(l.AskCostMicros),
		IdleTimeout: span(l.IdleTimeoutMS), TotalTimeout: span(l.TotalTimeoutMS),
	}
}

// detach starts a run at a server and prints its task's id. The task is then on the
// server's disk, and continues without this process.
func (a *commands) detach(ctx context.Context, c *client.Client, req engine.Request) error {
	path, body := "/v1/tasks", any(newTaskOf(req))
	if req.Task != "" {
		path, body = app.PathOf(req.Task, "runs"), newRunOf(req)
	}
	var raw json.RawMessage
	head, err := c.Ask(ctx, client.Request{Method: http.MethodPost, Path: path, Body: body}, &raw)
	if err != nil {
		return err
	}
	var run api.Run
	if rid := head.Get("Roost-Run-Id"); req.Task == "" && rid != "" { // a new task's answer is the task
		raw = nil
		if _, err := c.Do(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(rid), nil, nil, &raw); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(raw, &run); err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.Println(strings.TrimRight(string(raw), "\n"))
	}
	if err := a.Println("task " + run.Task + "\nrun " + run.ID + " " + run.State); err != nil {
		return err
	}
	a.Say("follow it: roost attach %s  # its end: roost wait %s", run.Task, run.Task)
	return nil
}
