package approval

import (
	"regexp"
	"strings"
)

// usage describes what is harmless of a program, or of one of its subcommands. Everything else asks, including an
// option that this table missed.
type usage struct {
	free   bool           // every option is harmless: it can only read and print
	short  string         // letters of harmless options, alone or in a cluster
	valued string         // letters that take the rest of their cluster as a value
	long   string         // names of harmless options, with or without "=value"
	single bool           // long options have one dash, as those of go and find
	verbs  string         // the only first operands that are harmless
	words  *regexp.Regexp // what operands must look like, nil = anything
	most   int            // the largest number of operands, 0 = any
	first  *regexp.Regexp // what the first operand must look like
	bundle bool           // the first word may be options without a dash
	hands  bool           // the words after "--" go to another program
	hooks  bool           // of git: it may run hooks, or contact another repository
}

// program is a known program: one usage, or one for each subcommand.
type program struct {
	usage
	before string // options before the subcommand
	subs   map[string]usage
}

var (
	// plainFile is a file in the workspace by its plain name, or another harmless word.
	plainFile = regexp.MustCompile(`^[\pL\pN_./][\pL\pN_./,:%@+-]*$`)
	// inside is any word except one that may be an option or outside the workspace.
	inside = regexp.MustCompile(`^[^-+@=~/:][^=~]*$|^$`)
	never  = regexp.MustCompile(`^\b$`)
)

// leadsOut reports whether a word names a file above the workspace, or a hidden one,
// which may steer programs.
func leadsOut(word string) bool {
	for name := range strings.SplitSeq(word, "/") {
		if strings.HasPrefix(name, ".") && name != "." && name != "..." {
			return true
		}
	}
	return strings.HasPrefix(word, "/") || strings.Contains(word, ":/")
}

// fits reports whether an operand is harmless.
func (u usage) fits(word string) bool {
	switch u.words {
	case nil:
		return true
	case plainFile, inside:
		return u.words.MatchString(word) && !leadsOut(word)
	}
	return u.words.MatchString(word)
}

// unknown is the usage of every other program.
var unknown = usage{words: plainFile}

func hasWord(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(" "+list+" ", " "+word+" ")
}

// beyondUsage is why not all words after the first are harmless, "" when they are. A word after "--" is judged like any
// other: an option's value, and what a program hands on, may be something else than it seems. Words of the pattern
// itself are covered unless they are options of a known program.
func (u usage) beyondUsage(name string, words []string, own int, ownOptions bool) string {
	operands, handed := 0, false
	for i, w := range words {
		if i == 0 {
			continue
		}
		if ownOptions && isStream(w) {
			return w + " is what another command writes"
		}
		if ownOptions && i < own {
			if i == own-1 && i < len(words)-1 && strings.HasPrefix(w, "-") {
				return "the pattern must name what follows " + w
			}
			continue
		}
		if u.bundle && i == 1 && !strings.HasPrefix(w, "-") {
			w = "-" + w
		}
		if len(w) > 1 && w[0] == '-' {
			if w == "--" && !ownOptions {
				handed = u.hands
				continue
			}
			if handed || !u.isHarmlessOption(w) {
				return "the option " + w + " of " + name + " is not known to be harmless"
			}
			continue
		}
		if operands++; u.most > 0 && operands > u.most {
			return "so many words after " + name + " are not known to be harmless"
		}
		if operands == 1 && (u.verbs != "" && !hasWord(u.verbs, w) || u.first != nil && !u.first.MatchString(w)) || i >= own && !u.fits(w) {
			return "the word " + w + " after " + name + " is not known to be harmless"
		}
	}
	return ""
}

// isHarmlessOption reports whether an option is harmless: by its whole name, or each letter of a cluster.
func (u usage) isHarmlessOption(w string) bool {
	if u.free {
		return true
	}
	name, _, _ := strings.Cut(w, "=")
	if strings.HasPrefix(w, "--") {
		return hasWord(u.long, name[2:])
	}
	if u.single {
		return hasWord(u.long, name[1:]) || strings.Trim(name[1:], digits) == "" // find -mtime -1
	}
	for i := 1; i < len(w); i++ {
		if strings.IndexByte(u.valued, w[i]) >= 0 {
			return true
		}
		if strings.IndexByte(u.short, w[i]) < 0 {
			return false
		}
	}
	return true
}

// digits are short options of programs that take a count (head -20).
const digits = "0123456789"

