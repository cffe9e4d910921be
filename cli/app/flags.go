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
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/service"
)

// Request is what a command asks for: a new task, or another run of a task.
type Request struct {
	Task string // "" = a new one
	api.NewRun
}

// NewTask is the request for a new task.
func (r Request) NewTask() api.NewTask {
	return api.NewTask{Workspace: r.Workspace, Settings: r.Settings, Message: r.Message, Origin: "cli", OneRun: r.OneRun}
}

// RunFlags are the flags of run, resume and continue. Those that describe the run are members of Request.
type RunFlags struct {
	Request
	Output string // text or json
	Detach bool

	limits api.Limits
	images []string
}

// AddRunFlags adds the flags by which a command describes a run.
func (a *App) AddRunFlags(cmd *cobra.Command, r *RunFlags) {
	f := cmd.Flags()
	f.StringVarP(&r.Workspace, "workspace", "C", "", "the `folder` to work in (default: the current one, or the task's)")
	f.StringVar(&r.Mode, "mode", "", "the mode, e.g. code or ask (see roost modes)")
	f.StringVar(&r.Provider, "provider", "", "the model's provider: "+strings.Join(Providers, ", "))
	f.StringVar(&r.Model, "model", "", "the model, as the provider names it; for script: the file to play")
	f.StringVar(&r.BaseURL, "base-url", "", "the provider's address, for a proxy or a local server")
	f.StringVar(&r.Profile, "profile", "", "provider, model and settings of this `NAME` in the settings file")
	OneOf(cmd, &r.Approve, "approve", "", "what may run without asking: ask, read, edits or all", Policies...)
	f.StringArrayVar(&r.Allow, "allow", nil, "allow commands that begin with `WORDS`")
	f.StringArrayVar(&r.Deny, "deny", nil, "never allow commands that begin with `WORDS`")
	Amount(f, &r.limits.MaxCost, "max-cost", "stop when the run has spent this `AMOUNT` in US dollars")
	OneOf(cmd, &r.Effort, "effort", "", "how much the model thinks: none, minimal, low, medium, high, xhigh, max", api.Efforts...)
	Checked(f, "condense-at", "summarise older history when this `PERCENT` of the model's window is used (never: only truncate)",
		func(text string) error {
			n, err := strconv.Atoi(text)
			switch {
			case text == "":
				r.CondenseAt = nil
			case text == "never":
				r.CondenseAt = new(0)
			case err != nil || n < 5 || n > 100:
				return &failure.ValueError{Why: "it is no percentage between 5 and 100", Example: "75"}
			default:
				r.CondenseAt = &n
			}
			return nil
		})
	OneOf(cmd, &r.Stale, "stale", "", "when others change a file that the model knows: tell (show the differences) "+
		"or read (show the new content)", api.StaleTell, api.StaleRead)
	Limit(f, &r.MaxTokens, "max-tokens", "longest reply in tokens (0 = the model's limit)")
	f.StringArrayVar(&r.images, "image", nil, "an image `file` to send with the prompt (repeat for more)")
	f.BoolVarP(&r.Yes, "yes", "y", false, "allow everything that is not denied or protected (--approve all); on a resume: continue")
	Limit(f, &r.limits.MaxTurns, "max-turns", "stop after this many requests to the model (0 = no limit)")
	Span(f, "idle-timeout", "stop when nothing happens for this long", func(d time.Duration) { r.limits.IdleTimeout = new(d.String()) })
	f.BoolVar(&r.NoCheckpoints, "no-checkpoints", false, "save no checkpoints: files that this run changes cannot be restored")
	Span(f, "total-timeout", "stop after this long", func(d time.Duration) { r.limits.TotalTimeout = new(d.String()) })
	f.BoolVar(&r.Detach, "detach", false, "hand the run to a server (--server, or this root's own), and return at once")
	OneOf(cmd, &r.Output, "output", "text", "what stdout gets at the end: text (the result) or json (one document); "+
		"--json prints each event", "text", "json")
	f.BoolVar(&r.TrustSettings, "trust-settings", false, "accept the approvals, base URL and limits that an imported task came with")
	f.StringVar(&r.Task, "task", "", "continue this task (kept for the older client; see roost resume)")
	f.Bool("stream", false, "ignored: output always streams (kept for the older client)")
	f.StringArrayVar(&r.AllowTools, "allow-tool", nil, "let a tool, or read or write, run unasked: "+
		"`RULE` is write_to_file, \"write(docs/**)\", ...")
	f.StringArrayVar(&r.AskTools, "ask-tool", nil, "ask before what `RULE` covers, even where another rule allows it")
	f.StringArrayVar(&r.DenyTools, "deny-tool", nil, "refuse what `RULE` covers")
	Amount(f, &r.limits.MaxCostTask, "max-cost-task", "stop when the task and its subtasks have spent this `AMOUNT` in US dollars, ever")
	Amount(f, &r.MaxCostDay, "max-cost-day", "stop when all tasks together have spent this `AMOUNT` in US dollars today")
	Limit(f, &r.limits.AskAfterRequests, "ask-after-requests", "ask whether to continue after this many requests to the model")
	Amount(f, &r.limits.AskAfterCost, "ask-after-cost", "ask whether to continue after this `AMOUNT` of US dollars")
	Complete(cmd, "image", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"png", "jpg", "jpeg", "gif", "webp"}, cobra.ShellCompDirectiveFilterFileExt
	})
}

