package settings

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/view"
)

func (a *commands) modesCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "modes",
		Short: "Show the modes that a task may be in, and where each comes from",
		Long: "Show the modes that a task in this folder (or -C DIR) may be in, which tools each allows,\n" +
			"and where it comes from: built in, the workspace's .roomodes, custom_modes.yaml beside\n" +
			"Roost's settings or in an editor's storage, or an import of Roo Code's. A mode that cannot be used is named with the\n" +
			"reason, and costs no other one.",
		Args: failure.Arguments(0, 0, "roost modes"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.modes(dir) },
	}
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	app.Complete(cmd, "workspace", app.Folders)
	return cmd
}

func (a *commands) modes(dir string) error {
	dir = a.Abs(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "look for the modes of " + dir,
			Why:  "there is no such folder",
			Try:  "roost modes -C DIR",
		}
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	set, problems := c.Modes(dir)
	if a.Flags.JSON {
		if problems == nil {
			problems = []string{}
		}
		return app.Encode(a.Out, struct {
			Items    []mode.Mode `json:"items"`
			Problems []string    `json:"problems"`
		}{set.All(), problems}, false)
	}
	if err := a.modeTable(set.All()); err != nil {
		return err
	}
	for _, p := range problems {
		a.Warn(p)
	}
	return nil
}

// modeTable writes a line a mode.
func (a *commands) modeTable(modes []mode.Mode) error {
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
func (a *commands) inColumns(rows [][]string, what string) error {
	style := a.OutStyle()
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
