package tasks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// showTask shows a task, or what the flags name of it.
func (a *commands) showTask(ctx context.Context, c *client.Client, id string, f showFlags) error {
	switch {
	case f.tree:
		if a.Flags.JSON {
			return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "tree"), nil, func(api.Branch) error { return nil })
		}
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "tree"), url.Values{"with": {"names"}}, func(b struct {
			api.Branch
			Names map[string]string
		}) error {
			return a.drawTree(app.Flat(b.Branch, 0), b.Names)
		})
	case f.context:
		if f.dir != "" {
			f.dir = a.Abs(f.dir)
		}
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "context"), workspaceQuery(f.dir), func(u api.ContextUse) error {
			if u.AsIf != nil && u.Unknown != nil {
				a.Warn(fmt.Sprintf("the task's profile %q is not known here; this is as if %s answered "+
					"(roost config set source_profiles.%s NAME names one)",
					u.Unknown.Name, *u.AsIf, u.Unknown.Source))
			}
			return a.printContext(u)
		})
	case f.branches:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "branches"), nil, a.printBranches)
	case f.usage:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "usage"), nil, a.printUsage)
	case f.journal:
		return a.showJournal(ctx, c, id, f)
	case a.Flags.JSON && (f.ui || f.api || f.effective):
		return a.showElements(ctx, c, id, f)
	case a.Flags.JSON:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id), nil, func(api.Summary) error { return nil })
	}
	return a.Paged(ctx, func() error { return a.showHistory(ctx, c, id, f) })
}

// windows requests the part of a numbered list that the flags select: its newest items, or
// all of it in parts from its beginning. get returns the total and where the part ended;
// windows returns where the window begins and ends.
func windows(f showFlags, get func(url.Values) (total int, before, after *int, err error)) (from, to int, err error) {
	q := url.Values{}
	total, _, _, err := get(url.Values{"limit": {"1"}, "peek": nil})
	if err != nil {
		return 0, 0, err
	}
	from, to = window(total, f)
	for at := from; at < to; {
		q.Set("after", strconv.Itoa(at))
		q.Set("limit", strconv.Itoa(min(to-at, windowMost)))
		_, _, after, err := get(q)
		if err != nil {
			return from, to, err
		}
		if after == nil {
			break
		}
		if *after <= at {
			return from, to, errors.New("read the history: the server gave the same messages again")
		}
		at = *after
	}
	return from, to, nil
}

// windowMost is how many messages of a history one request gets.
const windowMost = 200

// showElements prints a history byte for byte. What is damaged, or not as it is stored, is a warning.
func (a *commands) showElements(ctx context.Context, c *client.Client, id string, f showFlags) error {
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	a.warnOfDamage(t)
	path, q := app.PathOf(id, "messages"), url.Values{}
	if f.api || f.effective {
		path = app.PathOf(id, "history")
	}
	if f.effective {
		q.Set("view", "effective")
	}
	out := bufio.NewWriter(a.Out)
	sep, printed := "[", map[string]bool{}
	_, _, err = windows(f, func(part url.Values) (int, *int, *int, error) {
		var doc json.RawMessage
		if _, err := c.Do(ctx, "GET", path, merged(q, part), nil, &doc); err != nil {
			return 0, nil, nil, err
		}
		w, err := readWindow(doc)
		if err != nil {
			return 0, nil, nil, fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
		}
		for _, note := range w.Notes {
			if !printed[note] {
				printed[note] = true
				a.Warn(note)
			}
		}
		if _, peek := part["peek"]; peek {
			return w.Total, w.Before, w.After, nil
		}
		for raw := range esjson.Array(w.items) {
			fmt.Fprint(out, sep)
			_, _ = out.Write(raw) // Flush returns the error
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
	return app.Flushed(out)
}

// elements is a window of a history. Its items keep their bytes: a message may be nested deeper
// than encoding/json reads.
type elements struct {
	items  []byte // a JSON array
	Total  int
	Before *int `json:"next_before"`
	After  *int `json:"next_after"`
	Notes  []string
}

func readWindow(doc []byte) (w elements, err error) {
	var rest esjson.Object
	for key, value := range esjson.Members(doc) {
		if key == "items" {
			w.items = value
			continue
		}
		rest.Raw(key, value)
	}
	return w, json.Unmarshal(rest.Bytes(), &w)
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

// warnOfDamage names what is damaged of a task whose history is shown without the lines about the task.
func (a *commands) warnOfDamage(t api.Summary) {
	if len(t.Damaged) > 0 {
		a.Warn(fmt.Sprintf("the task is damaged (details: roost doctor %s): %s", t.ID, t.Damaged[0].Text()))
	}
}

// showJournal prints the commits of a task's journal.
func (a *commands) showJournal(ctx context.Context, c *client.Client, id string, f showFlags) error {
	var all []api.Commit
	_, _, err := windows(f, func(part url.Values) (int, *int, *int, error) {
		var w api.Commits
		_, err := c.Do(ctx, "GET", app.PathOf(id, "journal"), merged(nil, part), nil, &w)
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

// showHistory prints messages for people.
func (a *commands) showHistory(ctx context.Context, c *client.Client, id string, f showFlags) error {
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	if f.ui || f.api || f.effective {
		a.warnOfDamage(t)
	}
	q := url.Values{}
	switch {
	case f.api:
		q.Set("view", "api")
	case f.effective:
		q.Set("view", "effective")
	}
	if a.Flags.Verbose {
		q.Set("whole", "true")
	}
	out := bufio.NewWriter(a.Out)
	first, printed := true, map[string]bool{}
	from, to, err := windows(f, func(part url.Values) (int, *int, *int, error) {
		var w api.Lines
		_, err := c.Do(ctx, "GET", app.PathOf(id, "lines"), merged(q, part), nil, &w)
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
				fmt.Fprintln(out, a.OutStyle().Paint(view.Bad, w.StandIn))
			}
			first = false
			return w.Total, w.Before, w.After, nil
		}
		for _, note := range w.Notes {
			if !printed[note] {
				printed[note] = true
				a.Say("%s", note)
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
	if from == to {
		a.Say("no messages")
	}
	if err := app.Flushed(out); err != nil || from == 0 {
		return err
	}
	a.earlier(t.ID, from, f)
	return nil
}