// CheckBaseURL checks --base-url. The error does not repeat the value: it may hold a password.
func CheckBaseURL(given string) error {
	if err := wire.CheckAddress(given); err != nil {
		return failure.Usage("use --base-url", err.Error(), "--base-url http://127.0.0.1:11434/v1  # the key is set separately: roost auth set PROVIDER")
	}
	return nil
}

// Options makes the request from the flags, with the words as its prompt.
func (a *App) Options(cmd *cobra.Command, r *RunFlags, words []string) (Request, error) {
	req := r.Request
	if err := CheckBaseURL(req.BaseURL); err != nil {
		return req, err
	}
	path := cmd.CommandPath()
	wrong := func(flag, why, try string) (Request, error) {
		return req, failure.Usage(path+" --"+flag, why, path+" --"+try)
	}
	switch {
	case cmd.Flags().Changed("task") && !service.ValidName(req.Task):
		return req, failure.Usage(path+" --task", fmt.Sprintf("%q is not a task's id", req.Task), "roost list")
	case r.Output == "json" && a.Flags.JSON:
		return wrong("output json --json", "stdout gets one document, or each event, not both", "output json")
	case r.Output == "json" && r.Detach:
		return wrong("output json --detach", "the document comes at the end of the run, and --detach does not wait for it",
			"detach --json  # then: roost wait ID --json")
	case req.Yes && req.Approve != "" && req.Approve != "all":
		return wrong("yes --approve "+req.Approve, "--yes means --approve all", "approve "+req.Approve)
	case req.Yes:
		req.Approve = "all"
	}
	req.Model, req.Workspace = a.Place().ModelName(req.Provider, req.Model), a.GivenFolder(req.Workspace)
	req.Unattended = !a.Interactive()
	if r.limits != (api.Limits{}) { // else the task keeps the limits that it has
		req.Limits = &r.limits
	}
	var message api.Words
	var err error
	if message.Images, err = a.Images(r.images); err != nil {
		return req, err
	}
	if message.Text, err = a.Prompt(words); message.Text != "" || len(message.Images) > 0 {
		req.Message = &message
	}
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
	media := api.PictureOf(data)
	if media == "" {
		return "", failure.Usage("send the image "+path, "it is "+http.DetectContentType(data)+"; providers take png, jpeg, gif and webp",
			"convert it to png")
	}
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// CompletionTime bounds how long a shell waits for ids with their titles. After that time it gets ids without titles.
const CompletionTime = 700 * time.Millisecond

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

// checked is the value of a flag that is checked when the command line is read.
type checked struct {
	text, kind string
	take       func(text string) error
}

func (c *checked) String() string { return c.text }

func (c *checked) Type() string { return c.kind }

// Set checks the text that was given, and keeps it.
func (c *checked) Set(text string) error {
	err := c.take(text)
	if err == nil {
		c.text = text
	}
	return err
}

// Checked adds a flag whose text take checks and keeps. It refuses a text with a *failure.ValueError.
func Checked(fl *pflag.FlagSet, name, usage string, take func(text string) error) {
	fl.Var(&checked{"", "string", take}, name, usage)
}

// OneOf adds a flag that takes one of some words, which a shell completes. name may end in a comma and a shorthand. An
// empty value counts as none.
func OneOf(cmd *cobra.Command, to *string, name, initial, usage string, words ...string) {
	*to = initial
	name, short, _ := strings.Cut(name, ",")
	what := "value"
	if parts := strings.Split(usage, "`"); len(parts) > 2 && len(words) > 1 { // the usage names the value
		what = parts[1]
	}
	cmd.Flags().VarP(&checked{initial, "string", func(text string) error {
		if text != "" && !slices.Contains(words, text) {
			return &failure.ValueError{Why: "there is no such " + what + "; there are " + strings.Join(words, ", "), Example: words[0]}
		}
		*to = cmp.Or(text, initial)
		return nil
	}}, name, short, usage)
	Complete(cmd, name, Words(words...))
}

// Number adds a flag for a whole number from least to most; most 0 means no bound. example is a value for an error, with
// other flags that the value needs.
func Number(fl *pflag.FlagSet, to *int, name string, initial, least, most int, example, usage string) {
	*to = initial
	number(fl, name, initial, least, most, example, usage, func(n int) { *to = n })
}

// Limit adds a flag for a number that is not negative; nil = it was not given.
func Limit(fl *pflag.FlagSet, to **int, name, usage string) {
	number(fl, name, 0, 0, 0, "20", usage, func(n int) { *to = &n })
}

func number(fl *pflag.FlagSet, name string, initial, least, most int, example, usage string, take func(int)) {
	want := fmt.Sprintf("want a whole number from %d on; it cannot be negative", least)
	if most > 0 {
		want = fmt.Sprintf("want a number from %d to %d", least, most)
	}
	fl.Var(&checked{strconv.Itoa(initial), "int", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || most > 0 && n > most {
			return &failure.ValueError{Why: want, Example: example}
		}
		take(n)
		return nil
	}}, name, usage)
}

