package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/service"
)

// RunFlags are the flags of run, resume and continue.
type RunFlags struct {
	Dir, Mode, Provider, Model, BaseURL, Profile, effort, Approve, MaxCost, condenseAt, stale, Task string
	Output                                                                                          string // text or json
	taskCost, dayCost, askCost                                                                      string
	images, Allow, Deny, allowTools, askTools, denyTools                                            []string
	Yes, Detach, unkept, trust                                                                      bool
	MaxTurns, maxTokens, askRequests                                                                int
	Idle, Total                                                                                     time.Duration
}

// AddRunFlags adds the flags by which a command describes a run.
func (a *App) AddRunFlags(cmd *cobra.Command, r *RunFlags) {
	f := cmd.Flags()
	f.StringVarP(&r.Dir, "workspace", "C", "", "the `folder` to work in (default: the current one, or the task's)")
	f.StringVar(&r.Mode, "mode", "", "the mode, e.g. code or ask (see roost modes)")
	f.StringVar(&r.Provider, "provider", "", "the model's provider: "+strings.Join(Providers, ", "))
	f.StringVar(&r.Model, "model", "", "the model, as the provider names it; for script: the file to play")
	f.StringVar(&r.BaseURL, "base-url", "", "the provider's address, for a proxy or a local server")
	f.StringVar(&r.Profile, "profile", "", "provider, model and settings of this `NAME` in the settings file")
	f.StringVar(&r.Approve, "approve", "", "what may run without asking: ask, read, edits or all")
	f.StringArrayVar(&r.Allow, "allow", nil, "allow commands that begin with `WORDS`")
	f.StringArrayVar(&r.Deny, "deny", nil, "never allow commands that begin with `WORDS`")
	f.StringVar(&r.MaxCost, "max-cost", "", "stop when the run has spent this `AMOUNT` in US dollars")
	f.StringVar(&r.effort, "effort", "", "how much the model thinks: none, minimal, low, medium, high, xhigh, max")
	f.StringVar(&r.condenseAt, "condense-at", "",
		"summarise older history when this `PERCENT` of the model's window is used (never: only truncate)")
	f.StringVar(&r.stale, "stale", "", "when others change a file that the model knows: tell (show the differences) "+
		"or read (show the new content)")
	f.IntVar(&r.maxTokens, "max-tokens", 0, "longest reply in tokens (0 = the model's limit)")
	f.StringArrayVar(&r.images, "image", nil, "an image `file` to send with the prompt (repeat for more)")
	f.BoolVarP(&r.Yes, "yes", "y", false, "allow everything that is not denied or protected (--approve all); on a resume: continue")
	f.IntVar(&r.MaxTurns, "max-turns", 0, "stop after this many requests to the model (0 = no limit)")
	f.DurationVar(&r.Idle, "idle-timeout", 0, "stop when nothing happens for this long")
	f.BoolVar(&r.unkept, "no-checkpoints", false, "save no checkpoints: files that this run changes cannot be restored")
	f.DurationVar(&r.Total, "total-timeout", 0, "stop after this long")
	f.BoolVar(&r.Detach, "detach", false, "hand the run to a server (--server, or this root's own), and return at once")
	f.StringVar(&r.Output, "output", "text", "what stdout gets at the end: text (the result) or json (one document); "+
		"--json prints each event")
	Complete(cmd, "output", Words(outputs...))
	f.BoolVar(&r.trust, "trust-settings", false, "accept the approvals, base URL and limits that an imported task came with")
	f.StringVar(&r.Task, "task", "", "continue this task (kept for the older client; see roost resume)")
	f.Bool("stream", false, "ignored: output always streams (kept for the older client)")
	f.StringArrayVar(&r.allowTools, "allow-tool", nil, "let a tool, or read or write, run unasked: "+
		"`RULE` is write_to_file, \"write(docs/**)\", ...")
	f.StringArrayVar(&r.askTools, "ask-tool", nil, "ask before what `RULE` covers, even where another rule allows it")
	f.StringArrayVar(&r.denyTools, "deny-tool", nil, "refuse what `RULE` covers")
	f.StringVar(&r.taskCost, "max-cost-task", "", "stop when the task and its subtasks have spent this `AMOUNT` in US dollars, ever")
	f.StringVar(&r.dayCost, "max-cost-day", "", "stop when all tasks together have spent this `AMOUNT` in US dollars today")
	f.IntVar(&r.askRequests, "ask-after-requests", 0, "ask whether to continue after this many requests to the model")
	f.StringVar(&r.askCost, "ask-after-cost", "", "ask whether to continue after this `AMOUNT` of US dollars")
	Complete(cmd, "image", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"png", "jpg", "jpeg", "gif", "webp"}, cobra.ShellCompDirectiveFilterFileExt
	})
}

