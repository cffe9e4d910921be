package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// layers are the packages of the house from the roof down. A package may import packages of lower layers, and its own
// subpackages or parents. Neighbours in one layer import each other only where the table neighbours allows it. A name
// in the table means the package and everything below it, unless a longer name overrides it.
//
// workspace/terminal is separate from workspace: it is text in, text out, and touches no file. A package that is not
// in the tree yet costs nothing here.
var layers = [][]string{
	{"cmd/roost", "bench", "internal/testing/crashloop", "internal/testing/crashtest", "internal/testing/checkpointtest", "internal/testing/mutate"},
	{"cli"},
	{"cli/tasks", "cli/running", "cli/editing", "cli/hosting", "cli/settings", "cli/try", "internal/testing/clitest"},
	{"cli/app", "cli/help"},
	{"cli/failure"},
	{"cli/chat", "cli/picker"},
	{"cli/term"},
	{"cli/markdown"},
	{"cli/theme"},
	{"local"},
	{"server", "web"},
	{"client"},
	{"service"},
	{"export", "report", "config", "accounts", "migrate"},
	{"view"},
	{"engine"},
	{"events"},
	{"agent", "internal/testing/llmtest", "internal/testing/apirules"},
	{"llm", "tool", "contextwindow", "resume", "mode", "mention", "approval"},
	{"mcp", "checkpoint"},
	{"workspace", "internal/testing/storetest", "internal/testing/faultfs"},
	{"store"},
	{"journal", "task", "roofmt", "usage", "catalog", "content"},
	{"api", "database", "internal/progress", "internal/dirstat"},
	{"docs", "esjson", "money", "redact", "workspace/terminal", "task/codec", "internal/failpoint", "internal/inputfile",
		"internal/filelock", "internal/atomicfile", "internal/keyed", "internal/process", "internal/testing/conformance", "internal/testing/mcptest", "internal/testing/fixture",
		"internal/testing/screen", "internal/testing/pgtest", "internal/highlight"},
	{"internal/lazyregexp", "internal/sleep"},
}

// neighbours are the allowed imports inside a layer.
var neighbours = map[string][]string{
	"internal/testing/crashloop": {"internal/testing/crashtest"}, // the loop runs what the tests run, more often
	"approval":                   {"tool"},                       // it judges what a tool asks for
	"mention":                    {"tool"},                       // it shows a file as read_file does
	"contextwindow":              {"llm"},                        // it builds what a provider is sent
	"task":                       {"journal", "usage"},           // it gives a journal's commits their meaning, and keeps what a row costs
	"resume":                     {"contextwindow"},              // what it mends is judged by what may be sent
	"redact":                     {"workspace/terminal"},         // pure text, like redact itself

	// It holds cases as raw JSON.
	"internal/testing/conformance": {"esjson"},
}

// strangers are packages that must not import each other although the layers would allow it. A name is an entry of
// the table, or one package. Tests are free to import them: they may run a package on its real surroundings.
var strangers = map[string]struct {
	from   []string
	reason string
}{
	"agent": {
		from:   []string{"store", "roofmt", "journal/filelog", "checkpoint"},
		reason: "the agent names what it needs of a task in an interface of its own",
	},
	"llm": {
		from:   []string{"workspace", "store", "journal", "task", "roofmt", "usage"},
		reason: "a provider knows requests and replies, not tasks or disks",
	},
	"tool": {
		from:   []string{"store", "journal", "task", "roofmt", "usage"},
		reason: "a tool touches the user's files and knows no history",
	},
	"mcp": {
		from:   []string{"store", "journal", "task", "roofmt", "usage"},
		reason: "connections to servers know no tasks",
	},
	"checkpoint": {
		from:   []string{"store", "roofmt", "journal/filelog"},
		reason: "a checkpoint knows files and contents, not where tasks are kept",
	},
	"checkpoint/gitstore": {
		from:   []string{"workspace", "store", "journal", "task", "roofmt", "usage", "catalog"},
		reason: "a reader of old stores knows their files only",
	},
	"workspace": {
		from:   []string{"store", "journal", "task", "roofmt", "usage"},
		reason: "the user's files do not depend on how tasks are kept",
	},
}

// owner returns the entry of the layer table that a package belongs to: the longest one that fits.
func owner(pkg string) (entry string, layer int, ok bool) {
	for i, row := range layers {
		for _, name := range row {
			if inside(pkg, name) && len(name) > len(entry) {
				entry, layer, ok = name, i, true
			}
		}
	}
	return entry, layer, ok
}

// testSupport holds the packages that only tests use. Tests of every layer may import them.
const testSupport = "internal/testing"

// judge returns why a package may not import another one, "" when it may.
func judge(from, to string, test bool) string {
	if inside(from, to) || inside(to, from) || test && inside(to, testSupport) {
		return ""
	}
	fromName, fromLayer, ok := owner(from)
	if !ok {
		return "" // reported once, as a package without a place
	}
	toName, toLayer, ok := owner(to)
	switch {
	case !ok:
		return ""
	case toLayer < fromLayer:
		return fmt.Sprintf("%s is above %s", toName, fromName)
	case test || toName == fromName:
		return ""
	case toLayer == fromLayer && !slices.Contains(neighbours[fromName], toName):
		return fmt.Sprintf("%s and %s are neighbours and do not know each other", fromName, toName)
	}
	for _, who := range []string{from, fromName} {
		for _, name := range strangers[who].from {
			if inside(to, name) {
				return strangers[who].reason
			}
		}
	}
	return ""
}

// inside reports whether a package is dir or below it.
func inside(pkg, dir string) bool {
	return pkg == dir || strings.HasPrefix(pkg, dir+"/")
}
