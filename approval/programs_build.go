package approval

// builders run what a project defines: who allows those by name means that.
var builders = map[string]program{
	"make gmake":     {usage: usage{short: "kniBsqw", valued: "jl", long: "jobs keep-going dry-run just-print silent quiet always-make question load-average no-print-directory version trace", words: inside}},
	"ninja":          {usage: usage{short: "vn", valued: "jkl", long: "version verbose quiet", words: inside}},
	"just":           {usage: usage{short: "lnq", long: "list dry-run quiet summary", words: inside}},
	"pytest py.test": {usage: usage{short: "qvxsl", valued: "kmnr", long: "quiet verbose exitfirst lf last-failed ff failed-first nf new-first sw stepwise maxfail durations tb collect-only co no-header no-summary showlocals strict-markers color version markers fixtures cache-show disable-warnings numprocesses capture", words: inside}},
	"mypy":           {usage: usage{long: "strict ignore-missing-imports pretty show-error-codes no-incremental version no-color-output", words: inside}},
	"ruff":           {subs: map[string]usage{"check": {short: "q", long: "quiet no-fix statistics select ignore diff no-cache", words: inside}, "format": {long: "check diff quiet", words: inside}, "version": {}}},
	"black":          {usage: usage{short: "qv", long: "check diff quiet verbose", words: inside}},
	"flake8":         {usage: usage{short: "qv", long: "count statistics max-line-length select ignore", words: inside}},
	"pip pip3":       {subs: map[string]usage{"list": {long: "outdated format"}, "show": {short: "f", words: inside}, "freeze": {}, "check": {}}},
	"mkdir":          {usage: usage{short: "pv", long: "parents verbose", words: plainFile}},
	"touch":          {usage: usage{short: "acm", words: plainFile}},
}

// pythonTools are modules that "python3 -m" runs as programs of the same name.
var pythonTools = set("pytest", "mypy", "black", "flake8", "ruff")