// Request makes the request to the engine from the flags and the prompt.
func (a *App) Request(cmd *cobra.Command, r *RunFlags, words []string) (engine.Request, error) {
	req, err := a.Options(cmd, r)
	if err != nil {
		return req, err
	}
	req.Text, err = a.Prompt(words)
	return req, err
}

// CheckBaseURL checks --base-url. The error does not repeat the value: it may hold a password.
func CheckBaseURL(given string) error {
	if err := wire.CheckAddress(given); err != nil {
		return failure.Usage("use --base-url", err.Error(), "--base-url http://127.0.0.1:11434/v1  # the key is set separately: roost auth set PROVIDER")
	}
	return nil
}

// Options makes the request from the flags alone, without a prompt.
func (a *App) Options(cmd *cobra.Command, r *RunFlags) (engine.Request, error) {
	req := engine.Request{
		Choice: setup.Choice{
			Mode: r.Mode, Provider: r.Provider, Model: r.Model, BaseURL: r.BaseURL, Profile: r.Profile,
			Effort: r.effort, Stale: r.stale, Approve: r.Approve, Allow: r.Allow, Deny: r.Deny,
			AllowTools: r.allowTools, AskTools: r.askTools, DenyTools: r.denyTools,
		},
		Yes: r.Yes, Origin: "cli", Interactive: a.Interactive(), TrustSettings: r.trust,
	}
	if err := CheckBaseURL(r.BaseURL); err != nil {
		return req, err
	}
	path := cmd.CommandPath()
	wrong := func(flag, why, try string) (engine.Request, error) {
		return req, failure.Usage(path+" --"+flag, why, path+" --"+try)
	}
	if cmd.Flags().Changed("task") && !service.ValidName(r.Task) {
		return req, failure.Usage(path+" --task", fmt.Sprintf("%q is not a task's id", r.Task), "roost list")
	}
	req.Task, req.Model = r.Task, a.Place().ModelName(r.Provider, r.Model)
	req.Workspace, req.NoCheckpoints = a.GivenFolder(r.Dir), r.unkept
	switch {
	case r.Output != "" && !slices.Contains(outputs, r.Output):
		return wrong("output "+r.Output, "there is no such form", "output "+strings.Join(outputs, "|"))
	case r.Output == "json" && a.Flags.JSON:
		return wrong("output json --json", "stdout gets one document, or each event, not both", "output json")
	case r.Output == "json" && r.Detach:
		return wrong("output json --detach", "the document comes at the end of the run, and --detach does not wait for it",
			"detach --json  # then: roost wait ID --json")
	}
	for _, f := range []struct {
		flag, value string
		known       []string
	}{{"approve", r.Approve, Policies}, {"effort", r.effort, api.Efforts}, {"stale", r.stale, []string{api.StaleTell, api.StaleRead}}} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			return wrong(f.flag+" "+f.value, "there is no such value", f.flag+" "+strings.Join(f.known, "|"))
		}
	}
	switch n, err := strconv.Atoi(r.condenseAt); {
	case r.condenseAt == "never":
		req.Condense = -1
	case r.condenseAt != "" && (err != nil || n < 5 || n > 100):
		return wrong("condense-at "+r.condenseAt, "it is no percentage between 5 and 100", "condense-at 75")
	default:
		req.Condense = n
	}
	if cmd.Flags().Changed("max-tokens") {
		if req.MaxTokens = config.OrNone(r.maxTokens); r.maxTokens < 0 { // without one, the model's own limit counts
			return req, failure.Usage(path, "the number of tokens cannot be negative", path+" --max-tokens 32000")
		}
	}
	if r.Yes {
		if r.Approve != "" && r.Approve != "all" {
			return wrong("yes --approve "+r.Approve, "--yes means --approve all", "approve "+r.Approve)
		}
		req.Approve = "all"
	}
	var err error
	if req.Limits, err = r.Limits(cmd); err != nil {
		return req, err
	}
	if req.MaxDayMicros, err = micros(cmd, "max-cost-day", r.dayCost); err != nil {
		return req, err
	}
	if cmd.Flags().Changed("max-cost-day") {
		req.MaxDayMicros = config.OrNone(req.MaxDayMicros)
	}
	req.Images, err = a.Images(r.images)
	return req, err
}