// knownPrograms are all families of programs.
var knownPrograms = families(gitPrograms, readers, goPrograms, nodePrograms, builders)

func families(list ...map[string]program) map[string]program {
	all := map[string]program{}
	for _, family := range list {
		for names, p := range family {
			for name := range strings.FieldsSeq(names) {
				all[name] = p
			}
		}
	}
	return all
}

// readers are programs that read and print.
var readers = map[string]program{
	"echo pwd true false basename dirname whoami seq sleep cat wc ls head tail nl tac rev cut tr comm cmp realpath " +
		"readlink stat du df id uname paste fold column expr " +
		"md5sum sha1sum sha256sum sha512sum cksum od hexdump strings which type ps uptime free nproc arch tty groups " +
		"logname users printenv locale getconf": {usage: usage{free: true}},
	"grep egrep fgrep": {usage: usage{short: "EFGPivwxcLlqsbHhnoTUZzaIrRy" + digits, valued: "emfABCdD",
		long: "extended-regexp fixed-strings " +
			"basic-regexp perl-regexp regexp file ignore-case no-ignore-case invert-match word-regexp line-regexp count " +
			"color colour " +
			"files-without-match files-with-matches max-count only-matching quiet silent no-messages byte-offset " +
			"with-filename no-filename label line-number initial-tab null after-context before-context context text " +
			"binary-files directories exclude exclude-dir exclude-from include recursive dereference-recursive " +
			"line-buffered null-data"}},
	"rg": {usage: usage{short: "nNilLvwxcoFPSsuaqHIU0.p", valued: "eftTgABCmMjrdE", long: "line-number no-line-number " +
		"ignore-case smart-case case-sensitive files-with-matches files-without-match invert-match word-regexp " +
		"line-regexp count count-matches only-matching fixed-strings pcre2 regexp file type type-not type-list glob " +
		"iglob " +
		"after-context before-context context max-count max-columns threads replace max-depth hidden no-hidden " +
		"no-ignore no-ignore-vcs files heading no-heading with-filename no-filename column color colors json " +
		"stats sort sortr text multiline multiline-dotall null quiet follow trim vimgrep passthru unrestricted " +
		"encoding max-filesize no-config no-messages one-file-system"}},
	"ag ack": {usage: usage{short: "ilLvwcQnoS", valued: "ABCmG", long: "ignore-case files-with-matches literal hidden count"}},
	"find": {usage: usage{single: true, long: "name iname path ipath wholename iwholename type xtype size mtime " +
		"mmin atime amin ctime cmin newer anewer cnewer empty maxdepth mindepth print print0 printf prune not o a " +
		"and or perm user group regex iregex regextype follow xdev mount depth ls quit readable writable executable " +
		"links inum samefile lname nouser nogroup true false H L P"}},
	"fd fdfind": {usage: usage{short: "HIuisagFpL0", valued: "detEcjS", long: "hidden no-ignore case-sensitive " +
		"ignore-case glob fixed-strings absolute-path full-path follow type extension max-depth min-depth exclude " +
		"color size changed-within changed-before print0"}},
	"tree": {usage: usage{short: "adfipshugDFQrtvcUACSnxlJX", valued: "LIP", long: "dirsfirst noreport prune du " +
		"si gitignore filelimit charset"}},
	"sort": {usage: usage{short: "bdfghiMnRrVcCmsuz", valued: "ktS", long: "ignore-leading-blanks " +
		"dictionary-order ignore-case general-numeric-sort human-numeric-sort month-sort numeric-sort random-sort " +
		"reverse sort version-sort check key field-separator stable unique zero-terminated merge"}},
	"uniq": {usage: usage{short: "cdDiuz" + digits, valued: "fsw", long: "count repeated unique ignore-case " +
		"skip-fields skip-chars check-chars zero-terminated", most: 1}},
	"diff": {usage: usage{short: "urNaqsbBwiytdpcEZT" + digits, valued: "UCxIXW", long: "unified context brief " +
		"recursive new-file side-by-side ignore-case ignore-all-space ignore-space-change ignore-blank-lines " +
		"ignore-trailing-space text color exclude report-identical-files width suppress-common-lines " +
		"strip-trailing-cr label normal minimal no-dereference"}},
	"file": {usage: usage{short: "biLkhrs0NE", long: "brief mime mime-type mime-encoding dereference keep-going"}},
	"date": {usage: usage{short: "uR", valued: "dIr", long: "utc universal date iso-8601 rfc-3339 rfc-email " +
		"reference", words: regexp.MustCompile(`^\+`)}},
	"hostname": {usage: usage{short: "sfidIA", long: "short fqdn long ip-address all-ip-addresses domain", words: never}},
	"jq": {usage: usage{short: "rcnsSeaCMjR", long: "raw-output compact-output null-input slurp sort-keys " +
		"exit-status ascii-output color-output monochrome-output join-output raw-input arg argjson args jsonargs tab " +
		"indent stream seq"}},
	"yq": {usage: usage{short: "rPoCMNje", valued: "op", long: "unwrapScalar prettyPrint output-format " +
		"input-format colors no-colors null-input exit-status", words: regexp.MustCompile(`^[^-]*$`)}},
	"sed": {usage: usage{short: "n", first: regexp.MustCompile(`^[0-9]+(,([0-9]+|\$))?p$`)}},
	"tar": {usage: usage{short: "tvzjJ", valued: "f", long: "list verbose gzip bzip2 xz file",
		words: regexp.MustCompile(`^[^-:@=~]+$`), bundle: true}},
	"test [": {usage: usage{free: true, words: regexp.MustCompile(`^(|[^[]*)$`)}},
	"curl": {usage: usage{short: "sSfILiv46", valued: "X", long: "silent show-error fail head location include " +
		"verbose request compressed ipv4 ipv6", words: regexp.MustCompile(`^(https?://[^@{}\[\]]*|GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9_./?&%-]*)?)$`)}},
	"xxd": {usage: usage{short: "bicueplgsE" + digits, most: 1}},
	"docker podman": {subs: map[string]usage{
		"ps":      {short: "aqlsn", valued: "nf", long: "all quiet latest size no-trunc filter format last"},
		"images":  {short: "aq", valued: "f", long: "all quiet digests no-trunc filter format"},
		"logs":    {short: "ft", valued: "n", long: "follow timestamps tail since until details"},
		"inspect": {short: "s", valued: "f", long: "format size type"},
		"version": {}, "info": {}, "stats": {long: "no-stream all"}, "top": {words: plainFile, most: 1}, "port": {},
		"history": {short: "q", long: "no-trunc"},
	}},
	"kubectl": {subs: map[string]usage{
		"get": {short: "Aw", valued: "nol", long: "all-namespaces namespace output selector show-labels watch " +
			"sort-by field-selector no-headers"},
		"describe": {short: "A", valued: "nl", long: "namespace selector all-namespaces"},
		"logs":     {short: "f", valued: "nlc", long: "namespace follow tail since previous container all-containers timestamps"},
		"version":  {long: "client output"}, "api-resources": {}, "top": {short: "A", valued: "n", long: "namespace"},
	}},
}

