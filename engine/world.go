package engine

import (
	"context"

	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/skilltool"
	"github.com/roost-dev/roost/tool/slashtool"
	"github.com/roost-dev/roost/tool/toolset"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// world is what mentions in a person's words are about.
func (e *Engine) world(ref store.Ref, w *workspace.Workspace, mode func() string) mention.World {
	return mention.Disk{
		Workspace: w, Commands: slash.Set{Workspace: w, Home: e.opt.Config.Home}, Linter: e.opt.Config.Linter, Mark: linterMark(ref),
		Skills: e.opt.Config.Skills(w.Root()), Mode: mode,
	}
}

// tools are those of a task: the fixed set, and behind it those that look at what
// only the engine knows.
func (e *Engine) tools(id string) []tool.Tool {
	return append(toolset.All(), slashtool.New(e.opt.Config.Home), skilltool.New(e.opt.Config.Home), historytool.ListTasks(shelf{e.store, id}))
}

// shelf is the store as the tool list_tasks sees it.
type shelf struct {
	store *store.Store
	self  string // the task that asks
}

// Tasks lists tasks as `roost list` does.
func (s shelf) Tasks(ctx context.Context, q historytool.Query) (list []historytool.Task, more bool, err error) {
	found, err := s.store.List(ctx, store.Filter{Query: q.Words, Status: q.Status, Workspace: q.Workspace, Limit: q.Limit})
	if err != nil {
		return nil, false, err
	}
	for _, t := range found.Items {
		line := historytool.Task{ID: t.ID, Title: t.Title, Status: t.Status, Workspace: t.Workspace, Mode: t.Mode, Current: t.ID == s.self}
		if t.UpdatedAt != nil {
			line.Updated = *t.UpdatedAt
		}
		if t.Usage.Cost != nil {
			line.Cost = t.Usage.Cost.String()
		}
		list = append(list, line)
	}
	return list, found.NextCursor != "", nil
}
