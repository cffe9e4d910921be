package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// posted does something to a task of a server.
func posted[T any](ctx context.Context, a *App, c *client.Client, id, what string, body any, show func(T) error) error {
	return exchange(ctx, a, c, client.Request{Method: http.MethodPost, Path: pathOf(id, what), Body: body}, show)
}

// farRewind takes the histories of a server's task back, and its files with them when
// they are named. f is nil when they stay.
func (a *App) farRewind(ctx context.Context, c *client.Client, id string, o store.RewindOptions, f *withFiles) error {
	body := report.NewRewind{To: o.To, KeepTarget: o.Keep, Edit: o.Edit, Delete: o.Remove, DryRun: o.DryRun}
	if f == nil {
		return posted(ctx, a, c, id, "rewinds", body, func(r report.Rewound) error { return a.tellRewind(r.Rewind) })
	}
	body.Files, body.OnConflict = true, f.conflict
	try := "roost rewind " + shellWord(id) + " --files"
	if err := a.farAgree(ctx, c, pathOf(id, "rewinds"), "rewind task "+id, try, o.DryRun || f.yes, func(dry bool) any {
		plan := body
		plan.DryRun = dry
		return plan
	}, func(doc json.RawMessage) (engine.RestoreResult, error) {
		var r report.Rewound
		err := json.Unmarshal(doc, &r)
		if r.Restore == nil {
			return engine.RestoreResult{}, err
		}
		return *r.Restore, err
	}); err != nil {
		return err
	}
	var doc json.RawMessage
	if _, err := c.Ask(ctx, client.Request{Method: http.MethodPost, Path: pathOf(id, "rewinds"), Body: body}, &doc); err != nil {
		return err
	}
	var r report.Rewound
	if err := json.Unmarshal(doc, &r); err != nil {
		return err
	}
	files := engine.RestoreResult{}
	if r.Restore != nil {
		files = *r.Restore
	}
	if a.flags.json {
		return errors.Join(a.printRaw(doc), restoreFailure(files, "keep"))
	}
	return errors.Join(a.tellRewindFiles(r.Rewind, files), restoreFailure(files, "keep"))
}

// farAgree shows what would become of files, and asks, where a person is there to be
// asked. told: it was said already that it is wanted.
func (a *App) farAgree(ctx context.Context, c *client.Client, path, what, try string, told bool, body func(dry bool) any, read func(json.RawMessage) (engine.RestoreResult, error)) error {
	if told || !a.interactive() {
		return nil
	}
	var doc json.RawMessage
	if _, err := c.Do(ctx, http.MethodPost, path, nil, body(true), &doc); err != nil {
		return err
	}
	r, err := read(doc)
	if err != nil || len(r.Files) == 0 {
		return err
	}
	return a.agree(ctx, what, r, try)
}

// farUndo takes back what was last done to a server's task, or does it again.
func (a *App) farUndo(cmd *cobra.Command, c *client.Client, id string, o store.UndoOptions) error {
	did := "took back"
	switch {
	case o.DryRun && o.Redo:
		did = "would do again"
	case o.DryRun:
		did = "would take back"
	case o.Redo:
		did = "did again"
	}
	return posted(cmd.Context(), a, c, id, cmd.Name(), report.NewUndo{Expect: o.Only, DryRun: o.DryRun}, func(u report.Undone) error {
		deed := u.Undone
		if o.Redo {
			deed = u.Redone
		}
		if deed == nil {
			deed = &store.Deed{}
		}
		return errors.Join(a.tellUndo(did, *deed, u.Deeds, o), a.tellKept(u.Restore))
	})
}

// farDeeds lists what can be taken back on a server.
func (a *App) farDeeds(ctx context.Context, c *client.Client, ids []string, limit string) error {
	if len(ids) == 0 {
		return documentOf(ctx, a, c, "/v1/undo", url.Values{"limit": {limit}}, func(p report.Page[store.Deeds]) error { return a.showDeeds(p.Items) })
	}
	var d store.Deeds
	if _, err := c.Do(ctx, http.MethodGet, pathOf(ids[0], "undo"), nil, nil, &d); err != nil {
		return err
	}
	if a.flags.json {
		return encode(a.Out, report.PageOf([]store.Deeds{d}, ""), false)
	}
	return a.showDeeds([]store.Deeds{d})
}

