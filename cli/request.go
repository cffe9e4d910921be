package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/money"
)

// runFlags are the flags of run, resume and continue.
type runFlags struct {
	dir, mode, provider, model, baseURL, profile, effort, approve, maxCost, condenseAt, stale, task string
	images, allow, deny                                                                             []string
	yes, stream, detach, unkept, far, trust                                                         bool
	maxTurns, maxTokens                                                                             int
	idle, total                                                                                     time.Duration
	guard                                                                                           guardFlags
}

func (a *App) addRunFlags(cmd *cobra.Command, r *runFlags) {
	f := cmd.Flags()
	f.StringVarP(&r.dir, "workspace", "C", "", "the `folder` to work in (default: the current one, or the task's)")
	f.StringVar(&r.mode, "mode", "", "the mode, e.g. code or ask (see roost modes)")
	f.StringVar(&r.provider, "provider", "", "the model's provider: anthropic, openai, openai-compatible, google, script")
	f.StringVar(&r.model, "model", "", "the model; for script: the file to play")
	f.StringVar(&r.baseURL, "base-url", "", "the provider's address")
	f.StringVar(&r.profile, "profile", "", "provider, model and settings of this `NAME` in the settings file")
	f.StringVar(&r.effort, "effort", "", "how much the model thinks: none, minimal, low, medium, high, xhigh, max")
	f.StringVar(&r.condenseAt, "condense-at", "",
		"summarise older history when this `PERCENT` of the model's window is used (never: only truncate)")
	complete(cmd, "condense-at", words("never", "50", "75", "90", "100"))
	f.StringVar(&r.stale, "stale", "", "what the model gets of a file that others changed: tell (the differences) "+
		"or read (the new content)")
	complete(cmd, "stale", words(api.StaleTell, api.StaleRead))
	f.IntVar(&r.maxTokens, "max-tokens", 0, "tokens of one reply (0 = the model's limit)")
	complete(cmd, "profile", a.profileNames)
	complete(cmd, "effort", words(api.Efforts...))
	complete(cmd, "max-tokens", cobra.NoFileCompletions)
	f.StringArrayVar(&r.images, "image", nil, "an image `file` to send along (again for more)")
	f.StringVar(&r.approve, "approve", "", "what is allowed without asking: ask, read, edits, all")
	f.BoolVarP(&r.yes, "yes", "y", false, "allow everything that is not denied or protected (--approve all); on a resume: go on")
	f.StringArrayVar(&r.allow, "allow", nil, "allow commands that begin with `WORDS`")
	f.StringArrayVar(&r.deny, "deny", nil, "never allow commands that begin with `WORDS`")
	f.IntVar(&r.maxTurns, "max-turns", 0, "stop after this many requests to the model (0 = no limit)")
	f.StringVar(&r.maxCost, "max-cost", "", "stop when this `AMOUNT` of US dollars is spent")
	f.DurationVar(&r.idle, "idle-timeout", 0, "stop when nothing happens for this long")
	f.BoolVar(&r.unkept, "no-checkpoints", false, "keep nothing of the files that this run changes: they cannot be put back")
	f.DurationVar(&r.total, "total-timeout", 0, "stop after this long")
	f.BoolVar(&r.detach, "detach", false, "leave the run to a server (--server, or the one of this root that runs), and end")
	f.BoolVar(&r.trust, "trust-settings", false, "take over the approvals, base URL and limits that a received task came with")
	f.StringVar(&r.task, "task", "", "continue this task (for users of the older client)")
	f.BoolVar(&r.stream, "stream", false, "has no effect: output always streams (for users of the older client)")
	r.guard.add(cmd)
	complete(cmd, "workspace", folders)
	complete(cmd, "mode", a.modeNames)
	complete(cmd, "provider", words(providers...))
	complete(cmd, "approve", words(policies...))
	complete(cmd, "model", models)
	complete(cmd, "task", a.taskIDs)
	complete(cmd, "image", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"png", "jpg", "jpeg", "gif", "webp"}, cobra.ShellCompDirectiveFilterFileExt
	})
	for _, name := range []string{"base-url", "allow", "deny", "max-turns", "max-cost", "idle-timeout", "total-timeout"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
}

