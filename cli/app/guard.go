package app

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/money"
)

// guardFlags are the flags of a run that decide what needs no question: rules of tools and
// files, and limits in addition to the run's own.
type guardFlags struct {
	allow, ask, deny           []string
	taskCost, dayCost, askCost string
	askRequests                int
}

func (g *guardFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&g.allow, "allow-tool", nil, "let a tool, or read or write, run unasked: "+
		"`RULE` is write_to_file, \"write(docs/**)\", ...")
	f.StringArrayVar(&g.ask, "ask-tool", nil, "ask before what `RULE` covers, even where another rule allows it")
	f.StringArrayVar(&g.deny, "deny-tool", nil, "refuse what `RULE` covers")
	f.StringVar(&g.taskCost, "max-cost-task", "", "stop when the task and its subtasks have ever spent this `AMOUNT` of US dollars")
	f.StringVar(&g.dayCost, "max-cost-day", "", "stop when all tasks together have spent this `AMOUNT` of US dollars today")
	f.IntVar(&g.askRequests, "ask-after-requests", 0, "ask whether to go on after this many requests to the model")
	f.StringVar(&g.askCost, "ask-after-cost", "", "ask whether to go on after this `AMOUNT` of US dollars")
	for _, name := range []string{"allow-tool", "ask-tool", "deny-tool", "max-cost-task", "max-cost-day", "ask-after-requests",
		"ask-after-cost"} {
		Complete(cmd, name, cobra.NoFileCompletions)
	}
}

// request puts the rules into what the engine takes.
func (g *guardFlags) request(cmd *cobra.Command, req *engine.Request) error {
	req.AllowTools, req.AskTools, req.DenyTools = g.allow, g.ask, g.deny
	day, err := micros(cmd, "max-cost-day", g.dayCost)
	if req.MaxDayMicros = day; day == 0 && cmd.Flags().Changed("max-cost-day") {
		req.MaxDayMicros = -1 // a 0 that was given takes the limit away
	}
	return err
}

// limits adds what of them belongs to the task.
func (g *guardFlags) limits(cmd *cobra.Command, l *api.RunLimits, limit func(flag string, n int64) int64) error {
	tree, err := micros(cmd, "max-cost-task", g.taskCost)
	if err != nil {
		return err
	}
	ask, err := micros(cmd, "ask-after-cost", g.askCost)
	if err != nil {
		return err
	}
	if g.askRequests < 0 {
		return failure.Usage(cmd.CommandPath()+" --ask-after-requests", "a limit cannot be negative", cmd.CommandPath()+" --ask-after-requests 20")
	}
	l.MaxTaskMicros, l.AskCostMicros = limit("max-cost-task", tree), limit("ask-after-cost", ask)
	l.AskRequests = int(limit("ask-after-requests", int64(g.askRequests)))
	return nil
}

// micros reads an amount in micro-dollars; "" is none.
func micros(cmd *cobra.Command, flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	usd, err := money.Parse(text)
	if path := cmd.CommandPath(); err != nil || usd < 0 {
		return 0, failure.Usage(path+" --"+flag+" "+text, "want an amount of US dollars such as 0.50", path+" --"+flag+" 0.50")
	}
	return int64(usd), nil
}
