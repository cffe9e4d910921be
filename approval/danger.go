package approval

import (
	"path"
	"regexp"
	"strings"
)

// wrappers run other commands, or are languages that can. Programs whose whole
// point is to run what a project defines (make, npm, cargo) are not among them:
// who allows those by name means that.
var wrappers = set(
	"env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "parallel", "nohup", "time", "timeout", "nice", "ionice", "chrt", "taskset",
	"setsid", "stdbuf", "unbuffer", "script", "ssh", "sshpass", "autossh", "mosh", "watch", "entr", "flock", "strace", "ltrace", "gdb", "lldb", "perf", "valgrind",
	"chroot", "unshare", "nsenter", "setpriv", "capsh", "systemd-run", "at", "batch", "crontab", "expect", "tmux", "screen", "fakeroot", "proot", "firejail", "bwrap",
	"dbus-run-session", "xvfb-run", "xdg-open", "busybox", "toybox", "npx", "pnpx", "bunx", "uvx", "start-stop-daemon", "daemonize", "numactl", "prlimit", "cgexec",
	"socat", "nc", "ncat", "eval", "exec", "source", ".", "command", "builtin", "trap", "coproc", "alias", "hash", "enable", "complete", "compgen",
	"mapfile", "readarray", "bind", "fc", "export", "declare", "typeset", "readonly", "local", "set", "shopt", "unset", "read", "printf", "function", "noglob", "nocorrect", "-",
	"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell", "nu", "elvish", "xonsh",
	"awk", "gawk", "mawk", "nawk", "ed", "ex", "vi", "vim", "nvim", "emacs", "nano", "less", "more", "most", "man", "view", "tclsh", "wish", "osascript", "m4", "dc", "bc",
	"getopts", "wait", "let", "jobs", "history", "unalias", "rlwrap", "setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "run-parts", "logrotate", "dialog", "ansible", "salt",
	"pipx", "nix-shell", "nix", "direnv", "rpm", "gs", "ghostscript", "oksh", "posh", "yash", "scsh", "rc", "es", "tcc", "chpst", "softlimit", "setuidgid", "runcon", "sg", "newgrp", "gosu", "su-exec", "tini", "dumb-init", "catchsegv", "choom", "eatmydata", "faketime", "torsocks", "proxychains", "proxychains4",
	"sqlite3", "psql", "mysql", "mariadb", "ftp", "sftp", "lftp", "telnet", "gnuplot", "octave", "R", "Rscript", "jshell", "ghci", "irb", "iex", "erl", "guile", "sbcl",
)

// evaluators take program text as an option.
var evaluators = map[string]string{
	"python": "c", "python2": "c", "python3": "c", "pypy": "c", "pypy3": "c", "node": "epr", "nodejs": "epr", "deno": "", "bun": "epr", "perl": "eEidMmI", "ruby": "eirI", "php": "rBREdz",
	"lua": "eli", "luajit": "el", "julia": "eEL", "ts-node": "epr", "tsx": "epr", "groovy": "e", "scala": "e", "elixir": "er", "racket": "e", "swift": "",
}

// shortOptions are letters that write or execute, by program. A letter counts
// wherever it stands in a cluster.
var shortOptions = map[string]string{
	"sort": "oT", "less": "oOk", "curl": "oOKTDcJ", "wget": "OoaPeiU", "tar": "IFT", "bsdtar": "IFT", "gtar": "IFT", "shuf": "o", "tcpdump": "zw", "hg": "R", "scp": "SoFD", "sftp": "SoFDb", "ssh-keygen": "DfwP", "ssh-add": "sS", "apt": "oc", "apt-get": "oc", "groff": "U", "install": "", "ctest": "S", "ps2pdf": "", "rsync": "e", "make": "fCIE", "gmake": "fCIE",
	"fd": "xX", "fdfind": "xX", "tree": "o", "xxd": "r", "date": "s", "gofmt": "wr", "goimports": "w", "yq": "i", "zip": "T", "split": "", "pytest": "pco",
	"gcc": "oBx", "g++": "oBx", "cc": "oBx", "c++": "oBx", "clang": "oBx", "clang-format": "i", "shfmt": "w", "eslint": "ocf", "mocha": "r", "jest": "c", "vitest": "c", "webpack": "c", "rollup": "cp", "prettier": "w", "tsc": "p", "jq": "f", "rg": "z",
	"git": "cOx", "mvn": "f", "gradle": "bcI", "cmake": "PED", "pip": "", "diff": "", "ag": "", "file": "Cm", "objdump": "", "openssl": "", "sed": "in", "hostname": "Fb", "sysctl": "wp",
	"docker": "Hc", "kubectl": "", "ip": "bn", "cargo": "", "rustc": "oC", "go": "", "unzip": "", "patch": "oB", "ld": "o", "as": "o", "nm": "", "pandoc": "oF", "convert": "", "iconv": "o", "uniq": "", "base64": "o",
}

