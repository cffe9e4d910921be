package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxTool is the longest name that all providers take.
const maxTool = 64

var (
	foreign = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	dashes  = regexp.MustCompile(`--+`)
)

// Sanitise makes a name fit for providers as Roo does: blanks become "_", and characters
// other than letters, digits, "_" and "-" are removed. Repeated dashes are removed too,
// because two of them separate a tool's name from its server's. The result begins with a
// letter or "_".
func Sanitise(name string) string {
	name = strings.ReplaceAll(name, " ", "_")
	name = dashes.ReplaceAllString(foreign.ReplaceAllString(name, ""), "-")
	if name == "" || !(name[0] == '_' || 'a' <= name[0] && name[0] <= 'z' || 'A' <= name[0] && name[0] <= 'Z') {
		name = "_" + name
	}
	return name
}

// ToolName is the name by which a model calls a server's tool. A name that is too long is
// cut, and ends in a hash of the whole.
func ToolName(server, tool string) string {
	name := "mcp--" + Sanitise(server) + "--" + Sanitise(tool)
	if len(name) > maxTool {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxTool-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Canonical is the name under which a tool is offered, given a name with "__" where
// the offered one has "--". ok reports whether it is the name of a server's tool at all.
func Canonical(name string) (canonical string, ok bool) {
	if strings.HasPrefix(name, "mcp--") {
		return name, true
	}
	server, found := strings.CutPrefix(name, "mcp__")
	if !found {
		return name, false
	}
	server, tool, found := strings.Cut(server, "__")
	return "mcp--" + server + "--" + tool, found
}
