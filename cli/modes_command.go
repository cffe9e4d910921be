package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/view"
)

func (a *App) modesCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "modes",
		Short: "Show the modes that a task may be in, and where each comes from",
		Long: "Show the modes that a task in this folder (or -C DIR) may be in, which tools each allows,\n" +
			"and where it comes from: built in, the workspace's .roomodes, custom_modes.yaml beside\n" +
			"Roost's settings or in an editor's storage, or an import of Roo Code's. A mode that cannot be used is named with the\n" +
			"reason, and costs no other one.",
		Args: count(0, 0, "roost modes"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.modes(dir) },
	}
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	complete(cmd, "workspace", folders)
	return cmd
}

func (a *App) modes(dir string) error {
	dir = a.abs(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &Failure{
			Exit: ExitConfig,
			Code: "configuration",
			What: "look for the modes of " + dir,
			Why:  "there is no such folder",
			Try:  "roost modes -C DIR",
		}
	}
	c, err := a.engineConfig()
	if err != nil {
		return err
	}
	set, problems := c.Modes(dir)
	if a.flags.json {
		if problems == nil {
			problems = []string{}
		}
		return encode(a.Out, struct {
			Items    []mode.Mode `json:"items"`
			Problems []string    `json:"problems"`
		}{set.All(), problems}, false)
	}
	if err := a.modeTable(set.All()); err != nil {
		return err
	}
	for _, p := range problems {
		a.warn(p)
	}
	return nil
}

// modeTable writes a line a mode.
func (a *App) modeTable(modes []mode.Mode) error {
	rows := [][]string{{"MODE", "NAME", "TOOLS", "FROM"}}
	for _, m := range modes {
		from := m.Source
		if m.Path != "" {
			from += " " + m.Path
		}
		rows = append(rows, []string{m.Slug, m.Name, toolsOf(m), from})
	}
	return a.inColumns(rows, "modes")
}

// inColumns writes rows under the first one, which is their head. what they are is for an
// error.
func (a *App) inColumns(rows [][]string, what string) error {
	style := a.outStyle()
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = display.OneLine(cell)
			wide[i] = max(wide[i], display.Columns(row[i]))
		}
	}
	out := bufio.NewWriter(a.Out)
	for i, row := range rows {
		var line strings.Builder
		for j, cell := range row[:len(row)-1] {
			line.WriteString(cell + strings.Repeat(" ", wide[j]-display.Columns(cell)+2))
		}
		s := view.Plain
		if i == 0 {
			s = view.Dim
		}
		fmt.Fprintln(out, style.Paint(s, line.String()+row[len(row)-1]))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the %s: %w", what, err)
	}
	return nil
}

// toolsOf are the groups of a mode, with what limits them.
func toolsOf(m mode.Mode) string {
	var words []string
	for _, g := range m.Groups {
		word := g.Name
		if g.FileRegex != "" && g.Name == "edit" {
			word += " (" + g.FileRegex + ")"
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

// modeNames completes the modes of the workspace that the command line names.
func (a *App) modeNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.muted = true
	dir, _ := cmd.Flags().GetString("workspace")
	c, err := a.engineConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	set, _ := c.Modes(a.abs(dir))
	var out []string
	for _, m := range set.All() {
		out = append(out, m.Slug+"\t"+display.Cut(display.OneLine(m.Description), 60))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// modeFiles are the files that may hold the user's own modes: one next to Roost's
// settings, and those of the editors' storages that tasks are read from.
func (a *App) modeFiles(settings string) []string {
	const name = "custom_modes.yaml"
	return append([]string{filepath.Join(filepath.Dir(settings), name), importedModes(settings)}, a.editorFiles(name)...)
}
