package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

// farShow shows a server's task.
func (a *App) farShow(ctx context.Context, c *client.Client, id string, f showFlags) error {
	switch {
	case f.tree:
		return documentOf(ctx, a, c, pathOf(id, "tree"), nil, func(b report.Branch) error { return a.drawTree(ctx, flat(b, 0), farNames(c)) })
	case f.context:
		return documentOf(ctx, a, c, pathOf(id, "context"), workspaceQuery(f.dir), func(u report.ContextUse) error {
			if u.AsIf != nil {
				a.warn("the task's profile is not known to the server; this is as if " + display.OneLine(*u.AsIf) + " answered")
			}
			return a.printContext(u)
		})
	case f.branches:
		return documentOf(ctx, a, c, pathOf(id, "branches"), nil, a.printBranches)
	case f.usage:
		return documentOf(ctx, a, c, pathOf(id, "usage"), nil, a.printUsage)
	case f.journal:
		return a.farJournal(ctx, c, id, f)
	case a.flags.json && (f.ui || f.api || f.effective):
		return a.farElements(ctx, c, id, f)
	case a.flags.json:
		return documentOf(ctx, a, c, pathOf(id), nil, func(store.Summary) error { return nil })
	}
	return a.paged(ctx, func() error { return a.farHistory(ctx, c, id, f) })
}

// windows asks for a window of something that has numbers, as the flags want it: its
// newest or all of it, part by part from its beginning on. get says how many there are
// and where the part ended.
func windows(f showFlags, get func(url.Values) (total int, before, after *int, err error)) (from int, err error) {
	q := url.Values{}
	total, _, _, err := get(url.Values{"limit": {"1"}, "peek": nil})
	if err != nil {
		return 0, err
	}
	from, to := window(total, f)
	for at := from; at < to; {
		q.Set("after", strconv.Itoa(at))
		q.Set("limit", strconv.Itoa(min(to-at, windowMost)))
		_, _, after, err := get(q)
		if err != nil {
			return from, err
		}
		if after == nil {
			break
		}
		if *after <= at {
			return from, errors.New("read the history: the server does not get on")
		}
		at = *after
	}
	return from, nil
}

// windowMost is how much of a history is asked for at a time.
const windowMost = 200

// farElements prints a history byte for byte.
func (a *App) farElements(ctx context.Context, c *client.Client, id string, f showFlags) error {
	path, q := pathOf(id, "messages"), url.Values{}
	if f.api || f.effective {
		path = pathOf(id, "history")
	}
	if f.effective {
		q.Set("view", "effective")
	}
	out := bufio.NewWriter(a.Out)
	sep, told := "[", map[string]bool{}
	_, err := windows(f, func(part url.Values) (int, *int, *int, error) {
		var w struct {
			Items  []json.RawMessage `json:"items"`
			Total  int               `json:"total"`
			Before *int              `json:"next_before"`
			After  *int              `json:"next_after"`
			Notes  []string          `json:"notes"`
		}
		_, err := c.Do(ctx, "GET", path, merged(q, part), nil, &w)
		if _, peek := part["peek"]; peek || err != nil {
			return w.Total, w.Before, w.After, err
		}
		for _, note := range w.Notes {
			if !told[note] {
				told[note] = true
				a.say("%s", note)
			}
		}
		for _, raw := range w.Items {
			fmt.Fprint(out, sep)
			_, _ = out.Write(raw) // Flush says it
			sep = ",\n"
		}
		return w.Total, w.Before, w.After, nil
	})
	if err != nil {
		return err
	}
	if sep == "[" {
		fmt.Fprint(out, sep)
	}
	fmt.Fprintln(out, "]")
	return flushed(out)
}

func merged(q, part url.Values) url.Values {
	out := url.Values{}
	for _, from := range []url.Values{q, part} {
		for name, values := range from {
			if name != "peek" {
				out[name] = values
			}
		}
	}
	return out
}

// farJournal prints the commits of a task's journal.
func (a *App) farJournal(ctx context.Context, c *client.Client, id string, f showFlags) error {
	var all []report.Commit
	_, err := windows(f, func(part url.Values) (int, *int, *int, error) {
		var w report.Commits
		_, err := c.Do(ctx, "GET", pathOf(id, "journal"), merged(nil, part), nil, &w)
		if _, peek := part["peek"]; !peek {
			all = append(all, w.Items...)
		}
		return w.Total, w.Before, w.After, err
	})
	if err != nil {
		return err
	}
	return a.printCommits(all)
}

// farHistory prints messages for people.
func (a *App) farHistory(ctx context.Context, c *client.Client, id string, f showFlags) error {
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	q := url.Values{}
	switch {
	case f.api:
		q.Set("view", "api")
	case f.effective:
		q.Set("view", "effective")
	}
	if a.flags.verbose {
		q.Set("whole", "true")
	}
	out := bufio.NewWriter(a.Out)
	first, told := true, map[string]bool{}
	from, err := windows(f, func(part url.Values) (int, *int, *int, error) {
		var w report.Lines
		_, err := c.Do(ctx, "GET", pathOf(id, "lines"), merged(q, part), nil, &w)
		_, peek := part["peek"]
		if err != nil {
			return 0, nil, nil, err
		}
		if peek {
			if first && !f.ui && !f.api && !f.effective {
				if err := a.header(t, w.Questions); err != nil {
					return 0, nil, nil, err
				}
			}
			if w.StandIn != "" && first {
				fmt.Fprintln(out, a.outStyle().Paint(view.Bad, w.StandIn))
			}
			first = false
			return w.Total, w.Before, w.After, nil
		}
		for _, note := range w.Notes {
			if !told[note] {
				told[note] = true
				a.say("%s", note)
			}
		}
		var messages [][]view.Line
		for _, m := range w.Items {
			lines := make([]view.Line, len(m.Lines))
			for i, l := range m.Lines {
				lines[i] = view.Line{Style: view.Style(l.Style), Text: l.Text}
			}
			messages = append(messages, lines)
		}
		a.printLines(out, slices.All(messages))
		return w.Total, w.Before, w.After, nil
	})
	if err != nil {
		return err
	}
	if err := flushed(out); err != nil || from == 0 {
		return err
	}
	a.earlier(t.ID, from, f)
	return nil
}

// farFiles shows what the model of a server's task knows of files.
func (a *App) farFiles(ctx context.Context, c *client.Client, id, dir, path string, check bool) error {
	if dir != "" {
		return usage("roost files -C", "a server looks in the task's own workspace", "roost files "+shellWord(id))
	}
	q := url.Values{}
	set(q, "path", path)
	var doc json.RawMessage
	if _, err := c.Do(ctx, "GET", pathOf(id, "files"), q, nil, &doc); err != nil {
		return err
	}
	var got struct {
		Items []report.KnownFile `json:"items"`
		Task  string             `json:"task_id"`
	}
	if err := json.Unmarshal(doc, &got); err != nil {
		return fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
	}
	var err error
	if a.flags.json {
		err = a.printRaw(doc)
	} else {
		err = a.printFiles(got.Task, got.Items)
	}
	if err != nil || !check {
		return err
	}
	return staleFailure(got.Task, got.Items)
}
