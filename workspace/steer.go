package workspace

import (
	"path"
	"strings"
)

// harmlessDotFiles are hidden files that tools only read lists and styles from. Other hidden
// files may name programs or steer agents and editors. Forms that are programs (.js, .cjs,
// .ts) are not among them.
var harmlessDotFiles = names(".gitignore .gitkeep .keep .dockerignore .npmignore .prettierignore .eslintignore " +
	".stylelintignore .helmignore .editorconfig .nvmrc .node-version .python-version .ruby-version .env.example .env.sample " +
	".prettierrc .prettierrc.json .prettierrc.yaml .prettierrc.yml .prettierrc.toml .eslintrc .eslintrc.json .eslintrc.yaml " +
	".eslintrc.yml .stylelintrc .stylelintrc.json .stylelintrc.yaml .stylelintrc.yml .markdownlint.json .markdownlint.yaml " +
	".markdownlint.yml .clang-format")

// agentInstructions are files that agents obey.
var agentInstructions = names("agents.md agents.local.md agents.override.md agent.md claude.md claude.local.md gemini.md " +
	"qwen.md crush.md codex.md warp.md kilo.md roo.md copilot-instructions.md skill.md")

func names(list string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(list) {
		m[n] = true
	}
	return m
}

// SteersAgents reports whether a path, with "/" between names, is a hidden file, is in a hidden
// folder or is one that agents obey. It may make programs run or agents do things
// long after it was written.
func SteersAgents(name string) bool {
	name = plainNames(path.Clean(name))
	last := strings.ToLower(path.Base(name))
	if agentInstructions[last] {
		return true
	}
	for dir := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(dir, ".") && dir != "." && dir != ".." && !harmlessDotFiles[strings.ToLower(dir)] {
			return true
		}
	}
	return false
}
