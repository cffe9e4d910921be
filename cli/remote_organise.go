package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// farLabel changes what a server's task is filed under.
func (a *App) farLabel(ctx context.Context, c *client.Client, id string, l store.Labels) (t store.Summary, err error) {
	body := map[string]any{}
	if l.Untitled {
		body["title"] = nil
	}
	if l.Title != nil {
		body["title"] = *l.Title
	}
	if l.Pinned != nil {
		body["pinned"] = *l.Pinned
	}
	if len(l.Add)+len(l.Remove) == 0 && len(body) == 0 {
		return c.Task(ctx, id)
	}
	for range 8 {
		head := http.Header{}
		if len(l.Add)+len(l.Remove) > 0 {
			// A patch says all tags, so nobody may change them in between.
			was := store.Summary{}
			got, err := c.Ask(ctx, client.Request{Path: pathOf(id)}, &was)
			if err != nil {
				return t, err
			}
			tags := slices.DeleteFunc(slices.Clone(was.Tags), func(tag string) bool { return slices.Contains(l.Remove, tag) })
			for _, tag := range l.Add {
				if !slices.Contains(tags, tag) {
					tags = append(tags, tag)
				}
			}
			body["tags"] = append([]string{}, tags...)
			head.Set("If-Match", got.Get("ETag"))
		}
		_, err = c.Ask(ctx, client.Request{Method: http.MethodPatch, Path: pathOf(id), Header: head, Body: body}, &t)
		var p *client.Problem
		if !errors.As(err, &p) || p.Status != http.StatusPreconditionFailed {
			break
		}
	}
	return t, err
}

// farPin pins a server's tasks, or lets them go.
func (a *App) farPin(ctx context.Context, c *client.Client, ids []string, pinned bool, done string) error {
	for _, id := range ids { // all are found before one is changed
		if _, err := c.Task(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		t, err := a.farLabel(ctx, c, id, store.Labels{Pinned: &pinned})
		if err != nil {
			return err
		}
		if err := a.labelled(t, done); err != nil {
			return err
		}
	}
	return nil
}

// farDelete puts a server's tasks into its trash.
func (a *App) farDelete(cmd *cobra.Command, c *client.Client, ids []string, how cascade) error {
	ctx := cmd.Context()
	if err := how.check(cmd); err != nil {
		return err
	}
	var chosen, more []store.Summary // all are found before one is deleted
	add := func(to []store.Summary, t store.Summary) []store.Summary {
		same := func(s store.Summary) bool { return s.Path == t.Path }
		if slices.ContainsFunc(chosen, same) || slices.ContainsFunc(more, same) {
			return to
		}
		return append(to, t)
	}
	var trees []family
	for _, id := range ids {
		var b report.Branch
		if _, err := c.Do(ctx, http.MethodGet, pathOf(id, "tree"), nil, nil, &b); err != nil {
			return err
		}
		trees = append(trees, flat(b, 0))
		chosen = add(chosen, b.Task)
	}
	for _, f := range trees {
		for _, t := range f.tasks[1:] {
			more = add(more, t)
		}
	}
	if !how.keep {
		with, err := how.decide(cmd, a, idsOf(chosen), idsOf(more))
		if err != nil {
			return err
		}
		if with {
			chosen = append(chosen, more...)
		}
	}
	done := []store.Trashed{}
	var err error
	for _, t := range chosen {
		var gone store.Trashed
		if _, err = c.Do(ctx, http.MethodDelete, pathOf(t.Source+":"+t.ID), url.Values{"subtasks": {"keep"}}, nil, &gone); err != nil {
			break
		}
		if done = append(done, gone); a.flags.json {
			continue
		}
		if err = a.tellDeleted(gone); err != nil {
			break
		}
	}
	return errors.Join(a.farDone("deleted", done), err)
}

func idsOf(tasks []store.Summary) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.ID
	}
	return out
}

// farDone prints what was done to several, with --json.
func (a *App) farDone(what string, done any) error {
	if !a.flags.json {
		return nil
	}
	return encode(a.Out, map[string]any{what: done}, false)
}

// farTrash lists a server's trash.
func (a *App) farTrash(ctx context.Context, c *client.Client) error {
	items, _, doc, err := pages(ctx, c, "/v1/trash", url.Values{}, 0)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printRaw(doc)
	}
	found, err := decoded[store.Trashed](items)
	if err != nil {
		return err
	}
	return a.showTrash(found)
}

// farRestore takes tasks out of a server's trash.
func (a *App) farRestore(ctx context.Context, c *client.Client, names []string) error {
	chosen, err := farTrashed(ctx, c, names)
	if err != nil {
		return err
	}
	done := []report.Restored{}
	for _, t := range chosen {
		var back report.Restored
		if _, err = c.Do(ctx, http.MethodPost, "/v1/trash/"+url.PathEscape(t.Name)+"/restore", nil, nil, &back); err != nil {
			break
		}
		if done = append(done, back); a.flags.json {
			continue
		}
		if err = a.println("restored " + display.OneLine(back.ID) + "  " + display.Cut(display.OneLine(t.Title), 60)); err != nil {
			break
		}
	}
	return errors.Join(a.farDone("restored", done), err)
}

// farPurge removes tasks in a server's trash for good.
func (a *App) farPurge(cmd *cobra.Command, c *client.Client, names []string, yes bool) error {
	ctx := cmd.Context()
	chosen, err := farTrashed(ctx, c, names)
	if err != nil {
		return err
	}
	if len(chosen) > 0 && !yes {
		if err := a.consent(cmd, chosen); err != nil {
			return err
		}
	}
	done := []store.Trashed{}
	for _, t := range chosen {
		var gone store.Trashed
		if _, err = c.Do(ctx, http.MethodDelete, "/v1/trash/"+url.PathEscape(t.Name), nil, nil, &gone); err != nil {
			break
		}
		if done = append(done, gone); a.flags.json {
			continue
		}
		if err = a.tellPurged(gone); err != nil {
			break
		}
	}
	if !a.flags.json && len(chosen) == 0 {
		a.say("the trash is empty")
	}
	return errors.Join(a.farDone("purged", done), err)
}

// farTrashed finds tasks in a server's trash, by name or id, each once; all of it when
// none is named.
func farTrashed(ctx context.Context, c *client.Client, names []string) ([]store.Trashed, error) {
	items, _, _, err := pages(ctx, c, "/v1/trash", url.Values{}, 0)
	if err != nil {
		return nil, err
	}
	found, err := decoded[store.Trashed](items)
	if err != nil || len(names) == 0 {
		return found, err
	}
	var out []store.Trashed
	for _, name := range names {
		var fits []store.Trashed
		for _, t := range found {
			if t.Name == name || t.Word() == name {
				fits = []store.Trashed{t}
				break
			}
			if t.ID == name || strings.HasPrefix(t.ID, name) || strings.HasSuffix(t.ID, name) {
				fits = append(fits, t)
			}
		}
		switch {
		case len(fits) == 0:
			return nil, &Failure{Exit: ExitNotFound, Code: "task_not_found", Status: 404, What: "find " + name + " in the trash", Why: "nothing there goes by that name", Try: "roost trash list"}
		case len(fits) > 1:
			f := usage("find "+name+" in the trash", fmt.Sprintf("%d deleted tasks go by that name", len(fits)), "roost trash list")
			for _, t := range fits {
				f.Suggestions = append(f.Suggestions, t.Name)
			}
			return nil, f
		}
		if !slices.ContainsFunc(out, func(t store.Trashed) bool { return t.Name == fits[0].Name }) {
			out = append(out, fits[0])
		}
	}
	return out, nil
}