// Options that several subcommands of git share.
const (
	diffShort  = "pusbwWzMCDRa" + digits
	diffValued = "USGlMC"
	diffLong   = "patch no-patch unified raw stat shortstat numstat dirstat compact-summary summary name-only " +
		"name-status color no-color color-words word-diff word-diff-regex " +
		"cached staged minimal patience histogram diff-algorithm ignore-all-space ignore-space-change " +
		"ignore-space-at-eol ignore-blank-lines function-context " +
		"find-renames no-renames find-copies diff-filter pickaxe-all pickaxe-regex abbrev full-index binary check " +
		"exit-code quiet relative no-relative text no-prefix no-ext-diff no-textconv " +
		"ignore-submodules submodule inter-hunk-context merge-base stat-width stat-count indent-heuristic color-moved"
	logShort  = "qgicEFPnt"
	logValued = "nL"
	logLong   = "oneline graph decorate no-decorate all branches tags remotes author committer grep invert-grep " +
		"since after until before max-count skip merges no-merges first-parent follow " +
		"format pretty date abbrev-commit no-abbrev-commit reverse topo-order date-order author-date-order " +
		"full-history simplify-merges ancestry-path left-right cherry-pick cherry-mark " +
		"no-notes notes source walk-reflogs boundary no-walk left-only right-only cherry count parents children " +
		"name-only relative-date regexp-ignore-case log-size show-pulls max-parents min-parents glob exclude"
)

var (
	// remoteAddress is a repository by its address at a server. A folder could hold hooks.
	remoteAddress = regexp.MustCompile(`^(https?|ssh|git)://[A-Za-z0-9][^~]*$|^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_/][A-Za-z0-9_./-]*$|^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)
	// reference is a name that neither forces nor deletes a reference.
	reference = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:^~@{}-]*$`)
)