var idForm = regexp.MustCompile(`^([A-Za-z0-9._-]+:)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// request reads the flags and the prompt into what the engine takes.
func (a *App) request(cmd *cobra.Command, r *runFlags, words []string) (engine.Request, error) {
	req, err := a.options(cmd, r)
	if err != nil {
		return req, err
	}
	req.Text, err = a.prompt(words)
	return req, err
}

// address checks --base-url. The error does not repeat the value: it may hold a password.
func (r *runFlags) address() error {
	if err := wire.CheckAddress(r.baseURL); err != nil {
		return usage("use --base-url", err.Error(), "--base-url http://127.0.0.1:11434/v1  # keys are set apart: roost auth set PROVIDER")
	}
	return nil
}

// options reads the flags alone.
func (a *App) options(cmd *cobra.Command, r *runFlags) (engine.Request, error) {
	req := engine.Request{
		Choice: setup.Choice{
			Mode: r.mode, Provider: r.provider, Model: r.model, BaseURL: r.baseURL, Profile: r.profile,
			Effort: r.effort, Stale: r.stale, Approve: r.approve, Allow: r.allow, Deny: r.deny,
		},
		NoCheckpoints: r.unkept, Yes: r.yes, Origin: "cli", Interactive: a.interactive(), TrustSettings: r.trust,
	}
	if err := r.address(); err != nil {
		return req, err
	}
	path := cmd.CommandPath()
	if cmd.Flags().Changed("task") && !idForm.MatchString(r.task) {
		return req, usage(path+" --task", fmt.Sprintf("%q is not a task's id", r.task), "roost list")
	}
	req.Task, req.Model = r.task, a.modelName(r.provider, r.model)
	if r.dir != "" {
		req.Workspace = a.abs(r.dir)
	}
	if r.approve != "" && !slices.Contains(policies, r.approve) {
		return req, usage(path+" --approve "+r.approve, "there is no such policy", path+" --approve "+strings.Join(policies, "|"))
	}
	if r.effort != "" && !slices.Contains(api.Efforts, r.effort) {
		return req, usage(path+" --effort "+r.effort, "there is no such value", path+" --effort "+strings.Join(api.Efforts, "|"))
	}
	if !slices.Contains([]string{"", api.StaleTell, api.StaleRead}, r.stale) {
		return req, usage(path+" --stale "+r.stale, "there is no such value", path+" --stale tell|read")
	}
	switch n, err := strconv.Atoi(r.condenseAt); {
	case r.condenseAt == "never":
		req.Condense = -1
	case r.condenseAt != "" && (err != nil || n < 5 || n > 100):
		return req, usage(path+" --condense-at "+r.condenseAt, "it is no percentage between 5 and 100", path+" --condense-at 75")
	default:
		req.Condense = n
	}
	if cmd.Flags().Changed("max-tokens") {
		if req.MaxTokens = r.maxTokens; r.maxTokens < 0 {
			return req, usage(path, "the number of tokens cannot be negative", path+" --max-tokens 32000")
		} else if r.maxTokens == 0 {
			req.MaxTokens = -1 // the model's own limit
		}
	}
	if r.yes {
		if r.approve != "" && r.approve != "all" {
			return req, usage(path+" --yes --approve "+r.approve, "--yes means --approve all", path+" --approve "+r.approve)
		}
		req.Approve = "all"
	}
	var err error
	if req.Limits, err = r.limits(cmd); err != nil {
		return req, err
	}
	if err := r.guard.request(cmd, &req); err != nil {
		return req, err
	}
	for _, name := range r.images {
		url, err := image(a.abs(name))
		if err != nil {
			return req, err
		}
		req.Images = append(req.Images, url)
	}
	return req, nil
}

// prompt joins the words of the command line; a single "-" means stdin.
func (a *App) prompt(words []string) (string, error) {
	if len(words) != 1 || words[0] != "-" {
		return strings.Join(words, " "), nil
	}
	data, err := io.ReadAll(a.In)
	if err != nil {
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.TrimSpace(text) == "" {
		return "", usage("read the prompt from stdin", "stdin is empty", "echo PROMPT | roost run -")
	}
	return text, nil
}

// millis rounds up to milliseconds: a small limit must not become 0, which means none.
func millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// limits is nil when no limit was given: the task keeps what it has. A flag of 0 removes a
// limit; the engine takes a negative number for that.
func (r *runFlags) limits(cmd *cobra.Command) (*api.RunLimits, error) {
	var usd money.USD
	path := cmd.CommandPath()
	if r.maxCost != "" {
		var err error
		if usd, err = money.Parse(r.maxCost); err != nil || usd < 0 {
			return nil, usage(path+" --max-cost "+r.maxCost, "want an amount of US dollars such as 0.50", path+" --max-cost 0.50")
		}
	}
	if r.maxTurns < 0 || r.idle < 0 || r.total < 0 {
		return nil, usage(path, "a limit cannot be negative", path+" --max-turns 20")
	}
	any := false
	limit := func(flag string, n int64) int64 {
		if !cmd.Flags().Changed(flag) {
			return 0
		}
		if any = true; n == 0 {
			return -1
		}
		return n
	}
	l := &api.RunLimits{
		MaxTurns: int(limit("max-turns", int64(r.maxTurns))), MaxCostMicros: limit("max-cost", int64(usd)),
		IdleTimeoutMS: limit("idle-timeout", millis(r.idle)), TotalTimeoutMS: limit("total-timeout", millis(r.total)),
	}
	if err := r.guard.limits(cmd, l, limit); err != nil {
		return nil, err
	}
	if !any {
		return nil, nil
	}
	return l, nil
}

// imageLimit is the smallest of the big providers' limits for one image, so that
// a task can go on with any of them.
const imageLimit = 5 << 20

// image reads an image file as a data URL.
func image(path string) (string, error) {
	f, err := inputfile.Open(path)
	if err != nil {
		return "", usage("send the image "+path, "it is not a file that can be read: "+err.Error(), "roost run --image FILE PROMPT")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, imageLimit+1))
	if err != nil {
		return "", fmt.Errorf("send the image %s: %w", path, err)
	}
	if len(data) > imageLimit {
		return "", usage("send the image "+path, fmt.Sprintf("it is larger than %d bytes, which is the most that providers take",
			imageLimit), "make it smaller")
	}
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
	}
	return "", usage("send the image "+path, "it is "+kind+"; providers take png, jpeg, gif and webp", "convert it to png")
}