// farFork makes a new task on a server.
func (a *App) farFork(ctx context.Context, c *client.Client, id string, o store.ForkOptions, r runFlags) error {
	body := report.NewFork{At: o.At, Branch: o.Branch, Title: o.Title, Mode: r.mode, Provider: r.provider, Model: a.modelName(r.provider, r.model), BaseURL: r.baseURL, DryRun: o.DryRun}
	if r.dir != "" {
		body.Workspace = a.abs(r.dir)
	}
	return posted(ctx, a, c, id, "forks", body, a.tellFork)
}

// farCondense has a server summarise a task's older history.
func (a *App) farCondense(ctx context.Context, c *client.Client, req engine.Request, keep string, dry bool) error {
	body := report.NewCondense{Keep: keep, Workspace: req.Workspace, Provider: req.Provider, Model: req.Model, BaseURL: req.BaseURL, Profile: req.Profile, DryRun: dry}
	return posted(ctx, a, c, req.Task, "condense", body, func(out report.Condensed) error { return a.tellCondensed(out) })
}

// farCheckpoints lists the checkpoints of a server's task.
func (a *App) farCheckpoints(ctx context.Context, c *client.Client, id string) error {
	return documentOf(ctx, a, c, pathOf(id, "checkpoints"), nil, a.printCheckpoints)
}

// farSave saves a checkpoint of a server's task.
func (a *App) farSave(ctx context.Context, c *client.Client, id string) error {
	return posted(ctx, a, c, id, "checkpoints", nil, func(s report.SavedCheckpoint) error {
		if !s.Saved || s.Checkpoint == nil {
			a.say("nothing was saved: the files are as the newest checkpoint says")
			return nil
		}
		return a.println("saved " + a.checkpointText(*s.Checkpoint))
	})
}

// checkpointPath is the path of a checkpoint; the one before the newest change when none
// is named.
func checkpointPath(id, c, what string) string {
	if c == "" {
		c = "newest"
	}
	return pathOf(id, "checkpoints", url.PathEscape(c), what)
}

// farDiff compares checkpoints of a server's task.
func (a *App) farDiff(ctx context.Context, c *client.Client, id string, o engine.DiffOptions) error {
	q := url.Values{}
	set(q, "to", o.To)
	set(q, "path", strings.Join(o.Paths, "\n"))
	if !o.Patch {
		q.Set("stat", "true")
	}
	return documentOf(ctx, a, c, checkpointPath(id, o.From, "diff"), q, func(d engine.CheckpointDiff) error { return a.showDiff(ctx, d, !o.Patch) })
}

// farRestoreFiles puts the files of a server's task back.
func (a *App) farRestoreFiles(ctx context.Context, c *client.Client, id string, o engine.RestoreOptions, yes bool) error {
	path := checkpointPath(id, o.To, "restore")
	body := report.NewRestore{OnConflict: string(o.OnConflict), Paths: o.Paths, Workspace: o.Workspace, DryRun: o.DryRun}
	if err := a.farAgree(ctx, c, path, "restore files of task "+id, "roost checkpoint restore "+shellWord(id), o.DryRun || yes, func(dry bool) any {
		plan := body
		plan.DryRun = dry
		return plan
	}, func(doc json.RawMessage) (r engine.RestoreResult, err error) { return r, json.Unmarshal(doc, &r) }); err != nil {
		return err
	}
	var doc json.RawMessage
	if _, err := c.Ask(ctx, client.Request{Method: http.MethodPost, Path: path, Body: body}, &doc); err != nil {
		return err
	}
	var r engine.RestoreResult
	if err := json.Unmarshal(doc, &r); err != nil {
		return err
	}
	told := error(nil)
	if a.flags.json {
		told = a.printRaw(doc)
	} else {
		told = a.tellRestore(r)
	}
	return errors.Join(told, restoreFailure(r, string(o.OnConflict)))
}