// remotes are the usual names. Another word could be a folder with hooks of its own.
const remotes = "origin upstream"

var gitDiff = usage{short: diffShort, valued: diffValued, long: diffLong}

var gitLog = usage{short: diffShort + logShort, valued: diffValued + logValued, long: diffLong + " " + logLong}

var gitPrograms = map[string]program{"git": {before: "--no-pager --version --no-optional-locks", subs: map[string]usage{
	"status": {short: "sbvz", valued: "u", long: "short branch long porcelain verbose show-stash " +
		"untracked-files ignored ignore-submodules ahead-behind no-ahead-behind no-renames renames column no-column"},
	"log":         gitLog,
	"show":        gitLog,
	"whatchanged": gitLog,
	"reflog":      {short: logShort + digits, valued: logValued, long: logLong, verbs: "show HEAD"},
	"diff":        gitDiff,
	"diff-tree":   {short: diffShort + "rtmc", valued: diffValued, long: diffLong + " root no-commit-id"},
	"diff-index":  gitDiff,
	"diff-files":  gitDiff,
	"range-diff":  {long: "no-color color no-dual-color"},
	"shortlog":    {short: "nsec" + digits, long: "numbered summary email all no-merges since until"},
	"blame": {short: "lstfnwebcpMC" + digits, valued: "LS", long: "date porcelain line-porcelain show-email " +
		"show-name show-number root no-color abbrev"},
	"annotate": {short: "lt", valued: "L"},
	"grep": {short: "aivwIrhHlLcnEFGPopqWz" + digits, valued: "eABCm", long: "text ignore-case invert-match " +
		"word-regexp files-with-matches name-only files-without-match count line-number column extended-regexp " +
		"fixed-strings perl-regexp only-matching show-function function-context heading break max-depth max-count " +
		"all-match and or not cached untracked color no-color after-context before-context context quiet recursive " +
		"no-recursive"},
	"branch": {short: "arvqil", long: "all remotes list verbose show-current contains no-contains merged " +
		"no-merged sort format points-at column no-column color no-color abbrev no-abbrev ignore-case quiet", words: reference},
	"tag": {short: "lain" + digits, valued: "m", long: "list sort contains no-contains merged no-merged " +
		"points-at format column no-column message annotate ignore-case"},
	"describe": {long: "tags all long always dirty abbrev match exclude contains exact-match first-parent candidates"},
	"rev-parse": {short: "q", long: "short verify quiet abbrev-ref symbolic-full-name show-toplevel show-prefix " +
		"show-cdup show-superproject-working-tree git-dir absolute-git-dir git-common-dir is-inside-work-tree " +
		"is-inside-git-dir is-bare-repository is-shallow-repository all branches tags remotes show-object-format " +
		"symbolic"},
	"rev-list": {short: "n" + digits, valued: "n", long: logLong + " objects disk-usage"},
	"ls-files": {short: "cdomikuszt", valued: "x", long: "cached deleted modified others ignored stage unmerged " +
		"killed exclude-standard full-name error-unmatch deduplicate abbrev eol directory"},
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
	"stash": {short: "puqk", valued: "m", long: "patch stat message keep-index no-keep-index " +
		"include-untracked staged index quiet name-only name-status", verbs: "push pop apply list show " +
		"save"},
	"submodule": {long: "recursive cached", verbs: "status summary"},
	"archive":   {short: "l", long: "format prefix list"},

	"add": {short: "AunvfN", long: "all update dry-run verbose force intent-to-add no-all ignore-errors"},
	"commit": {hooks: true, short: "aqvsnm", valued: "m", long: "all message quiet verbose signoff amend " +
		"no-edit allow-empty allow-empty-message dry-run no-verify short branch porcelain no-gpg-sign fixup squash " +
		"reset-author no-status only include"},
	"checkout": {hooks: true, short: "bqtd", long: "quiet detach track no-track ours theirs guess no-guess " +
		"progress no-progress orphan"},
	"switch":  {hooks: true, short: "cqtd", long: "create quiet detach track no-track guess no-guess progress no-progress orphan"},
	"restore": {short: "SWq", valued: "s", long: "staged worktree source quiet ours theirs"},
	"reset":   {short: "qN", long: "soft mixed quiet no-quiet intent-to-add"},
	"merge": {hooks: true, short: "nqm", valued: "m", long: "ff no-ff ff-only squash no-squash commit " +
		"no-commit edit no-edit stat no-stat message abort continue quit quiet verbose signoff log"},
	"rebase": {hooks: true, short: "qvn", long: "continue abort skip quit onto quiet verbose no-stat " +
		"autostash no-autostash show-current-patch keep-base update-refs root fork-point no-fork-point signoff"},
	"cherry-pick": {hooks: true, short: "nxs", valued: "m", long: "no-commit signoff continue abort skip quit mainline allow-empty ff"},
	"revert":      {hooks: true, short: "ns", valued: "m", long: "no-edit no-commit signoff continue abort skip quit mainline"},
	"mv":          {short: "nvk", long: "dry-run verbose", words: inside},
	"rm":          {short: "nqr", long: "cached dry-run quiet ignore-unmatch", words: inside},
	"clean":       {short: "ndxXq", long: "dry-run", words: inside},
	"init":        {short: "qb", long: "quiet initial-branch", words: inside},
	"clone": {short: "qvbn", long: "quiet verbose progress depth branch single-branch no-single-branch " +
		"no-tags no-checkout shallow-since", words: remoteAddress},
	"fetch": {hooks: true, short: "apqtvn", long: "all prune tags no-tags quiet verbose depth unshallow " +
		"dry-run progress deepen shallow-since multiple prune-tags", verbs: remotes, words: reference},
	"pull": {hooks: true, short: "qvn", long: "quiet verbose ff-only ff no-ff rebase no-rebase tags " +
		"no-tags prune autostash no-autostash no-edit depth dry-run all", verbs: remotes, words: reference},
	"push": {hooks: true, short: "uqvn", long: "set-upstream quiet verbose dry-run tags follow-tags all " +
		"progress porcelain atomic", verbs: remotes, words: reference},
	"ls-remote": {hooks: true, short: "htq", long: "heads tags refs quiet exit-code symref sort", verbs: remotes},
	"format-patch": {short: "knNs" + digits, long: "stdout numbered no-numbered signoff cover-letter root no-stat " +
		"zero-commit base thread no-thread"},
	"gc":              {hooks: true, short: "q", long: "auto quiet aggressive no-prune"},
	"sparse-checkout": {verbs: "list"},
}}}

