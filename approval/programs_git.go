package approval

import "regexp"

// Options that several subcommands of git share.
const (
	diffShort  = "pusbwWzMCDRa" + digits
	diffValued = "USGlMC"
	diffLong   = "patch no-patch unified raw stat shortstat numstat dirstat compact-summary summary name-only name-status color no-color color-words word-diff word-diff-regex " +
		"cached staged minimal patience histogram diff-algorithm ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines function-context " +
		"find-renames no-renames find-copies diff-filter pickaxe-all pickaxe-regex abbrev full-index binary check exit-code quiet relative no-relative text no-prefix no-ext-diff no-textconv " +
		"ignore-submodules submodule inter-hunk-context merge-base stat-width stat-count indent-heuristic color-moved"
	logShort  = "qgicEFPnt"
	logValued = "nL"
	logLong   = "oneline graph decorate no-decorate all branches tags remotes author committer grep invert-grep since after until before max-count skip merges no-merges first-parent follow " +
		"format pretty date abbrev-commit no-abbrev-commit reverse topo-order date-order author-date-order full-history simplify-merges ancestry-path left-right cherry-pick cherry-mark " +
		"no-notes notes source walk-reflogs boundary no-walk left-only right-only cherry count parents children name-only relative-date regexp-ignore-case log-size show-pulls max-parents min-parents glob exclude"
)

var (
	// remote is a repository by its address at a server. A folder could hold hooks.
	remoteAddress = regexp.MustCompile(`^(https?|ssh|git)://[A-Za-z0-9][^~]*$|^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_/][A-Za-z0-9_./-]*$|^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)
	// reference is a name, which neither forces nor deletes one.
	reference = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:^~@{}-]*$`)
)

// remotes are the usual names. Another word could be a folder with hooks of its own.
const remotes = "origin upstream"

var gitDiff = usage{short: diffShort, valued: diffValued, long: diffLong}

var gitLog = usage{short: diffShort + logShort, valued: diffValued + logValued, long: diffLong + " " + logLong}

