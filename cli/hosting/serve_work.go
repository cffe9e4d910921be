package hosting

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/server"
)

// workFlags are how a server works on tasks. Each has a setting, too.
type workFlags struct {
	maxRuns, attempts int
	resume            bool
	hold, drain       time.Duration
	origins           []string
}

func (w *workFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&w.maxRuns, "max-runs", 8, "how many runs work at a time")
	f.DurationVar(&w.hold, "hold", 10*time.Minute,
		"how long a run waits for a person before it ends as waiting; 0: until it gets an answer")
	f.DurationVar(&w.drain, "drain-timeout", 30*time.Second, "how long runs are finished before the server ends")
	f.BoolVar(&w.resume, "auto-resume", false, "go on with runs that an earlier server was killed in")
	f.IntVar(&w.attempts, "resume-attempts", 3, "how often in a row the server continues one task by itself")
	f.StringArrayVar(&w.origins, "cors-origin", nil,
		"an `ORIGIN` whose web pages may ask with the token, exactly as browsers send it (again for more)")
	for _, name := range []string{"max-runs", "hold", "drain-timeout", "resume-attempts", "cors-origin"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
}

func (w *workFlags) check() error {
	switch {
	case w.maxRuns < 1:
		return failure.Usage("roost serve --max-runs", "at least one run at a time is needed", "roost serve --max-runs 8")
	case w.hold < 0 || w.drain < 0 || w.attempts < 0:
		return failure.Usage("roost serve", "a time or number cannot be negative", "roost serve --hold 10m --drain-timeout 30s")
	}
	for _, origin := range w.origins {
		if !server.ValidOrigin(origin) {
			return failure.Usage("roost serve --cors-origin "+origin,
				"that is no origin as browsers send it: scheme and host in small letters, and a port that is not the usual one; no pattern",
				"roost serve --cors-origin https://example.com")
		}
	}
	return nil
}

// settle sets the flags of the command that were not given from the settings.
func (a *commands) settle(cmd *cobra.Command) error {
	s, err := a.Settings()
	if err != nil {
		return err
	}
	for _, k := range config.Keys {
		v := s.Values[k.Name]
		if !app.Fills(cmd, k) || cmd.Flags().Changed(k.Flag) || !v.Set() {
			continue
		}
		texts := v.Value.List
		if !v.Value.IsList {
			texts = []string{v.Value.Text}
		}
		for _, text := range texts {
			if err := cmd.Flags().Set(k.Flag, text); err != nil {
				return &failure.Failure{Exit: failure.ExitConfig, Code: "configuration", What: "use the setting " + k.Name,
					Why: v.Origin + ": " + err.Error(),
					Try: "roost config set " + k.Name + " VALUE"}
			}
		}
	}
	return nil
}
