package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/mcptool"
	"github.com/roost-dev/roost/tool/prompttool"
	"github.com/roost-dev/roost/tool/toolset"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/slash"
)

// Config returns what the user has set up outside any task.
func (e *Engine) Config() setup.Config { return e.resolver().Config }

// world returns what mentions in a user's message refer to.
func (e *Engine) world(ref store.Ref, w *workspace.Workspace, mode func() string) mention.World {
	return mention.Disk{
		Workspace: w, Commands: slash.Set{Workspace: w, Home: e.resolver().Config.Home},
		Linter: e.resolver().Config.Linter, Mark: processMark("linter", ref), Skills: e.resolver().Config.Skills(w.Root()), Mode: mode,
	}
}

// tools returns those of a task: the fixed set, and after it those that need the store or the user's home folder.
func (e *Engine) tools(id, owner string) []tool.Tool {
	return append(toolset.All(e.resolver().Config.Web()), prompttool.SlashCommand(e.resolver().Config.Home), prompttool.Skill(e.resolver().Config.Home),
		historytool.ListTasks(id, e.lister(owner)))
}

// lister lists tasks for a model, as `roost list` does: those of an owner; "" = all.
func (e *Engine) lister(owner string) historytool.Lister {
	return func(ctx context.Context, q api.TaskFilter) ([]api.Summary, bool, error) {
		if owner != "" {
			ctx = store.Seeing(ctx, func(a api.Access) (bool, error) { return a.Owner == owner, nil })
		}
		found, err := e.store.List(ctx, store.Filter{TaskFilter: q})
		return found.Items, found.NextCursor != "", err
	}
}

// orphanWait bounds the wait for the end of an orphan: the run begins without it after that.
const orphanWait = 5 * time.Second

// processMark identifies a task's linter, or its hooks, when the run that started them was killed. The mark of a
// command is recorded before the command starts. The linter runs before the message that it belongs to is recorded, and
// of a hook nothing is recorded, so their mark follows from the task: its folder and its id. A task has one owner, so a
// process that carries the mark when a run begins is an orphan.
func processMark(kind string, ref store.Ref) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + ref.Dir + "\x00" + ref.ID))
	return hex.EncodeToString(sum[:16])
}

// endOrphans ends a linter and hooks that outlived a run of this task: they would continue to read, and may write.
// The notes name them. It looks only for the linter and hooks that the settings name.
func (e *Engine) endOrphans(ref store.Ref) []string {
	var notes []string
	for kind, has := range map[string]bool{"linter": e.resolver().Config.Linter != "", "hook": len(e.resolver().Config.Hooks) > 0} {
		if !has {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), orphanWait)
		found, err := shell.EndMarked(ctx, processMark(kind, ref))
		cancel()
		notes = append(notes, api.Each(found, func(m shell.Member) string {
			return fmt.Sprintf("a %s from an earlier run of this task was still running (%d, %s): it was ended", kind, m.PID, m.Name)
		})...)
		if err != nil {
			notes = append(notes, fmt.Sprintf("a %s from an earlier run of this task could not be ended: %v; end it by hand", kind, err))
		}
	}
	return notes
}

// equip gives a run its MCP servers. Their processes carry the same mark in every run of the task, so that the next run
// ends those that a killed one left.
func (r *Run) equip(p setup.Environment, t *store.Task) {
	c := r.engine.resolver().Config
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
				"what it runs (%s); roost mcp allow %s", s.Name, s.Line(), api.ShellWord(s.Name)))
		}
	}
	if usable == 0 {
		return
	}
	sum := sha256.Sum256([]byte(r.engine.store.Root() + "\x00" + t.Ref.Source + "\x00" + t.Ref.ID))
	r.held.hub = c.Connect(servers, p.Workspace.Root(), "mcp-"+hex.EncodeToString(sum[:16]), p.Provider.Masks)
	r.agent.Tools.Servers = mcptool.NewBox(r.held.hub)
}

// maxOtherTasks bounds the journals that are folded for one question. The newest ones almost always hold the answer.
const maxOtherTasks = 8

// otherTasks is the source of a run's stale.OtherTasks. It reads only the tasks that were written to since the given
// time. Nothing depends on the answer, so a task that cannot be read is left out.
type otherTasks struct {
	engine *Engine
	root   string // of the workspace
	self   string // the run's task
	owner  string // its owner: tasks of other people are not named; "" = all
}

