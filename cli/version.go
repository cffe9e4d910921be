package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set when a release is built; otherwise the build information tells.
var Version = ""

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  count(0, 0, "roost version"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string `json:"version"`
				Commit   string `json:"commit"`
				Date     string `json:"build_date"`
				Modified bool   `json:"modified"`
				Go       string `json:"go"`
				OS       string `json:"os"`
				Arch     string `json:"arch"`
			}{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				if v.Version == "" {
					v.Version = info.Main.Version
				}
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						v.Commit = s.Value
					case "vcs.time":
						v.Date = s.Value
					case "vcs.modified":
						v.Modified = s.Value == "true"
					}
				}
			}
			if v.Version == "" || v.Version == "(devel)" {
				v.Version = "dev"
			}
			if a.flags.json {
				return encode(a.Out, v, false)
			}
			line := "roost " + v.Version
			if v.Commit != "" {
				line += " " + v.Commit[:min(12, len(v.Commit))]
			}
			if _, err := fmt.Fprintf(a.Out, "%s (%s, %s/%s)\n", line, v.Go, v.OS, v.Arch); err != nil {
				return fmt.Errorf("print the version: %w", err)
			}
			return nil
		},
	}
}
