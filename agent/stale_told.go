package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of what the model is told of changed files in one turn.
const (
	tellFiles = 50       // by name
	tellDiff  = 4 << 10  // bytes of one file's difference
	tellDiffs = 16 << 10 // bytes of all of them
)

// staleHead is Roo's.
const staleHead = "# Recently Modified Files\nThese files have been modified since you last accessed them (file was just edited so you may need to re-read it before editing):\n"

// changed tells of the files that the model knows and that somebody else changed: the
// model by the section that it gives, the person by a notice. The records are part of
// the draft, so that a change is told once, whatever happens in between. A file whose
// whole difference is told counts as read again.
func (d *draft) changed(results []string) string {
	a := d.agent
	stale := a.staleFiles(context.Background(), d.events) // its time is bounded
	commands, others := a.sight.commands, a.sight.others
	defer func() { a.sight.doubt = nil }()
	a.sight.commands, a.sight.others = false, nil
	if len(stale) == 0 {
		return ""
	}
	delegated := false
	for _, id := range results {
		if c := a.state().Call(id); c != nil && c.Name == task.SubtaskTool {
			delegated = true
		}
	}
	var names, notices []string
	var contents strings.Builder
	diffs := 0 // bytes
	again := &again{ctx: context.Background(), agent: a}
	authors := a.authors(stale, others, commands, delegated)
	for i, f := range stale {
		words := f.words() + authors[i].words
		record := f.record("user_edited", authors[i].by)
		record.Task = authors[i].task
		d.put(record)
		name := workspaceName(f.known.Path)
		if !a.announced(f) {
			notices = append(notices, name+" "+words)
		}
		if i >= tellFiles {
			continue
		}
		line := name
		if words != "changed" {
			line += " (" + words + ")"
		}
		names = append(names, line)
		if a.Task.Settings.Stale == task.StaleRead {
			if text, read, ok := again.read(f); ok {
				contents.WriteString(text)
				d.put(read)
				continue
			}
		}
		if diff, whole := a.difference(f); whole && diffs+len(diff) <= tellDiffs {
			diffs += len(diff)
			fmt.Fprintf(&contents, "\nWhat changed in %s:\n%s", name, diff)
			d.put(f.record("read_tool", ""))
		}
	}
	text := staleHead + strings.Join(names, "\n") + "\n"
	if more := len(stale) - len(names); more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	told := strings.Join(notices[:min(len(notices), 8)], ", ")
	if more := len(notices) - 8; more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	if told != "" {
		a.notice("changed since the model saw it: " + told + "; it is told")
	}
	return text + contents.String()
}

// words say what became of the file.
func (f staleFile) words() string {
	switch {
	case f.now.Verdict == workspace.Missing:
		return "deleted"
	case f.now.State.MTime == 0:
		return "no file any more"
	case f.now.State.Hash != "" && f.now.State.Hash == f.known.Seen.Hash:
		return "again as you last saw it"
	}
	return "changed"
}

func (f staleFile) record(source, by string) task.FileChanged {
	s := f.now.State
	return task.FileChanged{
		Path: f.known.Path, Source: source, By: by, Hash: s.Hash, Size: s.Size, MTime: s.MTime, CTime: s.CTime, Inode: s.Inode, Device: s.Device,
	}
}

// difference is what changed in a file since the model saw it, if both contents are at
// hand and it is small. What lies outside the workspace or is protected is not shown:
// reading it needs a consent that nobody was asked for.
func (a *Agent) difference(f staleFile) (text string, whole bool) {
	a.sight.mu.Lock()
	old := a.sight.texts.get(f.known.Seen.Hash)
	a.sight.mu.Unlock()
	if old == nil || f.now.Data == nil || f.path.Outside || f.path.Protected || f.now.State.Hash == f.known.Seen.Hash {
		return "", false
	}
	text, whole = filetool.Difference(f.known.Path, old, f.now.Data, tellDiff)
	return a.mask(text), whole
}

// workspaceName is a path on one line.
func workspaceName(path string) string { return filetool.Name(path) }

// refuseStale closes a call that would have overwritten what somebody else changed.
func (b *batch) refuseStale(ctx context.Context, c *task.Call, stale *tool.StaleError) error {
	v := verdict{outcome: "error", text: b.agent.mask("Error: " + stale.Error()), isError: true}
	told := fileChanged(stale.Now)
	told.Source, told.By = "user_edited", "other"
	if hash, before := b.agent.sight.others[told.Path]; b.agent.sight.commands && (!before || hash != told.Hash) {
		told.By = "command"
	}
	if told.By == "other" {
		told.Task = b.agent.otherTask(ctx, told.Path, told.Hash)
	}
	v.after = append(v.after, told)
	if stale.Shown {
		told.Source, told.By = "read_tool", ""
		v.after = append(v.after, told)
	}
	b.agent.notice(fmt.Sprintf("%s: %s changed since the model saw it and was not overwritten; it is told", c.Name, filetool.Name(stale.Now.Path)))
	return b.finish(ctx, c, v)
}

// wrote are the records of the files that a call has changed, of which it is known only
// by a look at them that it did: a kill kept it from saying so.
func (b *batch) wrote(ctx context.Context, c *task.Call) []task.Event {
	var out []task.Event
	for _, path := range slices.Sorted(maps.Keys(c.Before)) {
		_, fresh, planned := strings.Cut(c.Before[path], " ")
		if !planned || b.agent.Host.Workspace == nil {
			continue
		}
		s, err := b.agent.Host.Workspace.Stat(ctx, path)
		if err != nil || s.Hash != fresh {
			continue
		}
		out = append(out, task.FileChanged{
			Path: path, Source: "roo_edited", Hash: s.Hash, Size: s.Size, MTime: s.MTime, CTime: s.CTime, Inode: s.Inode, Device: s.Device,
		})
	}
	return out
}
