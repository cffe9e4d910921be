package failure

import (
	"errors"
	"strings"

	"github.com/roost-dev/roost/llm"
)

// providerAdvice is what helps a run that a provider ended, when another try would fail in
// the same way: another key or another model. why is added to the provider's message;
// both are "" when another try may help.
func providerAdvice(task string, err error) (try, why string) {
	var p *llm.Error
	if !errors.As(err, &p) {
		return "", ""
	}
	said := strings.ToLower(p.Message)
	resume := "roost resume " + ShellWord(task)
	switch {
	case p.Kind == llm.Auth:
		variable := strings.ToUpper(strings.ReplaceAll(p.Provider, "-", "_")) + "_API_KEY"
		return "roost auth set " + p.Provider + " && " + resume + "  # a key in " + variable + " goes before it", ""
	case p.Kind != llm.Invalid:
		return "", ""
	case toolless(said):
		return resume + " --model NAME", "; Roost works only with models that call tools"
	case p.Status == 404 || strings.Contains(said, "model") && (strings.Contains(said, "not exist") || strings.Contains(said, "not found")):
		return resume + " --model NAME  # roost models --provider " + p.Provider + " lists those that are known", ""
	}
	return "", ""
}

// toolless reports whether a server's message means that its model calls no tools, in the
// words of Ollama, OpenRouter, vLLM and llama.cpp.
func toolless(said string) bool {
	for _, words := range []string{
		"not support tools", "support tool use", "not support function calling", "not support tool",
		"enable-auto-tool-choice", "tools param requires --jinja",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
