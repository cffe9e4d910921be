package workspace

import "testing"

func TestSteers(t *testing.T) {
	for _, name := range []string{
		".envrc", ".husky/pre-commit", ".npmrc", ".pre-commit-config.yaml", ".github/workflows/ci.yml", ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".cursor/rules", ".claude/settings.json", "CLAUDE.md", "sub/claude.md",
		".mcp.json", ".kilocode/mcp.json", ".cargo/config.toml", ".gitmodules", ".gitattributes", ".gdbinit", ".exrc", ".bashrc", "deep/in/.envrc", "GEMINI.md", "AGENTS.md", ".cursorrules", ".clinerules", ".roorules", ".windsurfrules", ".eslintrc.js", ".prettierrc.cjs",
		"a/./.envrc", ".envrc.", ".ENVRC", "CLAUDE.md ", ".gitignore/x/.y", "\u200b.envrc", ".env", ".github/copilot-instructions.md", "/home/me/.bashrc",
	} {
		if !SteersAgents(name) {
			t.Errorf("%q is free", name)
		}
	}
	for _, name := range []string{".gitignore", "sub/.gitignore", ".editorconfig", ".prettierrc", ".prettierrc.json", ".eslintrc.yml", "a.go", "./a", "../a", "claude.mdx", "docs/README.md", ".env.example", "a.b/c"} {
		if SteersAgents(name) {
			t.Errorf("%q asks", name)
		}
	}
}
