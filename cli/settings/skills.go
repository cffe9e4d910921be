package settings

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/workspace/skill"
)

func (a *commands) skillsCommand() *cobra.Command {
	var dir, slug string
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Show the skills that a task may use, and where each comes from",
		Long: "Show the skills that a task in this folder (or -C DIR) may use in a mode. A skill is a\n" +
			"folder with a SKILL.md that begins with name and description; it is in .roo/skills,\n" +
			".agents/skills, or for one mode in skills-MODE beside them, of the workspace or of your\n" +
			"home folder. A model gets names and descriptions, and gets the text when it asks for\n" +
			"it; /NAME in your words gives it. A skill that cannot be used is named with the reason.",
		Args: failure.Arguments(0, 0, "roost skills"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.skills(dir, slug) },
	}
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	cmd.Flags().StringVar(&slug, "mode", mode.Default, "the mode")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "mode", a.ModeNames)
	return cmd
}

func (a *commands) skills(dir, slug string) error {
	dir = a.Abs(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "look for the skills of " + dir,
			Why:  "there is no such folder",
			Try:  "roost skills -C DIR",
		}
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	modes, _ := c.Modes(dir)
	if _, err := modes.Lookup(slug); err != nil {
		return failure.Usage("roost skills --mode "+slug, err.Error(), "roost modes")
	}
	list, problems := c.Skills(dir).In(slug)
	if a.Flags.JSON {
		if list == nil {
			list = []skill.Skill{}
		}
		for i := range list {
			if list[i].Modes == nil {
				list[i].Modes = []string{}
			}
		}
		if problems == nil {
			problems = []string{}
		}
		return app.Encode(a.Out, struct {
			Items    []skill.Skill `json:"items"`
			Problems []string      `json:"problems"`
		}{list, problems}, false)
	}
	rows := [][]string{{"SKILL", "MODES", "FROM", "DESCRIPTION"}}
	for _, k := range list {
		only := strings.Join(k.Modes, ", ")
		if only == "" {
			only = "all"
		}
		rows = append(rows, []string{k.Name, only, k.Source, k.Description})
	}
	if err := a.inColumns(rows, "skills"); err != nil {
		return err
	}
	for _, p := range problems {
		a.Warn(p)
	}
	return nil
}
