package failure

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm"
)

// causeAdvice is the advice for a run whose request got no answer, by the cause. It follows the command that resumes.
var causeAdvice = []struct {
	cause error
	try   string
}{
	{llm.ErrNotRunning, "  # once the model server runs; or with --base-url URL, --provider NAME"},
	{llm.ErrRefused, "  # once the model server runs; or with --base-url URL"},
	{llm.ErrUnknownHost, "  # or with --base-url URL, if the address is wrong"},
	{llm.ErrCertificate, "  # with SSL_CERT_FILE=FILE, if the certificate is one of your network"},
	{llm.ErrNotHTTP, " --base-url URL"},
	{llm.ErrProxy, "  # after correcting HTTPS_PROXY, HTTP_PROXY or NO_PROXY"},
	{llm.ErrOffline, "  # once this machine is online"},
}

// billing maps providers to the pages on which an account gets credit.
var billing = map[string]string{
	"anthropic": "https://console.anthropic.com/settings/billing",
	"openai":    "https://platform.openai.com/settings/organization/billing",
	"google":    "https://console.cloud.google.com/billing",
}

// providerAdvice returns the advice for a run that a provider ended, when another try would fail in the same way:
// another key or another model, or something to check first. why is added to the provider's message. Both are "" when
// another try may help.
func providerAdvice(task string, err error) (try, why string) {
	var p *llm.Error
	if !errors.As(err, &p) {
		return "", ""
	}
	said := strings.ToLower(p.Message)
	resume := "roost resume " + api.ShellWord(task)
	for _, a := range causeAdvice {
		if errors.Is(p, a.cause) {
			return resume + a.try, ""
		}
	}
	switch {
	case p.Try != "":
		first, remark, _ := strings.Cut(p.Try, "  # ")
		if remark != "" {
			remark = "  # " + remark
		}
		return first + "; then " + resume + remark, ""
	case errors.Is(p, llm.ErrCredit):
		page := cmp.Or(billing[p.Provider], "your provider's page for billing")
		return resume + "  # with credit from " + page + "; or with --provider NAME or --model NAME", "; the account has no credit left"
	case p.Kind == llm.Auth:
		variable := strings.ToUpper(strings.ReplaceAll(p.Provider, "-", "_")) + "_API_KEY"
		if names := setup.KeyVariables(p.Provider); len(names) > 0 {
			variable = names[0]
		}
		return "roost auth set " + p.Provider + " && " + resume + "  # a key in " + variable + " overrides it", ""
	case p.Kind != llm.Invalid:
		return "", ""
	case toolless(said):
		return resume + " --model NAME", "; Roost works only with models that call tools"
	case p.Status == 404 && !strings.Contains(said, "model"):
		return resume + " --base-url URL  # the address may be wrong, or lack /v1", "; the server has no such page"
	case p.Status == 404 || strings.Contains(said, "model") && (strings.Contains(said, "not exist") || strings.Contains(said, "not found")):
		return resume + " --model NAME  # roost models --provider " + p.Provider + " lists those that are known", ""
	}
	return "", ""
}

// toolless reports whether a server's message means that its model calls no tools, in the words of Ollama, OpenRouter,
// vLLM and llama.cpp.
func toolless(said string) bool {
	return slices.ContainsFunc([]string{
		"not support tools", "support tool use", "not support function calling", "not support tool",
		"enable-auto-tool-choice", "tools param requires --jinja",
	}, func(words string) bool { return strings.Contains(said, words) })
}
