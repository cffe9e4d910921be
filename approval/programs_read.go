package approval

import "regexp"

// Digits are short options of programs that take a count (head -20).
const digits = "0123456789"

// readers are programs that read and print.
var readers = map[string]program{
	"echo pwd true false basename dirname whoami seq sleep cat wc ls head tail nl tac rev cut tr comm cmp realpath readlink stat du df id uname paste fold column expr " +
		"md5sum sha1sum sha256sum sha512sum cksum od hexdump strings which type ps uptime free nproc arch tty groups logname users printenv locale getconf": {usage: usage{free: true}},
	"grep egrep fgrep": {usage: usage{short: "EFGPivwxcLlqsbHhnoTUZzaIrRy" + digits, valued: "emfABCdD", long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp file ignore-case no-ignore-case invert-match word-regexp line-regexp count color colour " +
		"files-without-match files-with-matches max-count only-matching quiet silent no-messages byte-offset with-filename no-filename label line-number initial-tab null after-context before-context context text binary-files directories exclude exclude-dir exclude-from include recursive dereference-recursive line-buffered null-data"}},
	"rg": {usage: usage{short: "nNilLvwxcoFPSsuaqHIU0.p", valued: "eftTgABCmMjrdE", long: "line-number no-line-number ignore-case smart-case case-sensitive files-with-matches files-without-match invert-match word-regexp line-regexp count count-matches only-matching fixed-strings pcre2 regexp file type type-not type-list glob iglob " +
		"after-context before-context context max-count max-columns threads replace max-depth hidden no-hidden no-ignore no-ignore-vcs files heading no-heading with-filename no-filename column color colors json stats sort sortr text multiline multiline-dotall null quiet follow trim vimgrep passthru unrestricted encoding max-filesize no-config no-messages one-file-system"}},
	"ag ack":    {usage: usage{short: "ilLvwcQnoS", valued: "ABCmG", long: "ignore-case files-with-matches literal hidden count"}},
	"find":      {usage: usage{single: true, long: "name iname path ipath wholename iwholename type xtype size mtime mmin atime amin ctime cmin newer anewer cnewer empty maxdepth mindepth print print0 printf prune not o a and or perm user group regex iregex regextype follow xdev mount depth ls quit readable writable executable links inum samefile lname nouser nogroup true false H L P"}},
	"fd fdfind": {usage: usage{short: "HIuisagFpL0", valued: "detEcjS", long: "hidden no-ignore case-sensitive ignore-case glob fixed-strings absolute-path full-path follow type extension max-depth min-depth exclude color size changed-within changed-before print0"}},
	"tree":      {usage: usage{short: "adfipshugDFQrtvcUACSnxlJX", valued: "LIP", long: "dirsfirst noreport prune du si gitignore filelimit charset"}},
	"sort":      {usage: usage{short: "bdfghiMnRrVcCmsuz", valued: "ktS", long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort month-sort numeric-sort random-sort reverse sort version-sort check key field-separator stable unique zero-terminated merge"}},
	"uniq":      {usage: usage{short: "cdDiuz" + digits, valued: "fsw", long: "count repeated unique ignore-case skip-fields skip-chars check-chars zero-terminated", most: 1}},
	"diff":      {usage: usage{short: "urNaqsbBwiytdpcEZT" + digits, valued: "UCxIXW", long: "unified context brief recursive new-file side-by-side ignore-case ignore-all-space ignore-space-change ignore-blank-lines ignore-trailing-space text color exclude report-identical-files width suppress-common-lines strip-trailing-cr label normal minimal no-dereference"}},
	"file":      {usage: usage{short: "biLkhrs0NE", long: "brief mime mime-type mime-encoding dereference keep-going"}},
	"date":      {usage: usage{short: "uR", valued: "dIr", long: "utc universal date iso-8601 rfc-3339 rfc-email reference", words: regexp.MustCompile(`^\+`)}},
	"hostname":  {usage: usage{short: "sfidIA", long: "short fqdn long ip-address all-ip-addresses domain", words: never}},
	"jq":        {usage: usage{short: "rcnsSeaCMjR", long: "raw-output compact-output null-input slurp sort-keys exit-status ascii-output color-output monochrome-output join-output raw-input arg argjson args jsonargs tab indent stream seq"}},
	"yq":        {usage: usage{short: "rPoCMNje", valued: "op", long: "unwrapScalar prettyPrint output-format input-format colors no-colors null-input exit-status", words: regexp.MustCompile(`^[^-]*$`)}},
	"sed":       {usage: usage{short: "n", first: regexp.MustCompile(`^[0-9]+(,([0-9]+|\$))?p$`)}},
	"tar":       {usage: usage{short: "tvzjJ", valued: "f", long: "list verbose gzip bzip2 xz file", words: regexp.MustCompile(`^[^-:@=~]+$`), bundle: true}},
	"test [":    {usage: usage{free: true, words: regexp.MustCompile(`^(|[^[]*)$`)}},
	"curl":      {usage: usage{short: "sSfILiv46", valued: "X", long: "silent show-error fail head location include verbose request compressed ipv4 ipv6", words: regexp.MustCompile(`^(https?://[^@{}\[\]]*|GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9_./?&%-]*)?)$`)}},
	"xxd":       {usage: usage{short: "bicueplgsE" + digits, most: 1}},
	"docker podman": {subs: map[string]usage{
		"ps":      {short: "aqlsn", valued: "nf", long: "all quiet latest size no-trunc filter format last"},
		"images":  {short: "aq", valued: "f", long: "all quiet digests no-trunc filter format"},
		"logs":    {short: "ft", valued: "n", long: "follow timestamps tail since until details"},
		"inspect": {short: "s", valued: "f", long: "format size type"},
		"version": {}, "info": {}, "stats": {long: "no-stream all"}, "top": {words: plainFile, most: 1}, "port": {}, "history": {short: "q", long: "no-trunc"},
	}},
	"kubectl": {subs: map[string]usage{
		"get":      {short: "Aw", valued: "nol", long: "all-namespaces namespace output selector show-labels watch sort-by field-selector no-headers"},
		"describe": {short: "A", valued: "nl", long: "namespace selector all-namespaces"},
		"logs":     {short: "f", valued: "nlc", long: "namespace follow tail since previous container all-containers timestamps"},
		"version":  {long: "client output"}, "api-resources": {}, "top": {short: "A", valued: "n", long: "namespace"},
	}},
}