// longOptions write or execute in one program or another. One list for all: a
// needless question costs little.
var longOptions = strings.Fields(`output output-file output-document output-dir output-directory outputdir out out-file outfile outdir out-dir exec exec-batch exec-path execute execdir ok okdir
	eval command to-command use-compress-program compress-program checkpoint-action rsh rsync-path rmt-command info-script new-volume-script upload-pack receive-pack pager open-files-in-pager
	ext-diff textconv config-env init-file rcfile pre preprocessor hostname-bin require import loader experimental-loader plugin in-place inplace write fix delete log-file logfile
	script-shell shell editor browser program run hook post-file cookie-jar dump-header trace trace-ascii trace-config remote-name config config-file configfile create-dirs libcurl stderr
	etag-save hsts alt-svc use-askpass toolexec vettool overlay modfile coverprofile cpuprofile memprofile blockprofile mutexprofile testlogfile ldflags gcflags asmflags
	gccgoflags fprint fprint0 fprintf fls files-from rulesdir resolve-plugins-relative-to override-ini pdbcls basetemp junitxml junit-xml report-log node-options init-script
	build-file settings-file project-cache-dir makefile file directory save unzip-command filter-process extcmd tool template separate-git-dir git-dir work-tree namespace
	super-prefix man-path attr-source ssh-command askpass gpg-program sendmail-cmd smtp-server to-cmd cc-cmd cover-from-description rebase-merges strategy exec-prefix kubeconfig
	filter strip-program diff-cmd diff3-cmd merge-cmd editor-cmd config-option init-hook on-download-complete shell-escape engine provider-path rcfile netrc-cmd eval-file
	plugin-dir listen host unix-socket set snapshot-update updateSnapshot update-snapshot reporter reporters globalSetup setupFiles transform runner testRunner watch`)

var longSet = set(longOptions...)

// ownOptions are long options that do it in one program only, and mean something
// harmless, or the beginning of such, in others.
var ownOptions = map[string][]string{
	"make": {"include-dir"}, "gmake": {"include-dir"}, "rg": {"search-zip"}, "tar": {"rsh-command", "remove-files"}, "eslint": {"format", "parser"},
	"gcc": {"wrapper", "fplugin", "specs"}, "g++": {"wrapper", "fplugin", "specs"}, "cc": {"wrapper", "fplugin", "specs"}, "c++": {"wrapper", "fplugin", "specs"}, "clang": {"fplugin", "fpass-plugin"},
}

// gitSafe are git's own subcommands that a pattern may allow. Others are aliases
// or programs that run what the repository's settings say.
var gitSafe = set("status", "log", "diff", "show", "branch", "tag", "add", "commit", "push", "pull", "fetch", "checkout", "switch", "restore", "stash", "merge", "rebase", "reset", "revert", "remote",
	"rev-parse", "rev-list", "ls-files", "ls-tree", "ls-remote", "cat-file", "blame", "annotate", "describe", "shortlog", "reflog", "grep", "cherry-pick", "cherry", "mv", "rm", "clean", "init", "clone",
	"name-rev", "merge-base", "for-each-ref", "show-ref", "count-objects", "diff-tree", "diff-index", "diff-files", "range-diff", "whatchanged", "version", "apply", "am", "format-patch", "worktree",
	"check-ignore", "check-attr", "symbolic-ref", "fsck", "gc", "notes", "hash-object", "var", "archive", "bundle", "sparse-checkout", "submodule", "write-tree", "read-tree", "update-index", "update-ref")

