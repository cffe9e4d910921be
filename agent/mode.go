package agent

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// inMode is the mode that the task is in; false when this agent knows no modes. A mode
// that does not exist has no tools but those of every mode.
func (a *Agent) inMode() (mode.Mode, bool) {
	if a.User.Modes == nil {
		return mode.Mode{}, false
	}
	slug := cmp.Or(a.Task.Settings.Mode, mode.Default)
	m, ok := a.User.Modes.Find(slug)
	if !ok {
		m = mode.Mode{Slug: slug, Name: slug}
	}
	return m, true
}

// lacks says why the task's mode does not have a tool, nil when it does. A tool that
// Roo does not know belongs to the group that its permission class comes to.
func (a *Agent) lacks(spec tool.Spec) error {
	m, ok := a.inMode()
	if !ok {
		return nil
	}
	group := "mcp"
	switch spec.Class {
	case tool.Read:
		group = "read"
	case tool.Write:
		group = "edit"
	case tool.Command:
		group = "command"
	case tool.Control:
		group = "always"
	}
	return m.Permits(spec.Name, group)
}

// forbids says why the task's mode does not let a call be made, as far as its input
// tells: nil when it does.
func (a *Agent) forbids(spec tool.Spec, c *task.Call) error {
	if err := a.switchedOff(spec); err != nil {
		return err
	}
	if err := a.lacks(spec); err != nil {
		return err
	}
	return a.mayEdit(spec, mode.Names(spec.Name, func(key string) string {
		text, _ := esjson.GetString(c.Input(), key)
		return text
	}))
}

// mayEdit holds the paths that a writing call touches against the pattern of the
// task's mode, under their own name and under the one that links lead to: a link
// with a harmless name must not open a file that the mode closes.
func (a *Agent) mayEdit(spec tool.Spec, paths []string) error {
	m, ok := a.inMode()
	if !ok || spec.Class != tool.Write {
		return nil
	}
	for _, path := range paths {
		names := []string{path}
		if a.Host.Workspace != nil {
			p, err := a.Host.Workspace.Resolve(path)
			if err != nil {
				return fmt.Errorf("the mode's pattern for files cannot be held against it: %w", err)
			}
			names = []string{p.Readable}
			if rel, err := filepath.Rel(a.Host.Workspace.Root(), p.Real); err == nil && !p.Outside {
				names = append(names, filepath.ToSlash(rel))
			} else {
				names = append(names, filepath.ToSlash(p.Real))
			}
		}
		for _, name := range names {
			if err := m.PermitsFile(spec.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchMode goes on in another mode. A mode is a right, so a person is asked unless
// everything is allowed; that the task is in it now and that the call is done is one
// commit.
func (b *batch) switchMode(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	now, ok := a.inMode()
	if !ok {
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: rows.Failure("there are no modes here"), isError: true})
	}
	m, err := a.User.Modes.Lookup(r.Mode)
	if err != nil {
		b.wrong = true
		text := rows.Failure(fmt.Sprintf("Invalid mode: %s. There are %s", r.Mode, strings.Join(a.User.Modes.Slugs(), ", ")))
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: text, isError: true})
	}
	if m.Slug == now.Slug {
		return nil, b.finish(ctx, c, verdict{outcome: "ok", text: fmt.Sprintf("Already in %s mode.", m.Name)})
	}
	granted, d, _, out, err := b.agree(ctx, c, spec, ask, a.maySwitch(ask))
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	d.Put(a.enter(m)...)
	text := fmt.Sprintf("Successfully switched from %s mode to %s mode", now.Name, m.Name)
	if r.Text != "" {
		text += " because: " + r.Text
	}
	text += "."
	if granted.Feedback != "" {
		text = rows.Approved(granted.Feedback) + text
	}
	return nil, b.finish(ctx, c, verdict{outcome: "ok", text: text, approval: granted, before: d.events})
}
