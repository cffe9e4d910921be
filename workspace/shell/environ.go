package shell

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// markVar carries the marks of a command and of those it was started by,
// separated by commas.
const markVar = "ROOST_COMMAND"

// secretVars hold the keys with which Roost itself asks models. A command has no
// business with them. Variables of the user's own tools (GITHUB_TOKEN, AWS_...)
// stay: their commands need them, and output is masked elsewhere.
var secretVars = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "COHERE_API_KEY",
	"DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
	"GROQ_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY", "OPENROUTER_API_KEY",
	"PERPLEXITY_API_KEY", "REQUESTY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
}

// plainVars make programs behave without a terminal: no pager, no prompt, no
// colour.
var plainVars = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat", "AWS_PAGER=",
	"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "DEBIAN_FRONTEND=noninteractive",
}

// gitSettings keep git from taking any folder with the right names in it for a
// repository, and from running the program that a repository names for its status.
var gitSettings = [][2]string{{"safe.bareRepository", "explicit"}, {"core.fsmonitor", "false"}}

// withGitSettings adds them behind those that the environment holds already.
func withGitSettings(env []string) []string {
	values := map[string]string{}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_CONFIG_") {
			values[name] = value
		}
	}
	n, err := strconv.Atoi(values["GIT_CONFIG_COUNT"])
	if err != nil || n < 0 || n > 1000 {
		n = 0
	}
	for _, s := range gitSettings {
		at := n
		for i := range n {
			if values[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)] == s[0] && values[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)] == s[1] {
				at = i // it is there from a command that this one runs in
			}
		}
		env = set(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", at, s[0]))
		env = set(env, fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", at, s[1]))
		n = max(n, at+1)
	}
	return set(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}

// Environ returns the environment a command gets, made from base: without keys
// of model providers and without ROOST_* variables, with settings that keep
// programs from asking, paging and colouring, and git from running what a folder names. The order is base's order.
func Environ(base []string) []string {
	out := make([]string, 0, len(base)+len(plainVars))
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if !hidden(name) {
			out = append(out, kv)
		}
	}
	for _, kv := range plainVars {
		out = set(out, kv)
	}
	return withGitSettings(out)
}

func hidden(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "ROOST_") || slices.Contains(secretVars, upper)
}

// set replaces or appends one variable.
func set(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	kept := env[:0]
	for _, e := range env {
		n, _, _ := strings.Cut(e, "=")
		if n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			continue
		}
		kept = append(kept, e)
	}
	return append(kept, kv)
}

// marked reports whether one environment, cut from text that is separated by NUL or newline, carries mark.
func marked(kv, mark string) bool {
	v, ok := strings.CutPrefix(kv, markVar+"=")
	return ok && mark != "" && slices.Contains(strings.Split(v, ","), mark)
}

// NewMark makes a mark for Command.Mark: a unique word. A caller that
// records it before the command starts can find what the command started even if
// the engine dies before it learns of the process: FindMarked needs no number.
func NewMark() string { return rand.Text() }

// usableMark reports whether a mark can be put in the list that the environment
// variable holds.
func usableMark(mark string) bool {
	return mark != "" && len(mark) <= 128 && !strings.ContainsAny(mark, ",=\x00\n")
}

// EndMarked ends every process that FindMarked finds, and those they start
// in the meantime: SIGTERM, a short grace, SIGKILL. It returns what it found at first,
// nil when there was nothing. The error is the context's, or names processes that
// would not end.
func EndMarked(ctx context.Context, mark string) ([]Member, error) {
	found := FindMarked(mark)
	if len(found) == 0 {
		return nil, nil
	}
	look := func(p Process) []Member { return FindMarked(p.Mark) }
	return found, endWithin(ctx, Process{Mark: mark}, look, "command with mark "+mark)
}

// endWithin is end for a caller who may give up. It still waits for the end of
// the attempt, which is bounded: an owner waits for its goroutines.
func endWithin(ctx context.Context, p Process, look func(Process) []Member, what string) error {
	done := make(chan []Member, 1)
	go func() { done <- end(p, look) }()
	select {
	case left := <-done:
		if len(left) > 0 {
			return fmt.Errorf("end %s: %d processes would not end, the first is %d (%s); end it by hand", what, len(left),
				left[0].PID, left[0].Name)
		}
		return nil
	case <-ctx.Done():
		<-done
		return context.Cause(ctx)
	}
}
