package roofmt

import (
	"path/filepath"
	"strings"
)

// Tool names the program that wrote a task.
type Tool string

// The known writers. UnknownTool is the zero value.
const (
	UnknownTool Tool = ""
	Roo         Tool = "roo"
	Cline       Tool = "cline"
	Zoo         Tool = "zoo"
	Kilo        Tool = "kilo"
)

// Origin is what path and content show of the writer. It is always inferred: nothing in the files names it.
type Origin struct {
	Tool     Tool
	Era      string // of a folder that Read has read: "claude-dev" (2024), "xml" (tools as text), "native" (tool_use blocks), "" when no message shows it
	Inferred bool   // true whenever Tool or Era is set
	Evidence string // the sign that decided
}

// CLIOrigin is the origin of tasks that a tool without an editor made.
const CLIOrigin = "cli"

// PlaceOrigin infers from a folder's path how its task was begun: Roo's command line tool has a storage of its own.
func PlaceOrigin(dir string) string {
	if strings.Contains(filepath.ToSlash(dir)+"/", "/.vscode-mock/") {
		return CLIOrigin
	}
	return "extension"
}

// SaidOrigin is the origin that the item of a Cline session names, "" when it names none, or an editor.
func SaidOrigin(item []byte) string {
	switch said := text(item, "source"); said {
	case CLIOrigin, "api", "web":
		return said
	}
	return ""
}

// toolOfPath reads the extension's folder name out of a path: out of the one that is given, else out of the one that its links
// lead to.
func toolOfPath(path string) (Tool, string) {
	tool, sign := signInPath(path)
	if tool == UnknownTool {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return signInPath(real)
		}
	}
	return tool, sign
}

func signInPath(path string) (Tool, string) {
	p := strings.ToLower(filepath.ToSlash(path))
	for _, m := range [...]struct {
		sign string
		tool Tool
	}{
		{"wecode-ai.zoo-code", Zoo}, {"/.zoo-code/", Zoo}, {"zoocodeorganization.zoo-code", Zoo},
		{"kilocode.kilo-code", Kilo},
		{"rooveterinaryinc.roo-", Roo}, {"roo-code.roo-cline", Roo}, {"/.vscode-mock/", Roo}, {"/.roo/", Roo},
		{"/.roocode/", Roo}, {"/.agentz/", Roo},
		{"saoudrizwan.", Cline}, {"/.cline/", Cline},
	} {
		if strings.Contains(p+"/", m.sign) {
			return m.tool, "path: " + strings.Trim(m.sign, "/")
		}
	}
	return UnknownTool, ""
}