// Prompt joins the words of the command line; a single "-" means stdin.
func (a *App) Prompt(words []string) (string, error) {
	if len(words) != 1 || words[0] != "-" {
		return strings.Join(words, " "), nil
	}
	data, err := io.ReadAll(a.In)
	if err != nil {
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.TrimSpace(text) == "" {
		return "", failure.Usage("read the prompt from stdin", "stdin is empty", "echo PROMPT | roost run -")
	}
	return text, nil
}

// Limits is nil when no limit was given: the task keeps the limits that it has. A flag of 0 removes a limit; the engine
// takes a negative number for that.
func (r *RunFlags) Limits(cmd *cobra.Command) (*api.RunLimits, error) {
	usd, wrong := micros(cmd, "max-cost", r.MaxCost)
	tree, wrongTree := micros(cmd, "max-cost-task", r.taskCost)
	ask, wrongAsk := micros(cmd, "ask-after-cost", r.askCost)
	if err := cmp.Or(wrong, wrongTree, wrongAsk); err != nil {
		return nil, err
	}
	if r.askRequests < 0 {
		return nil, failure.Usage(cmd.CommandPath()+" --ask-after-requests", "a limit cannot be negative", cmd.CommandPath()+" --ask-after-requests 20")
	}
	if r.MaxTurns < 0 || r.Idle < 0 || r.Total < 0 {
		return nil, failure.Usage(cmd.CommandPath(), "a limit cannot be negative", cmd.CommandPath()+" --max-turns 20")
	}
	any := false
	limit := func(flag string, n int64) int64 {
		if !cmd.Flags().Changed(flag) {
			return 0
		}
		any = true
		return config.OrNone(n)
	}
	l := &api.RunLimits{
		MaxTurns: int(limit("max-turns", int64(r.MaxTurns))), MaxCostMicros: limit("max-cost", usd),
		IdleTimeoutMS: limit("idle-timeout", config.Millis(r.Idle)), TotalTimeoutMS: limit("total-timeout", config.Millis(r.Total)),
		MaxTaskMicros: limit("max-cost-task", tree), AskCostMicros: limit("ask-after-cost", ask),
		AskRequests: int(limit("ask-after-requests", int64(r.askRequests))),
	}
	if !any {
		return nil, nil
	}
	return l, nil
}

// ImageLimit is the smallest of the big providers' limits for one image, so that a task can continue with any of them.
const ImageLimit = 5 << 20

// Images reads image files as data URLs.
func (a *App) Images(names []string) ([]string, error) {
	return api.TryEach(names, func(name string) (string, error) { return Image(a.Abs(name)) })
}

// Image reads an image file as a data URL.
func Image(path string) (string, error) {
	f, err := inputfile.Open(path)
	if err != nil {
		return "", failure.Usage("send the image "+path, "it is not a file that can be read: "+err.Error(), "roost run --image FILE PROMPT")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, ImageLimit+1))
	if err != nil {
		return "", fmt.Errorf("send the image %s: %w", path, err)
	}
	if len(data) > ImageLimit {
		return "", failure.Usage("send the image "+path, fmt.Sprintf("it is larger than %d bytes, which is the most that providers take",
			ImageLimit), "make it smaller")
	}
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
	}
	return "", failure.Usage("send the image "+path, "it is "+kind+"; providers take png, jpeg, gif and webp", "convert it to png")
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

// CompletionTime bounds how long a shell waits for ids with their titles. After that time it gets ids without titles.
const CompletionTime = 700 * time.Millisecond

// outputs are the values of --output.
var outputs = []string{"text", "json"}

// The values of the flags --provider, --approve and --sort.
var (
	Providers = []string{"anthropic", "openai", "openai-compatible", "google", "bedrock", "vertex", "azure", "script"}
	Policies  = []string{"ask", "read", "edits", "all"}
	Sorts     = []string{"newest", "oldest", "cost", "tokens"}
)

// Completer completes an argument or the value of a flag.
type Completer = cobra.CompletionFunc

// Words completes one word of a list.
func Words(list ...string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// First completes the first argument only.
func First(c Completer) Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, begun)
	}
}

