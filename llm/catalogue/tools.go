package catalogue

import "strings"

// Tools says with which of the tools that do the same work a model was seen to do
// better: those it wants beside the usual ones, and those that it does without. Nothing
// is known of most models.
//
// It goes by families and not by the table of models: who makes a model decides it, and
// a model that came out today belongs to a family, too. What it says is what Roo Code
// tells its own models (`includedTools`, `excludedTools`): GPT from 4.1 on was trained
// with apply_patch, Gemini does better with edit_file, Grok with search_replace. Other
// sellers' ids of the same models count ("openai/gpt-5.1").
func Tools(provider, model string) (wants, spares []string) {
	id := strings.ToLower(model)
	_, name, resold := strings.Cut(id, "/")
	if !resold {
		name = id
	}
	switch {
	case provider == "anthropic", provider == "script":
	case strings.HasPrefix(name, "gpt-4o"), strings.HasPrefix(name, "gpt-4-"), name == "gpt-4", strings.HasPrefix(name, "gpt-3"), strings.HasPrefix(name, "gpt-oss"):
	case strings.HasPrefix(name, "gpt-"), strings.HasPrefix(name, "codex-"):
		return []string{"apply_patch"}, []string{"apply_diff", "write_to_file"}
	case strings.HasPrefix(name, "gemini-"):
		return []string{"edit_file"}, []string{"apply_diff", "apply_patch"}
	case strings.HasPrefix(name, "grok-"):
		return []string{"search_replace"}, []string{"apply_diff", "apply_patch"}
	}
	return nil, nil
}