var gitPrograms = map[string]program{"git": {before: "--no-pager --version --no-optional-locks", subs: map[string]usage{
	"status":        {short: "sbvz", valued: "u", long: "short branch long porcelain verbose show-stash untracked-files ignored ignore-submodules ahead-behind no-ahead-behind no-renames renames column no-column"},
	"log":           gitLog,
	"show":          gitLog,
	"whatchanged":   gitLog,
	"reflog":        {short: logShort + digits, valued: logValued, long: logLong, verbs: "show HEAD"},
	"diff":          gitDiff,
	"diff-tree":     {short: diffShort + "rtmc", valued: diffValued, long: diffLong + " root no-commit-id"},
	"diff-index":    gitDiff,
	"diff-files":    gitDiff,
	"range-diff":    {long: "no-color color no-dual-color"},
	"shortlog":      {short: "nsec" + digits, long: "numbered summary email all no-merges since until"},
	"blame":         {short: "lstfnwebcpMC" + digits, valued: "LS", long: "date porcelain line-porcelain show-email show-name show-number root no-color abbrev"},
	"annotate":      {short: "lt", valued: "L"},
	"grep":          {short: "aivwIrhHlLcnEFGPopqWz" + digits, valued: "eABCm", long: "text ignore-case invert-match word-regexp files-with-matches name-only files-without-match count line-number column extended-regexp fixed-strings perl-regexp only-matching show-function function-context heading break max-depth max-count all-match and or not cached untracked color no-color after-context before-context context quiet recursive no-recursive"},
	"branch":        {short: "arvqil", long: "all remotes list verbose show-current contains no-contains merged no-merged sort format points-at column no-column color no-color abbrev no-abbrev ignore-case quiet", words: reference},
	"tag":           {short: "lain" + digits, valued: "m", long: "list sort contains no-contains merged no-merged points-at format column no-column message annotate ignore-case"},
	"describe":      {long: "tags all long always dirty abbrev match exclude contains exact-match first-parent candidates"},
	"rev-parse":     {short: "q", long: "short verify quiet abbrev-ref symbolic-full-name show-toplevel show-prefix show-cdup show-superproject-working-tree git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches tags remotes show-object-format symbolic"},
	"rev-list":      {short: "n" + digits, valued: "n", long: logLong + " objects disk-usage"},
	"ls-files":      {short: "cdomikuszt", valued: "x", long: "cached deleted modified others ignored stage unmerged killed exclude-standard full-name error-unmatch deduplicate abbrev eol directory"},
	"ls-tree":       {short: "drtlz", long: "name-only name-status long full-name full-tree abbrev object-only"},
	"cat-file":      {short: "epts"},
	"name-rev":      {long: "tags name-only refs"},
	"merge-base":    {short: "a", long: "all octopus is-ancestor fork-point independent"},
	"for-each-ref":  {long: "count sort format points-at merged no-merged contains no-contains ignore-case"},
	"show-ref":      {short: "dqs", long: "head heads tags branches dereference hash verify quiet abbrev"},
	"show-branch":   {short: "ar", long: "all remotes current topics list"},
	"count-objects": {short: "vH", long: "verbose human-readable"},
	"check-ignore":  {short: "qvnz", long: "quiet verbose non-matching no-index"},
	"check-attr":    {short: "az", long: "all cached"},
	"cherry":        {short: "v", long: "abbrev"},
	"hash-object":   {short: "t"},
	"symbolic-ref":  {short: "q", long: "short quiet", most: 1},
	"fsck":          {long: "full no-dangling unreachable root tags no-progress connectivity-only"},
	"version":       {long: "build-options"},
	"remote":        {short: "v", long: "verbose", verbs: "get-url"},
	"worktree":      {long: "porcelain", short: "v", verbs: "list"},
	"notes":         {verbs: "list show"},
	"bundle":        {verbs: "verify list-heads"},
	"stash":         {short: "puqk", valued: "m", long: "patch stat message keep-index no-keep-index include-untracked staged index quiet name-only name-status", verbs: "push pop apply list show save"},
	"submodule":     {long: "recursive cached", verbs: "status summary"},
	"archive":       {short: "l", long: "format prefix list"},

	"add":             {short: "AunvfN", long: "all update dry-run verbose force intent-to-add no-all ignore-errors"},
	"commit":          {hooks: true, short: "aqvsnm", valued: "m", long: "all message quiet verbose signoff amend no-edit allow-empty allow-empty-message dry-run no-verify short branch porcelain no-gpg-sign fixup squash reset-author no-status only include"},
	"checkout":        {hooks: true, short: "bqtd", long: "quiet detach track no-track ours theirs guess no-guess progress no-progress orphan"},
	"switch":          {hooks: true, short: "cqtd", long: "create quiet detach track no-track guess no-guess progress no-progress orphan"},
	"restore":         {short: "SWq", valued: "s", long: "staged worktree source quiet ours theirs"},
	"reset":           {short: "qN", long: "soft mixed quiet no-quiet intent-to-add"},
	"merge":           {hooks: true, short: "nqm", valued: "m", long: "ff no-ff ff-only squash no-squash commit no-commit edit no-edit stat no-stat message abort continue quit quiet verbose signoff log"},
	"rebase":          {hooks: true, short: "qvn", long: "continue abort skip quit onto quiet verbose no-stat autostash no-autostash show-current-patch keep-base update-refs root fork-point no-fork-point signoff"},
	"cherry-pick":     {hooks: true, short: "nxs", valued: "m", long: "no-commit signoff continue abort skip quit mainline allow-empty ff"},
	"revert":          {hooks: true, short: "ns", valued: "m", long: "no-edit no-commit signoff continue abort skip quit mainline"},
	"mv":              {short: "nvk", long: "dry-run verbose", words: inside},
	"rm":              {short: "nqr", long: "cached dry-run quiet ignore-unmatch", words: inside},
	"clean":           {short: "ndxXq", long: "dry-run", words: inside},
	"init":            {short: "qb", long: "quiet initial-branch", words: inside},
	"clone":           {short: "qvbn", long: "quiet verbose progress depth branch single-branch no-single-branch no-tags no-checkout shallow-since", words: remoteAddress},
	"fetch":           {hooks: true, short: "apqtvn", long: "all prune tags no-tags quiet verbose depth unshallow dry-run progress deepen shallow-since multiple prune-tags", verbs: remotes, words: reference},
	"pull":            {hooks: true, short: "qvn", long: "quiet verbose ff-only ff no-ff rebase no-rebase tags no-tags prune autostash no-autostash no-edit depth dry-run all", verbs: remotes, words: reference},
	"push":            {hooks: true, short: "uqvn", long: "set-upstream quiet verbose dry-run tags follow-tags all progress porcelain atomic", verbs: remotes, words: reference},
	"ls-remote":       {hooks: true, short: "htq", long: "heads tags refs quiet exit-code symref sort", verbs: remotes},
	"format-patch":    {short: "knNs" + digits, long: "stdout numbered no-numbered signoff cover-letter root no-stat zero-commit base thread no-thread"},
	"gc":              {hooks: true, short: "q", long: "auto quiet aggressive no-prune"},
	"sparse-checkout": {verbs: "list"},
}}}