var sedPrint = regexp.MustCompile(`^[0-9]+(,([0-9]+|\$))?p$`)

// dangerous says why a command of plain words never matches an allow pattern.
func dangerous(words []string) string {
	name := path.Base(words[0])
	args := words[1:]
	if wrappers[name] || wrappers[strings.ToLower(name)] {
		return name + " can run other commands"
	}
	for _, a := range args {
		if why := option(name, a); why != "" {
			return why
		}
		if stream(a) {
			return a + " is what another command writes"
		}
	}
	if name == "tar" || name == "bsdtar" || name == "gtar" { // its first word is options, with or without a dash
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && option(name, "-"+args[0]) != "" {
			return "the options " + args[0] + " can write files or run commands"
		}
	}
	switch name {
	case "git":
		return dangerousGit(args)
	case "test", "[":
		for _, a := range args {
			if strings.Contains(a, "[") {
				return "a subscript is calculated, and can run commands"
			}
		}
	case "hg", "svn":
		for _, a := range args {
			if strings.HasPrefix(a, "ext::") || strings.HasPrefix(a, "ssh://-") {
				return name + " can run a command named by " + a
			}
		}
	case "sed":
		if len(args) < 2 || args[0] != "-n" || !sedPrint.MatchString(args[1]) || anyOption(args[2:]) {
			return "a sed script can write files and run commands"
		}
	case "make", "gmake", "ninja", "just", "go":
		for _, a := range args {
			if strings.Contains(a, "=") && !strings.HasPrefix(a, "-") {
				return "a variable given to " + name + " can change what it runs"
			}
		}
	case "curl":
		for _, a := range args {
			if strings.Contains(a, "%output{") {
				return "curl writes a file where its format says %output"
			}
		}
	case "gcc", "g++", "cc", "c++", "clang", "ld", "as", "rustc", "javac":
		for _, a := range args {
			if strings.HasPrefix(a, "@") {
				return name + " reads more options from " + a[1:]
			}
		}
	case "uniq":
		if operands(args) > 1 {
			return "uniq writes to its second file"
		}
	case "npm", "pnpm", "yarn", "bun":
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return "options before " + name + "'s subcommand can change what it runs"
		}
		if runsForOthers[args[0]] {
			return name + " " + args[0] + " can run other commands"
		}
	case "docker", "podman", "kubectl":
		for _, a := range args {
			if a == "exec" || a == "run" || a == "cp" || a == "attach" {
				return name + " " + a + " can run other commands"
			}
		}
	case "deno", "swift":
		if len(args) > 0 && args[0] == "eval" || name == "swift" && anyOption(args) {
			return name + " runs program text"
		}
	}
	if name == "go" && len(args) > 0 && (args[0] == "generate" || args[0] == "env" && anyOption(args[1:]) || args[0] == "tool") {
		return "go " + args[0] + " can run other commands"
	}
	return ""
}

// stream: a file that stands for an open one. A pattern that names what a program runs
// would not name it then: "echo TEXT | go run /dev/stdin".
func stream(a string) bool {
	a = path.Clean(a)
	return a == "/dev/stdin" || strings.HasPrefix(a, "/dev/fd/") || strings.HasPrefix(a, "/proc/") && strings.Contains(a, "/fd/")
}

var runsForOthers = set("exec", "x", "dlx", "explore", "config", "set", "set-script", "init", "create", "c", "edit")

