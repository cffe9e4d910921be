package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
)

func (a *App) filesCommand() *cobra.Command {
	var dir, path string
	var check bool
	cmd := &cobra.Command{
		Use:   "files ID",
		Short: "Show which files the model of a task knows, and which changed since",
		Long: "Show which files the model of a task knows: those that it read or edited, and those that\n" +
			"you mentioned. Each is fresh, changed or missing, by its content: touching a file, or\n" +
			"changing it and back, is no change. For what another tool recorded, which keeps no\n" +
			"content, the file's time decides; --json names that in `inferred`.\n\n" +
			"Nothing is changed and nothing is sent. When the task goes on, its model is told once\n" +
			"of what changed.",
		Example: "  roost files 0199\n  roost files 0199 --check && echo all as the model knows them\n  roost files 0199 --path src/main.go",
		Args:    count(1, 1, "roost files ID"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.files(cmd.Context(), args[0], dir, path, check)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "exit with 15 when a file is changed or missing, and name it")
	fl.StringVar(&path, "path", "", "all that this task ever recorded of one `file`, rewound or not, and the checkpoints that hold it")
	fl.StringVarP(&dir, "workspace", "C", "", "the `folder` to look in (default: the task's workspace)")
	complete(cmd, "workspace", folders)
	return cmd
}

func (a *App) files(ctx context.Context, id, dir, path string, check bool) error {
	if done, err := a.remotely(func(c *client.Client) error { return a.farFiles(ctx, c, id, dir, path, check) }); done {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	ref, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return err
	}
	shown := a.showFiles(ctx, v, dir, path, check)
	return errors.Join(shown, v.Close())
}

func (a *App) showFiles(ctx context.Context, v *store.View, dir, path string, check bool) error {
	records := report.Records(v)
	w, err := a.workspaceOf(v, dir, len(records) > 0)
	if err != nil {
		return err
	}
	if path != "" {
		if records = a.only(records, w, path); len(records) == 0 {
			return &Failure{Exit: ExitNotFound, Code: "file_not_known", Task: v.Ref.ID, What: "show what task " + v.Ref.ID + " knows of " + path,
				Why: "its model neither read nor changed such a file", Try: "roost files " + shellWord(v.Ref.ID)}
		}
	}
	items, err := report.Files(ctx, v, w, records, path != "")
	if err != nil {
		return err
	}
	if err := a.printFiles(v.Ref.ID, items); err != nil || !check {
		return err
	}
	return staleFailure(v.Ref.ID, items)
}

// staleFailure names the files that are not as the model knows them; nil when all are.
func staleFailure(id string, items []report.KnownFile) error {
	var stale []string
	for _, item := range items {
		if item.State != string(workspace.Fresh) {
			stale = append(stale, display.OneLine(item.Path)+" ("+item.State+")")
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	names := strings.Join(stale[:min(len(stale), 20)], ", ")
	if len(stale) > 20 {
		names += fmt.Sprintf(" and %d more", len(stale)-20)
	}
	return &Failure{Exit: ExitDamaged, Code: "stale_files", Task: id, What: fmt.Sprintf("%d of %d files are not as the model of task %s knows them", len(stale), len(items), id),
		Why: names, Try: "roost resume " + shellWord(id)}
}

// workspaceOf is the folder that a task's files are looked at in.
func (a *App) workspaceOf(v *store.View, dir string, needed bool) (*workspace.Workspace, error) {
	if dir != "" {
		dir = a.abs(dir)
	} else {
		dir = v.Summary.Workspace
	}
	f := &Failure{Exit: ExitConfig, Code: "workspace_missing", Task: v.Ref.ID, What: "look at the files of task " + v.Ref.ID, Try: "roost files " + shellWord(v.Ref.ID) + " -C DIR"}
	if dir == "" {
		if !needed {
			return nil, nil
		}
		f.Why = "its workspace is not recorded"
		return nil, f
	}
	w, err := workspace.Open(dir)
	if err != nil {
		if !needed {
			return nil, nil
		}
		f.Why = err.Error()
		return nil, f
	}
	return w, nil
}

// only keeps the records of one file, however the person spelled its path.
func (a *App) only(records []task.FileRecord, w *workspace.Workspace, path string) []task.FileRecord {
	names := []string{path, filepath.ToSlash(filepath.Clean(path))}
	if w != nil {
		for _, given := range []string{path, a.abs(path)} {
			if p, err := w.Resolve(given); err == nil {
				names = append(names, p.Readable, p.Place)
			}
		}
	}
	for _, name := range names {
		var out []task.FileRecord
		for _, r := range records {
			if r.Path == name {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// howKnown are the sources in words.
var howKnown = map[string]string{"read_tool": "read", "file_mentioned": "mentioned", "roo_edited": "edited by the agent", "user_edited": "changed by somebody else"}

func (a *App) printFiles(id string, items []report.KnownFile) error {
	if a.flags.json {
		return encode(a.Out, map[string]any{"task_id": id, "items": items}, false)
	}
	style, width, counts := a.outStyle(), 0, map[string]int{}
	for _, f := range items {
		width = max(width, display.Columns(display.OneLine(f.Path)))
	}
	width = min(width, 60)
	for _, f := range items {
		counts[f.State]++
		state := fmt.Sprintf("%-7s", f.State)
		if f.State != string(workspace.Fresh) {
			state = style.Paint(view.Bad, state)
		}
		line := state + "  " + display.Pad(display.OneLine(f.Path), width) + "  " + a.knownText(f.Source, f.By, f.Task, f.TS)
		if len(f.Inferred) > 0 {
			line += " (judged by its time)"
		}
		if err := a.println(line); err != nil {
			return err
		}
		for _, k := range f.History {
			size, hash := "", ""
			if k.Hash != nil {
				size, hash = fmt.Sprintf("  %d bytes", *k.Size), "  "+(*k.Hash)[:min(12, len(*k.Hash))]
			}
			text := a.knownText(k.Source, k.By, k.Task, 0)
			if k.Checkpoint > 0 {
				text = fmt.Sprintf("in checkpoint c%d (%s)", k.Checkpoint, display.OneLine(k.Reason))
			}
			if k.Rewound {
				text += " [rewound]"
			}
			if err := a.println("  " + a.when(k.At) + "  " + text + size + hash); err != nil {
				return err
			}
		}
	}
	if len(items) == 0 {
		a.say("the model of task %s knows no files", id)
		return nil
	}
	a.say("%d file%s: %d fresh, %d changed, %d missing", len(items), plural(len(items)), counts["fresh"], counts["changed"], counts["missing"])
	return nil
}

func (a *App) knownText(source string, by *string, task string, ts int64) string {
	text := howKnown[source]
	if text == "" {
		text = display.OneLine(source)
	}
	other := by != nil && (*by == "command" || *by == "subtask")
	switch {
	case source != "user_edited" || by == nil:
	case other:
		text = "changed while a " + *by + " ran"
	case *by == "restore":
		text = "put back by a restore"
	case task != "":
		text = "changed by task " + display.OneLine(task)
	}
	if ts > 0 {
		text += " " + a.age(ts)
	}
	if source != "user_edited" && other {
		text += ", last changed while a " + *by + " ran"
	}
	return text
}