// goBuild are flags that go's build commands share and that neither write nor run.
const goBuild = "v x n a p race msan tags trimpath buildvcs "

// goPrograms are go's own commands; -test.*, -args, -o, -exec and profiles are not in the table.
var goPrograms = map[string]program{
	"go": {subs: map[string]usage{
		"test": {single: true, long: goBuild + "run count short cover covermode coverpkg timeout parallel bench " +
			"benchtime benchmem cpu list failfast json shuffle skip vet fullpath", words: inside},
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
		"run": {short: "v", valued: "jED", long: "verbose timeout new new-from-rev fast no-config concurrency " +
			"enable disable tests allow-parallel-runners", words: inside},
		"version": {}, "linters": {},
	}},
	"staticcheck": {usage: usage{single: true, long: "checks f tests tags go", words: inside}},
	"cargo": {subs: map[string]usage{
		"build":  cargoBuild,
		"b":      cargoBuild,
		"check":  cargoBuild,
		"c":      cargoBuild,
		"test":   cargoBuild,
		"t":      cargoBuild,
		"bench":  cargoBuild,
		"doc":    {short: "vqr", valued: "pjF", long: cargoLong + " no-deps document-private-items", words: inside},
		"run":    cargoBuild,
		"clippy": {short: "vqr", valued: "pjFDWA", long: cargoLong + " no-deps", words: inside},
		"fmt":    {short: "vq", valued: "p", long: "all check package verbose quiet", words: inside},
		"tree": {short: "vqdei", valued: "pieF", long: cargoLong + " invert depth duplicates edges prefix " +
			"no-dedupe format", words: inside},
		"metadata": {long: "no-deps format-version offline locked frozen all-features", words: inside},
		"version":  {short: "v", long: "verbose"},
		"nextest":  {short: "vqr", valued: "pjFE", long: cargoLong, verbs: "run list", words: inside},
	}},
	"rustc": {usage: usage{short: "vV", long: "version verbose explain", words: never}},
}

