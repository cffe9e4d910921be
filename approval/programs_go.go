package approval

// goBuild are flags that go's build commands share and that neither write nor run.
const goBuild = "v x n a p race msan tags trimpath buildvcs "

// goPrograms are go's own; -test.*, -args, -o, -exec and profiles are not in the table.
var goPrograms = map[string]program{
	"go": {subs: map[string]usage{
		"test":    {single: true, long: goBuild + "run count short cover covermode coverpkg timeout parallel bench benchtime benchmem cpu list failfast json shuffle skip vet fullpath", words: inside},
		"build":   {single: true, long: goBuild, words: inside},
		"vet":     {single: true, long: goBuild + "json c printf copylocks unusedresult assign atomic shadow", words: inside},
		"run":     {single: true, long: goBuild, words: plainFile},
		"fmt":     {single: true, long: "n x", words: inside},
		"list":    {single: true, long: goBuild + "m json deps test f e u versions find compiled retracted reuse", words: inside},
		"mod":     {single: true, long: "v x json go compat m", verbs: "tidy verify why graph download"},
		"get":     {single: true, long: "u t v x", words: inside},
		"env":     {single: true, long: "json changed", words: inside},
		"doc":     {single: true, long: "all u src short c cmd", words: inside},
		"version": {single: true, long: "m v", words: inside},
		"help":    {},
		"work":    {verbs: "sync"},
	}},
	"gofmt": {usage: usage{single: true, long: "l d e s", words: inside}},
	"golangci-lint": {subs: map[string]usage{
		"run":     {short: "v", valued: "jED", long: "verbose timeout new new-from-rev fast no-config concurrency enable disable tests allow-parallel-runners", words: inside},
		"version": {}, "linters": {},
	}},
	"staticcheck": {usage: usage{single: true, long: "checks f tests tags go", words: inside}},
	"cargo": {subs: map[string]usage{
		"build":    cargoBuild,
		"b":        cargoBuild,
		"check":    cargoBuild,
		"c":        cargoBuild,
		"test":     cargoBuild,
		"t":        cargoBuild,
		"bench":    cargoBuild,
		"doc":      {short: "vqr", valued: "pjF", long: cargoLong + " no-deps document-private-items", words: inside},
		"run":      cargoBuild,
		"clippy":   {short: "vqr", valued: "pjFDWA", long: cargoLong + " no-deps", words: inside},
		"fmt":      {short: "vq", valued: "p", long: "all check package verbose quiet", words: inside},
		"tree":     {short: "vqdei", valued: "pieF", long: cargoLong + " invert depth duplicates edges prefix no-dedupe format", words: inside},
		"metadata": {long: "no-deps format-version offline locked frozen all-features", words: inside},
		"version":  {short: "v", long: "verbose"},
		"nextest":  {short: "vqr", valued: "pjFE", long: cargoLong, verbs: "run list", words: inside},
	}},
	"rustc": {usage: usage{short: "vV", long: "version verbose explain", words: never}},
}

const cargoLong = "release all all-targets all-features no-default-features features package bin bins lib tests examples example test benches bench workspace exclude jobs verbose quiet locked offline frozen message-format " +
	"no-run no-fail-fast doc keep-going color nocapture no-capture test-threads ignored include-ignored exact skip list show-output profile target timings version"

var cargoBuild = usage{short: "vqrk", valued: "pjF", long: cargoLong, words: inside}
