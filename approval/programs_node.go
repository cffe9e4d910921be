package approval

const (
	nodeRun  = "silent verbose quiet if-present workspaces workspace include-workspace-root recursive parallel filter"
	nodeTake = "silent verbose quiet no-audit no-fund ignore-scripts dry-run frozen-lockfile prefer-offline offline no-progress legacy-peer-deps immutable"
)

// nodeRuns runs a script of package.json. What it is given reaches the script.
var nodeRuns = usage{short: "sdqr", valued: "wF", long: nodeRun, words: inside, hands: true}

// nodeInstalls takes what package.json names. A package that the line names is new, and
// brings scripts of its own.
var nodeInstalls = usage{short: "sdq", long: nodeTake, words: never}

var nodeReads = usage{short: "slagq", long: "json all depth long parseable global production omit silent prod dev", words: inside}

var nodeSubs = map[string]usage{
	"test": nodeRuns, "t": nodeRuns, "run": nodeRuns, "run-script": nodeRuns, "start": nodeRuns, "stop": nodeRuns, "restart": nodeRuns, "build": nodeRuns, "lint": nodeRuns,
	"ci": nodeInstalls, "install": nodeInstalls, "i": nodeInstalls,
	"ls": nodeReads, "list": nodeReads, "view": nodeReads, "info": nodeReads, "show": nodeReads, "outdated": nodeReads, "why": nodeReads, "explain": nodeReads, "ping": nodeReads, "version": {words: never},
	"audit": {long: "json omit production audit-level", words: never}, "root": {}, "bin": {}, "prefix": {words: never}, "whoami": {}, "doctor": {words: never}, "fund": {words: never, long: "json"},
}

var nodePrograms = map[string]program{
	"npm pnpm yarn bun": {before: "--version", subs: nodeSubs},
	"tsc":               {usage: usage{single: true, long: "noEmit pretty version v strict skipLibCheck noEmitOnError w watch", words: never}},
	"eslint":            {usage: usage{long: "quiet ext max-warnings no-color color no-error-on-unmatched-pattern version", words: inside}},
	"prettier":          {usage: usage{short: "cl", long: "check list-different no-color color version ignore-unknown", words: inside}},
	"vitest jest mocha": {usage: usage{short: "it", long: "verbose silent coverage bail watchAll ci testNamePattern passWithNoTests runInBand onlyChanged version colors no-coverage run grep", words: inside}},
}