const cargoLong = "release all all-targets all-features no-default-features features package bin bins lib tests " +
	"examples example test benches bench workspace exclude jobs verbose quiet locked offline frozen message-format " +
	"no-run no-fail-fast doc keep-going color nocapture no-capture test-threads ignored include-ignored exact skip " +
	"list show-output profile target timings version"

var cargoBuild = usage{short: "vqrk", valued: "pjF", long: cargoLong, words: inside}

const (
	nodeRun  = "silent verbose quiet if-present workspaces workspace include-workspace-root recursive parallel filter"
	nodeTake = "silent verbose quiet no-audit no-fund ignore-scripts dry-run frozen-lockfile prefer-offline offline " +
		"no-progress legacy-peer-deps immutable"
)

// nodeRuns runs a script of package.json, with the arguments of the line.
var nodeRuns = usage{short: "sdqr", valued: "wF", long: nodeRun, words: inside, hands: true}

// nodeInstalls installs what package.json names. A package that the line names is new, and brings scripts of its own.
var nodeInstalls = usage{short: "sdq", long: nodeTake, words: never}

var nodeReads = usage{short: "slagq", long: "json all depth long parseable global production omit silent prod dev", words: inside}

var nodeSubs = map[string]usage{
	"test": nodeRuns, "t": nodeRuns, "run": nodeRuns, "run-script": nodeRuns, "start": nodeRuns, "stop": nodeRuns,
	"restart": nodeRuns, "build": nodeRuns, "lint": nodeRuns,
	"ci": nodeInstalls, "install": nodeInstalls, "i": nodeInstalls,
	"ls": nodeReads, "list": nodeReads, "view": nodeReads, "info": nodeReads, "show": nodeReads,
	"outdated": nodeReads, "why": nodeReads, "explain": nodeReads, "ping": nodeReads, "version": {words: never},
	"audit": {long: "json omit production audit-level", words: never}, "root": {}, "bin": {},
	"prefix": {words: never}, "whoami": {}, "doctor": {words: never}, "fund": {words: never, long: "json"},
}

var nodePrograms = map[string]program{
	"npm pnpm yarn bun": {before: "--version", subs: nodeSubs},
	"tsc": {usage: usage{single: true, long: "noEmit pretty version v strict skipLibCheck " +
		"noEmitOnError w watch", words: never}},
	"eslint":   {usage: usage{long: "quiet ext max-warnings no-color color no-error-on-unmatched-pattern version", words: inside}},
	"prettier": {usage: usage{short: "cl", long: "check list-different no-color color version ignore-unknown", words: inside}},
	"vitest jest mocha": {usage: usage{short: "it", long: "verbose silent coverage bail watchAll ci testNamePattern " +
		"passWithNoTests runInBand onlyChanged version colors no-coverage run grep", words: inside}},
}

// builders run what a project defines: a person who allows those by name intends that.
var builders = map[string]program{
	"make gmake": {usage: usage{short: "kniBsqw", valued: "jl", long: "jobs keep-going dry-run just-print silent " +
		"quiet always-make question load-average no-print-directory version trace", words: inside}},
	"ninja": {usage: usage{short: "vn", valued: "jkl", long: "version verbose quiet", words: inside}},
	"just":  {usage: usage{short: "lnq", long: "list dry-run quiet summary", words: inside}},
	"pytest py.test": {usage: usage{short: "qvxsl", valued: "kmnr", long: "quiet verbose exitfirst lf last-failed ff " +
		"failed-first nf new-first sw stepwise maxfail durations tb collect-only co no-header no-summary showlocals " +
		"strict-markers color version markers fixtures cache-show disable-warnings numprocesses capture", words: inside}},
	"mypy": {usage: usage{long: "strict ignore-missing-imports pretty show-error-codes no-incremental " +
		"version no-color-output", words: inside}},
	"ruff": {subs: map[string]usage{"check": {short: "q", long: "quiet no-fix statistics select ignore " +
		"diff no-cache", words: inside}, "format": {long: "check diff quiet", words: inside}, "version": {}}},
	"black":    {usage: usage{short: "qv", long: "check diff quiet verbose", words: inside}},
	"flake8":   {usage: usage{short: "qv", long: "count statistics max-line-length select ignore", words: inside}},
	"pip pip3": {subs: map[string]usage{"list": {long: "outdated format"}, "show": {short: "f", words: inside}, "freeze": {}, "check": {}}},
	"mkdir":    {usage: usage{short: "pv", long: "parents verbose", words: plainFile}},
	"touch":    {usage: usage{short: "acm", words: plainFile}},
}
