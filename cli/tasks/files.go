package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
)

func (a *commands) filesCommand() *cobra.Command {
	var dir, path string
	var check bool
	cmd := &cobra.Command{
		Use:   "files ID",
		Short: "Show which files the model of a task knows, and which changed since",
		Long: "Show which files the model of a task knows: those that it read or edited, and those that\n" +
			"you mentioned. Each is fresh, changed or missing, by its content: touching a file, or\n" +
			"changing it and back, is no change. For what another tool recorded, which keeps no\n" +
			"content, the file's time decides; --json names that in `inferred`.\n\n" +
			"Nothing is changed and nothing is sent. When the task continues, its model learns once\n" +
			"of what changed.",
		Example: "  roost files 0199\n" +
			"  roost files 0199 --check && echo all as the model knows them\n" +
			"  roost files 0199 --path src/main.go",
		Args: failure.Arguments(1, 1, "roost files ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.files(cmd.Context(), args[0], dir, path, check)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "exit with 15 when a file is changed or missing, and name it")
	fl.StringVar(&path, "path", "", "all that this task ever recorded of one `file`, rewound or not, and the checkpoints that hold it")
	fl.StringVarP(&dir, "workspace", "C", "", "the `folder` to look in (default: the task's workspace)")
	app.Complete(cmd, "workspace", app.Folders)
	return cmd
}

func (a *commands) files(ctx context.Context, id, dir, path string, check bool) error {
	return a.Connect(ctx, func(c *client.Client) error {
		q := url.Values{}
		if dir != "" {
			q.Set("workspace", a.Abs(dir))
		}
		app.SetQuery(q, "path", path)
		doc, err := a.knownFiles(ctx, c, id, q)
		var p *client.Problem
		if errors.As(err, &p) && p.Code == "file_not_known" && !filepath.IsAbs(path) {
			q.Set("path", a.Abs(path)) // a path from the current folder, and not from the workspace
			if again, err := a.knownFiles(ctx, c, id, q); err == nil {
				doc, p = again, nil
			}
		}
		if err != nil && (p != nil || doc == nil) {
			return err
		}
		var got struct {
			Items []api.KnownFile `json:"items"`
			Task  string          `json:"task_id"`
		}
		if err := json.Unmarshal(doc, &got); err != nil {
			return fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
		}
		if a.Flags.JSON {
			err = a.PrintRaw(doc)
		} else {
			err = a.printFiles(got.Task, got.Items)
		}
		if err != nil || !check {
			return err
		}
		return staleFailure(got.Task, got.Items)
	})
}

// knownFiles asks for the files that the model of a task knows.
func (a *commands) knownFiles(ctx context.Context, c *client.Client, id string, q url.Values) (doc json.RawMessage, err error) {
	_, err = c.Do(ctx, http.MethodGet, app.PathOf(id, "files"), q, nil, &doc)
	return doc, err
}

// staleFailure names the files that are not as the model knows them; nil when all are.
func staleFailure(id string, items []api.KnownFile) error {
	var stale []string
	for _, item := range items {
		if item.State != string(workspace.Unchanged) {
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
	return &failure.Failure{Exit: failure.ExitDamaged, Code: "stale_files", Task: id,
		What: fmt.Sprintf("%d of %d files are not as the model of task %s knows them", len(stale), len(items), id),
		Why:  names, Try: "roost resume " + failure.ShellWord(id)}
}

// howKnown are the names of sources for people.
var howKnown = map[string]string{
	"read_tool":      "read",
	"file_mentioned": "mentioned",
	"roo_edited":     "edited by the agent",
	"user_edited":    "changed by others",
}

func (a *commands) printFiles(id string, items []api.KnownFile) error {
	style, width, counts := a.OutStyle(), 0, map[string]int{}
	for _, f := range items {
		width = max(width, display.Columns(display.OneLine(f.Path)))
	}
	width = min(width, 60)
	for _, f := range items {
		counts[f.State]++
		state := fmt.Sprintf("%-7s", f.State)
		if f.State != string(workspace.Unchanged) {
			state = style.Paint(view.Bad, state)
		}
		line := state + "  " + display.Pad(display.OneLine(f.Path), width) + "  " + a.knownText(f.Source, f.By, f.Task, f.TS)
		if len(f.Inferred) > 0 {
			line += " (judged by its time)"
		}
		if err := a.Println(line); err != nil {
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
			if err := a.Println("  " + a.When(k.At) + "  " + text + size + hash); err != nil {
				return err
			}
		}
	}
	if len(items) == 0 {
		a.Say("the model of task %s knows no files", id)
		return nil
	}
	a.Say("%d file%s: %d fresh, %d changed, %d missing", len(items), app.Plural(len(items)), counts["fresh"], counts["changed"],
		counts["missing"])
	return nil
}

func (a *commands) knownText(source string, by *string, task string, ts int64) string {
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
		text += " " + a.Age(ts)
	}
	if source != "user_edited" && other {
		text += ", last changed while a " + *by + " ran"
	}
	return text
}
