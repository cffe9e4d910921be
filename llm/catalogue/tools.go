package catalogue

import "strings"

// Tools returns which of several tools for the same work a model uses better: the tools it
// wants in addition to the usual ones, and those it does without. Both are empty for most
// models.
//
// It goes by families of models and not by the table: the maker decides what a model was
// trained with, and a model that came out today belongs to a family too. The values are
// those of Roo Code (`includedTools`, `excludedTools`): GPT from 4.1 on was trained with
// apply_patch, Gemini does better with edit_file, Grok with search_replace. Other sellers'
// ids of the same models count too ("openai/gpt-5.1").
func Tools(provider, model string) (wants, spares []string) {
	id := strings.ToLower(model)
	_, name, resold := strings.Cut(id, "/")
	if !resold {
		name = id
	}
	switch {
	case provider == "anthropic", provider == "script":
	case strings.HasPrefix(name, "gpt-4o"), strings.HasPrefix(name, "gpt-4-"), name == "gpt-4",
		strings.HasPrefix(name, "gpt-3"), strings.HasPrefix(name, "gpt-oss"):
	case strings.HasPrefix(name, "gpt-"), strings.HasPrefix(name, "codex-"):
		return []string{"apply_patch"}, []string{"apply_diff", "write_to_file"}
	case strings.HasPrefix(name, "gemini-"):
		return []string{"edit_file"}, []string{"apply_diff", "apply_patch"}
	case strings.HasPrefix(name, "grok-"):
		return []string{"search_replace"}, []string{"apply_diff", "apply_patch"}
	}
	return nil, nil
}