// changed names the tasks that left files of the workspace in their present state.
func (o otherTasks) changed(ctx context.Context, since int64, files map[string]string) map[string]string {
	recent := api.TaskFilter{Since: since, Limit: maxOtherTasks + 1}
	list, err := o.engine.store.List(ctx, store.Filter{TaskFilter: recent, Logged: true})
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, ref := range list.Refs {
		if ref.ID == o.self || ctx.Err() != nil || len(out) == len(files) {
			continue
		}
		s, err := store.FromView(ctx, o.engine.store, ref, func(v *store.View) (*task.State, error) { return v.State, nil })
		if err != nil || o.owner != "" && s.Access.Owner != o.owner {
			continue
		}
		dir, err := o.engine.FindWorkspace(s.Settings)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil || dir != o.root {
			continue
		}
		for path, hash := range files {
			if _, known := out[path]; !known && leftAs(s, path, hash) {
				out[path] = ref.ID
			}
		}
	}
	return out
}

// leftAs reports whether a task's newest record of a file shows that the agent, or a command that it ran, left the
// file with this content; "" = deleted.
func leftAs(s *task.State, path, hash string) bool {
	seq := uint64(0)
	fits := false
	for _, f := range slices.Backward(s.Files) {
		if f.Path == path && (f.Source == "roo_edited" || f.Source == "user_edited") {
			seq, fits = f.Seq, f.Source == "roo_edited" && f.Hash == hash
			break
		}
	}
	for _, c := range slices.Backward(s.Checkpoints) {
		if c.Seq < seq {
			break
		}
		i := slices.IndexFunc(c.Files, func(f task.CheckpointFile) bool { return f.Path == path })
		if i < 0 || c.Reason != task.ReasonCommand && c.Reason != task.ReasonTurn {
			continue
		}
		now := c.Files[i].Now
		return now.Hash == hash && (hash != "" || now.Kind == api.KindGone)
	}
	return fits
}

// describeOwned returns notes for the user about what was found when the task was taken over.
func describeOwned(o *store.Owned, adopted bool) []string {
	var notes []string
	switch {
	case o.Forked != "" && o.Again:
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it continues as task %s, as before",
			o.Forked, o.Task.Ref.ID))
	case o.Forked != "":
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it continues as a new task %s", o.Forked, o.Task.Ref.ID))
	case adopted && o.Task.Ref.Foreign():
		notes = append(notes, "this task is in another tool's storage: it continues there, and its original files are kept")
	}
	if s := o.Task.State(); s.Received != nil && (s.Run == nil || s.Run.Started <= s.Received.At) { // its first run here
		notes = append(notes, s.Received.Notes(s.Settings)...)
	}
	if o.Gone {
		notes = append(notes, "the editor deleted this task's folder; Roost's copy is complete, and the folder is not created again")
	}
	return append(notes, describeIntakes(o.Task.Intakes())...)
}

// describeIntakes returns notes about what other programs changed and how Roost handled it.
func describeIntakes(list []intake.Change) []string {
	var notes []string
	for _, change := range list {
		switch {
		case change.Refused != "":
			notes = append(notes, fmt.Sprintf("another program changed %s: the change is not applied, because %s; its bytes "+
				"are kept", change.File, change.Refused))
		case change.Rewound != nil:
			notes = append(notes, fmt.Sprintf("another program rewound this task: %d messages were hidden, and are kept as a "+
				"branch; roost undo brings them back", change.Lacking))
		case change.Restored:
			notes = append(notes, fmt.Sprintf("%s still held what the damaged journal had lost; messages that are back: %d",
				change.File, change.Added+change.Changed))
		default:
			notes = append(notes, fmt.Sprintf("another program changed %s: %d new and %d changed messages were taken in",
				change.File, change.Added, change.Changed))
		}
	}
	return notes
}

// differences reports what has changed for a task since its last run: another model, or files that have changed, must not
// surprise the user.
func differences(s *task.State, now task.Settings, head string) []string {
	was := s.Settings
	var notes []string
	report := func(what, from, to string) {
		if from != "" && from != to {
			notes = append(notes, fmt.Sprintf("%s: %s -> %s", what, from, to))
		}
	}
	report("workspace", was.Workspace, now.Workspace)
	report("provider", was.Provider, now.Provider)
	report("model", was.Model, now.Model)
	report("base URL", was.BaseURL, now.BaseURL)
	report("mode", was.Mode, now.Mode)
	if s.Run != nil && was.Workspace == now.Workspace && s.Run.Head != head {
		notes = append(notes, fmt.Sprintf("the workspace's HEAD has changed since the last run: %s -> %s",
			cmp.Or(s.Run.Head, "none"), cmp.Or(head, "none")))
	}
	return notes
}

// gitHead returns the commit that a workspace's repository is on; "" without a repository. The files of the
// repository hold it: asking git would run the user's hooks and settings.
func gitHead(root string) string {
	dir := filepath.Join(root, ".git")
	head, err := inputfile.Read(filepath.Join(dir, "HEAD"))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(head))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text
	}
	if commit, err := inputfile.Read(filepath.Join(dir, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(commit))
	}
	return fmt.Sprintf("%s (no commit found)", ref)
}