// Span adds a flag for a time that is not negative.
func Span(fl *pflag.FlagSet, name, usage string, take func(time.Duration)) {
	fl.Var(&checked{"0", "duration", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return &failure.ValueError{Why: "want a time such as 90s, 10m or 2h", Example: "10m"}
		}
		take(d)
		return nil
	}}, name, usage)
}

// Amount adds a flag for an amount of US dollars; nil = it was not given.
func Amount(fl *pflag.FlagSet, to **money.USD, name, usage string) {
	Checked(fl, name, usage, func(text string) error {
		usd, err := money.Parse(strings.TrimPrefix(text, "$"))
		if text != "" && (err != nil || usd < 0) {
			return &failure.ValueError{Why: "want an amount of US dollars such as 0.50", Example: "0.50"}
		}
		if *to = &usd; text == "" {
			*to = nil
		}
		return nil
	})
}

// Moment adds a flag for a time, as Unix milliseconds; 0 = it was not given.
func (a *App) Moment(fl *pflag.FlagSet, to *int64, name, usage string) {
	Checked(fl, name, usage, func(text string) error {
		at, ok := api.Moment(text, a.Now())
		if text != "" && !ok {
			return &failure.ValueError{Why: "it is neither a time nor an age", Example: "7d"}
		}
		*to = at
		return nil
	})
}