func dangerousGit(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--no-pager" && args[0] != "--version" {
		return "options before git's subcommand can change what it runs"
	}
	sub := args[0]
	if sub == "--no-pager" && len(args) > 1 {
		sub = args[1]
	}
	if sub != "--version" && !gitSafe[sub] {
		return "git " + sub + " may run other commands"
	}
	for _, a := range args {
		if strings.Contains(a, "::") || a == "foreach" || a == "filter" {
			return "git can run a command named by " + a
		}
		if sub == "rebase" && (strings.HasPrefix(a, "-x") || a == "-i") || (sub == "clone" || sub == "fetch" || sub == "pull") && strings.HasPrefix(a, "-u") {
			return "git " + sub + " " + a + " runs a command"
		}
		if sub == "clone" && strings.HasPrefix(a, "-c") {
			return "git clone " + a + " sets what the new repository runs"
		}
		if sub == "grep" && strings.HasPrefix(a, "-O") {
			return "git grep " + a + " opens a program"
		}
		if (sub == "format-patch" || sub == "archive") && strings.HasPrefix(a, "-o") {
			return "git " + sub + " writes files"
		}
	}
	return ""
}

// option judges one argument as an option.
func option(name, a string) string {
	if len(a) < 2 || a[0] != '-' || a == "--" {
		return ""
	}
	why := "the option " + a + " can write files or run commands"
	long, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
	if name == "go" && long == "run" {
		return "" // go test -run selects tests
	}
	if name == "go" && (long == "o" || long == "C") {
		return why
	}
	if longSet[long] && len(long) > 1 { // also with one dash, as find and go take them
		return why
	}
	double := strings.HasPrefix(a, "--")
	for _, o := range ownOptions[name] {
		if long == o || double && long != "" && strings.HasPrefix(o, long) {
			return why
		}
	}
	if double {
		for _, o := range longOptions {
			if long != "" && strings.HasPrefix(o, long) { // getopt takes unique beginnings
				return why
			}
		}
		return ""
	}
	if letters, ok := evaluators[name]; ok && strings.ContainsAny(long, letters) && len(letters) > 0 {
		if !(strings.HasPrefix(a, "-m") && strings.HasPrefix(name, "py")) {
			return why
		}
	}
	if name == "sed" {
		if strings.ContainsAny(long, "isEr") {
			return why
		}
		return ""
	}
	if name == "git" {
		return "" // judged by subcommand
	}
	if strings.ContainsAny(long, shortOptions[name]) && shortOptions[name] != "" {
		return why
	}
	return ""
}

// launchers run what their arguments name, after one of these words.
var launchers = map[string]map[string]bool{
	"deno": set("run", "x", "install", "serve", "task"), "uv": set("run", "tool", "x"), "poetry": set("run", "shell"), "pipenv": set("run", "shell"), "conda": set("run"), "mamba": set("run"), "hatch": set("run"), "pdm": set("run"), "bundle": set("exec"), "rbenv": set("exec"), "pyenv": set("exec"),
	"rustup": set("run"), "nvm": set("exec", "run"), "asdf": set("exec"), "mise": set("exec", "x"), "volta": set("run"), "dotnet": set("exec"), "snap": set("run"), "flatpak": set("run"), "lxc": set("exec"), "vagrant": set("ssh"), "bazel": set("run"),
	"mvn": set("exec:exec", "exec:java"), "composer": set("exec"), "cargo": set("run"), "gh": set("alias", "extension"), "ip": set("netns", "vrf"), "opam": set("exec"), "stack": set("exec"), "cabal": set("exec"), "luarocks": set("exec"), "doppler": set("run"), "op": set("run"), "aws-vault": set("exec"), "dlv": set("exec"),
}

// unnamed: python -m runs any module, and uv run any program, so the pattern must
// name it.
func unnamed(words, p []string) string {
	if sub := launchers[path.Base(words[0])]; sub != nil {
		for i, w := range words[1:] {
			if sub[w] && len(p) < i+3 {
				return "the pattern must name what " + strings.Join(words[:i+2], " ") + " runs"
			}
		}
	}
	if _, ok := evaluators[path.Base(words[0])]; !ok {
		return ""
	}
	if anyOperand(p[1:]) {
		return ""
	}
	if len(words) > 1 {
		return "the pattern must name what " + words[0] + " runs"
	}
	return words[0] + " without a program reads it from its input"
}

func anyOption(args []string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			return true
		}
	}
	return false
}

func anyOperand(args []string) bool { return operands(args) > 0 }

func operands(args []string) int {
	n := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			n++
		}
	}
	return n
}
