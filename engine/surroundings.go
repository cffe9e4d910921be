package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/mcptool"
	"github.com/roost-dev/roost/tool/prompttool"
	"github.com/roost-dev/roost/tool/toolset"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/slash"
)

// world is what mentions in a user's message refer to.
func (e *Engine) world(ref store.Ref, w *workspace.Workspace, mode func() string) mention.World {
	return mention.Disk{
		Workspace: w,
		Commands:  slash.Set{Workspace: w, Home: e.opt.Config.Home},
		Linter:    e.opt.Config.Linter,
		Mark:      linterMark(ref),
		Skills:    e.opt.Config.Skills(w.Root()),
		Mode:      mode,
	}
}

// tools are those of a task: the fixed set, and after it those that need the store or the user's home folder.
func (e *Engine) tools(id string) []tool.Tool {
	return append(toolset.All(), prompttool.SlashCommand(e.opt.Config.Home), prompttool.Skill(e.opt.Config.Home),
		historytool.ListTasks(taskLister{e.store, id}))
}

// taskLister is the store as the tool list_tasks needs it.
type taskLister struct {
	store *store.Store
	self  string // the task of the run
}

// Tasks lists tasks as `roost list` does.
func (s taskLister) Tasks(ctx context.Context, q historytool.Query) (list []historytool.Task, more bool, err error) {
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

// orphanWait bounds the wait for the end of an orphan linter: the run begins without it after that.
const orphanWait = 5 * time.Second

// linterMark identifies the process of a task's linter when the run that started it was killed. The mark of a command is
// recorded before the command starts. The linter runs before the message that it belongs to is recorded, so its mark
// follows from the task: its folder and its id. A task has one owner, so a process that carries the mark when a run begins
// is an orphan.
func linterMark(ref store.Ref) string {
	sum := sha256.Sum256([]byte("linter\x00" + ref.Dir + "\x00" + ref.ID))
	return hex.EncodeToString(sum[:16])
}

// endOrphanLinter ends a linter that outlived a run of this task, and notes that. It would continue to read, and some
// linters write. Without a linter in the settings it does nothing.
func (e *Engine) endOrphanLinter(ref store.Ref) []string {
	if e.opt.Config.Linter == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), orphanWait)
	defer cancel()
	found, err := shell.EndMarked(ctx, linterMark(ref))
	var notes []string
	for _, m := range found {
		notes = append(notes, fmt.Sprintf("a linter from an earlier run of this task was still running (%d, %s): it was "+
			"ended", m.PID, m.Name))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("a linter from an earlier run of this task could not be ended: %v; end it by hand", err))
	}
	return notes
}

// equip gives a run its MCP servers. Their processes carry the same mark in every run of the task, so that the next run
// ends those that a killed one left.
func (r *Run) equip(p setup.Environment, t *store.Task) {
	c := r.engine.opt.Config
	servers, problems := c.MCPServers(p.Workspace.Root())
	r.found = append(r.found, problems...)
	usable := 0
	for _, s := range servers {
		switch {
		case s.State == mcp.Allowed:
			usable++
		case s.State == mcp.Invalid:
			r.found = append(r.found, fmt.Sprintf("%s: the MCP server %s is left out: %s", s.File, s.Name, s.Problem))
		case s.State == mcp.NotAllowed && s.Scope == mcp.Workspace:
			r.found = append(r.found, fmt.Sprintf("the MCP server %s of this workspace is not used: you have not allowed "+
				"what it runs (%s); roost mcp allow %s", s.Name, s.Line(), s.Name))
		}
	}
	if usable == 0 {
		return
	}
	sum := sha256.Sum256([]byte(r.engine.store.Root() + "\x00" + t.Ref.Source + "\x00" + t.Ref.ID))
	r.held.hub = c.Connect(servers, p.Workspace.Root(), "mcp-"+hex.EncodeToString(sum[:16]), p.Provider.Masks)
	r.agent.Tools.Servers = mcptool.NewBox(r.held.hub)
}

// unequip closes the connections to MCP servers and to the model: the next run opens its own, and a server of many short
// runs would keep one of each for a minute and a half.
func (r *Run) unequip() {
	if r.held.hub != nil {
		r.held.hub.Close()
	}
	if p, ok := r.agent.Model.Provider.(interface{ CloseIdle() }); ok {
		p.CloseIdle()
	}
}