// Folders completes names of folders.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// TaskIDs completes the ids of tasks, newest first, with their titles.
func (a *App) TaskIDs(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTime)
	defer cancel()
	var out []string
	add := func(source, id, title string) {
		if !api.ValidTaskID(id) { // the shell would run or split it
			return
		}
		if strings.Contains(begun, ":") {
			id = source + ":" + id
		}
		if !strings.HasPrefix(id, begun) {
			return
		}
		if title = display.Cut(display.OneLine(title), 50); title != "" {
			id += "\t" + title
		}
		out = append(out, id)
	}
	return a.CompletingInOrder(func() ([]string, error) {
		err := a.Connect(cmd.Context(), func(c *client.Client) error {
			var tasks []api.Summary
			for part, err := range c.List(ctx, 1) {
				if err != nil {
					return a.completeNames(cmd.Context(), c, add)
				}
				tasks = part.Items
			}
			slices.SortFunc(tasks, func(x, y api.Summary) int { return cmp.Compare(y.TS, x.TS) })
			for _, t := range tasks {
				add(t.Source, t.ID, t.Title)
			}
			return nil
		})
		return out, err
	})
}

// completeNames completes the ids without titles, where reading the tasks takes too long.
func (a *App) completeNames(ctx context.Context, c *client.Client, add func(source, id, title string)) error {
	names, err := client.Get[api.Names](ctx, c, "/v1/names", nil)
	for _, r := range names.Items {
		add(r.Source, r.ID, "")
	}
	return err
}

// SourceNames completes the names of storages and of tools.
func (a *App) SourceNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Completing(func() (out []string, err error) {
		err = a.Connect(cmd.Context(), func(c *client.Client) error {
			sources, err := client.Get[struct{ Items []api.SourceState }](cmd.Context(), c, "/v1/sources", nil)
			for _, src := range sources.Items {
				out = append(out, src.Name+"\t"+display.OneLine(src.Path))
			}
			return err
		})
		return out, err
	})
}

// Completing completes the words that list returns. After a failure it completes nothing: a completion has no place for
// an error.
func (a *App) Completing(list func() ([]string, error)) ([]string, cobra.ShellCompDirective) {
	a.Muted = true
	out, err := list()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// CompletingInOrder is Completing for words that a shell does not sort.
func (a *App) CompletingInOrder(list func() ([]string, error)) ([]string, cobra.ShellCompDirective) {
	out, how := a.Completing(list)
	return out, how | cobra.ShellCompDirectiveKeepOrder
}

// Models completes the known models of the provider; for provider script, files.
func Models(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	provider, _ := cmd.Flags().GetString("provider")
	if provider == "script" {
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return api.Some(catalogue.Offers(), func(m api.Model) (string, bool) {
		return m.ID, provider == "" || m.Provider == provider
	}), cobra.ShellCompDirectiveNoFileComp
}

// SettingKeys completes a setting's name, then its value.
func SettingKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		out := api.Each(config.Keys, func(k config.Key) string { return k.Name + "\t" + k.Doc })
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	values := map[string][]string{
		"approve": Policies, "provider": Providers, "sources": {"auto", "none"}, "theme": theme.Settings,
		"notify": {"auto", "off", "bell", "osc9"}, "notify_on": {notify.NoEnds, notify.FailedEnds, notify.AllEnds}, "notify_text": {"true", "false"},
	}
	return values[args[0]], cobra.ShellCompDirectiveNoFileComp
}

// Complete sets how the value of a flag is completed. Cobra fails only for an unknown flag, and the caller has defined the
// flag, so the error is impossible.
func Complete(cmd *cobra.Command, flag string, c Completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic("complete --" + flag + ": " + err.Error())
	}
}

// ModeNames completes the modes of the workspace that the command line names.
func (a *App) ModeNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Completing(func() (out []string, err error) {
		dir, _ := cmd.Flags().GetString("workspace")
		c, err := a.EngineConfig()
		if err != nil {
			return nil, err
		}
		set, _ := c.Modes(a.Abs(dir))
		for _, m := range set.All() {
			out = append(out, m.Slug+"\t"+display.Cut(display.OneLine(m.Description), 60))
		}
		return out, nil
	})
}

// ProfileNames completes the profiles of the settings file.
func (a *App) ProfileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.Completing(func() ([]string, error) {
		s, err := a.Settings()
		if err != nil {
			return nil, err
		}
		names, _ := config.Profiles(s.Values, s.File)
		return names, nil
	})
}
