package approval

import (
	"regexp"
	"strings"
)

// wrappers run other commands, or are languages that can. Programs whose purpose is to run what a project defines
// (make, npm, cargo) are not among them: a person who allows those by name intends that.
var wrappers = wordSet(
	"env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "parallel", "nohup", "time", "timeout", "nice", "ionice", "chrt", "taskset",
	"setsid", "stdbuf", "unbuffer", "script", "ssh", "sshpass", "autossh", "mosh", "watch", "entr", "flock",
	"strace", "ltrace", "gdb", "lldb", "perf", "valgrind",
	"chroot", "unshare", "nsenter", "setpriv", "capsh", "systemd-run", "at", "batch", "crontab", "expect", "tmux",
	"screen", "fakeroot", "proot", "firejail", "bwrap",
	"dbus-run-session", "xvfb-run", "xdg-open", "busybox", "toybox", "npx", "pnpx", "bunx", "uvx",
	"start-stop-daemon", "daemonize", "numactl", "prlimit", "cgexec",
	"socat", "nc", "ncat", "eval", "exec", "source", ".", "command", "builtin", "trap", "coproc", "alias", "hash",
	"enable", "complete", "compgen",
	"mapfile", "readarray", "bind", "fc", "export", "declare", "typeset", "readonly", "local", "set", "shopt",
	"unset", "read", "printf", "function", "noglob", "nocorrect", "-",
	"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell", "nu", "elvish", "xonsh",
	"awk", "gawk", "mawk", "nawk", "ed", "ex", "vi", "vim", "nvim", "emacs", "nano", "less", "more", "most", "man",
	"view", "tclsh", "wish", "osascript", "m4", "dc", "bc",
	"getopts", "wait", "let", "jobs", "history", "unalias", "rlwrap", "setarch", "linux32", "linux64", "i386",
	"x86_64", "uname26", "run-parts", "logrotate", "dialog", "ansible", "salt",
	"pipx", "nix-shell", "nix", "direnv", "rpm", "gs", "ghostscript", "oksh", "posh", "yash", "scsh", "rc", "es",
	"tcc", "chpst", "softlimit", "setuidgid", "runcon", "sg", "newgrp", "gosu", "su-exec", "tini", "dumb-init",
	"catchsegv", "choom", "eatmydata", "faketime", "torsocks", "proxychains", "proxychains4",
	"sqlite3", "psql", "mysql", "mariadb", "ftp", "sftp", "lftp", "telnet", "gnuplot", "octave", "R", "Rscript",
	"jshell", "ghci", "irb", "iex", "erl", "guile", "sbcl",
)

// builtins change the shell that they run in, or only show things: no pattern allows them, and a deny rule need not ask
// about them.
var builtins = wordSet("set", "shopt", "unset", "read", "printf", "wait", "let", "jobs", "history", "hash",
	"getopts", "unalias", "export", "declare", "typeset", "readonly", "local", "less", "more", "most", "man",
	"mapfile", "readarray", "source", ".", "function")

// interpreters run a script file, or program text that an option or their input gives.
var interpreters = wordSet("python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "perl",
	"ruby", "php", "lua", "luajit", "julia", "ts-node", "tsx", "groovy", "scala", "elixir", "racket", "swift",
	"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell")

// plainOptions of interpreters give no program text.
var plainOptions = regexp.MustCompile(`^(-[uBEOwWvVxXhdt]+|--version|--help|--test|--watch|--no-warnings|-m)$`)

// execOptions are what makes a program that does work of its own run another command.
type execOptions struct {
	letters string // of short options
	long    string // long options, also by their beginnings
	words   string // words anywhere in the arguments
	single  bool   // long options have one dash
}

// execPrograms are for deny rules, which guard against slips: what a pattern allows follows from what is harmless (see
// usage), never from this list.
var execPrograms = map[string]execOptions{
	"find": {long: "exec execdir ok okdir", single: true}, "fd": {letters: "xX", long: "exec exec-batch"},
	"fdfind": {letters: "xX", long: "exec exec-batch"},
	"tar":    {letters: "IF", long: tarRuns}, "gtar": {letters: "IF", long: tarRuns}, "bsdtar": {letters: "IF",
		long: tarRuns}, "cpio": {long: "rsh-command"},
	"rsync": {letters: "eM", long: "rsh rsync-path password-command remote-option"}, "zip": {letters: "T",
		long: "unzip-command"}, "rg": {long: "pre hostname-bin"}, "sort": {long: "compress-program"}, "split": {long: "filter"},
	"make": {letters: "E", long: "eval"}, "gmake": {letters: "E", long: "eval"},
	"go": {long: "exec toolexec vettool", single: true}, "cargo": {long: "config"}, "rake": {letters: "eEp"}, "latexmk": {letters: "e"},
	"npm": {words: "exec x explore", long: "script-shell node-options call"}, "pnpm": {words: "exec dlx",
		long: "script-shell"}, "yarn": {words: "exec dlx"}, "bun": {words: "x"},
	"docker": {words: "run exec"}, "podman": {words: "run exec"}, "kubectl": {words: "exec run debug"},
	"gh": {words: "alias extension"}, "helm": {long: "post-renderer"}, "bazel": {long: "run_under"}, "meson": {long: "wrapper"},
	"gcc": {long: "wrapper fplugin", single: true}, "g++": {long: "wrapper fplugin", single: true},
	"cc": {long: "wrapper fplugin", single: true}, "gpg": {long: "photo-viewer agent-program"},
	"yt-dlp": {long: "exec exec-before-download"},
	"git": {long: "exec upload-pack receive-pack open-files-in-pager config-env exec-path ext-diff extcmd",
		words: "foreach"}, "git grep": {letters: "O"}, "git rebase": {letters: "xi", long: "interactive"},
	"git clone": {letters: "cu", long: "config template"},
	"hg":        {long: "config"}, "tcpdump": {letters: "z"},
}

const tarRuns = "to-command use-compress-program checkpoint-action rsh-command info-script new-volume-script rmt-command"

// launchers run what their arguments name, after one of these words.
var launchers = map[string]map[string]bool{
	"deno": wordSet("eval", "run", "x", "install", "serve", "task"), "uv": wordSet("run", "tool", "x"),
	"poetry": wordSet("run", "shell"), "pipenv": wordSet("run", "shell"), "conda": wordSet("run"),
	"mamba": wordSet("run"), "hatch": wordSet("run"), "pdm": wordSet("run"), "bundle": wordSet("exec"),
	"rbenv": wordSet("exec"), "pyenv": wordSet("exec"),
	"rustup": wordSet("run"), "nvm": wordSet("exec", "run"), "asdf": wordSet("exec"), "mise": wordSet("exec", "x"),
	"volta": wordSet("run"), "dotnet": wordSet("exec"), "snap": wordSet("run"), "flatpak": wordSet("run"),
	"lxc": wordSet("exec"), "vagrant": wordSet("ssh"), "bazel": wordSet("run"),
	"mvn": wordSet("exec:exec", "exec:java"), "composer": wordSet("exec"), "go": wordSet("run"),
	"gh": wordSet("alias", "extension"), "ip": wordSet("netns", "vrf"), "opam": wordSet("exec"),
	"stack": wordSet("exec"), "cabal": wordSet("exec"), "luarocks": wordSet("exec"),
	"doppler": wordSet("run"), "op": wordSet("run"), "aws-vault": wordSet("exec"), "dlv": wordSet("exec"),
}

// isLoader reports the program with which the system starts programs.
func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so")
}

// sedPlain are scripts that print, delete or replace, and run nothing.
var sedPlain = regexp.MustCompile(`^(([0-9]+|\$|/[^/]*/)(,([0-9]+|\$|/[^/]*/))?)?([pdq=]|s(/[^/]*/[^/]*/|\|[^|]*\|[^|]*\||#[^#]*#[^#]*#|,[^,]*,[^,]*,)[gpiI0-9]*)$`)

// runsOthers is why a simple command may run commands that its own words do not begin with, "" when it does not.
func runsOthers(ws []word) string {
	name := baseName(ws[0].text)
	for _, w := range ws[1:] {
		if launchers[name][w.text] && name != "go" {
			return name + " " + w.text + " runs other commands"
		}
	}
	switch {
	case !ws[0].known:
		return "its words are only known when it runs"
	case interpreters[name] && execPrograms[name].words == "":
		return inlineText(name, ws[1:])
	case name == "command" && len(ws) > 1 && (ws[1].text == "-v" || ws[1].text == "-V"):
		return ""
	case name == "alias" || name == "trap":
		return name + " changes what later words run"
	case (wrappers[name] || isLoader(name)) && !builtins[name]:
		return name + " runs other commands"
	case name == "sed" || name == "gsed":
		return sedRuns(name, ws[1:])
	case name == "git":
		return gitRuns(ws)
	}
	return execPrograms[name].runs(name, ws[1:])
}

// runs names the word that makes the program run another command.
func (c execOptions) runs(name string, args []word) string {
	for _, w := range args {
		long, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		switch {
		case c == execOptions{}:
			return ""
		case !w.known:
			return "what " + name + " runs is only known then"
		case hasWord(c.words, w.text):
			return name + " " + w.text + " runs other commands"
		case !strings.HasPrefix(w.text, "-"):
			continue
		case strings.HasPrefix(w.text, "--") || c.single:
			for o := range strings.FieldsSeq(c.long) {
				if long == o || strings.HasPrefix(w.text, "--") && long != "" && strings.HasPrefix(o, long) {
					return "the option " + w.text + " makes " + name + " run other commands"
				}
			}
		case strings.ContainsAny(w.text, c.letters):
			return "the option " + w.text + " makes " + name + " run other commands"
		}
	}
	return ""
}

// gitRuns: settings on the command line and aliases run anything.
func gitRuns(ws []word) string {
	for i := 1; i < len(ws); i++ {
		switch t := ws[i].text; {
		case !ws[i].known:
			return "what git runs is only known then"
		case t == "-C" || t == "--git-dir" || t == "--work-tree" || t == "--namespace":
			i++
		case strings.HasPrefix(t, "-c") || strings.HasPrefix(t, "--config-env") || strings.HasPrefix(t, "--exec-path="):
			return "the option " + t + " can make git run other commands"
		case strings.HasPrefix(t, "-"):
		default:
			if _, known := knownPrograms["git"].subs[t]; !known {
				return "git " + t + " may be an alias, or run other commands"
			}
			if why := execPrograms["git "+t].runs("git "+t, ws[i+1:]); why != "" {
				return why
			}
			return execPrograms["git"].runs("git", ws[i+1:])
		}
	}
	return ""
}

// inlineText is why an interpreter runs program text from the line or from its input. A script file is not such text.
func inlineText(name string, args []word) string {
	for _, a := range args {
		switch {
		case !a.known:
			return "what " + name + " runs is only known then"
		case a.text == "-" || a.text == "-s" || isStream(a.text):
			return name + " reads commands from its input"
		case plainOptions.MatchString(a.text):
			if a.text == "--version" || a.text == "--help" || a.text == "-m" {
				return ""
			}
		case strings.HasPrefix(a.text, "-"):
			return "the option " + a.text + " can give " + name + " program text"
		default:
			return ""
		}
	}
	return name + " reads commands from its input"
}

// sedRuns: a script can run commands and write files.
func sedRuns(name string, args []word) string {
	for i, a := range args {
		switch {
		case !a.known:
			return "what " + name + " does is only known then"
		case a.text == "-f":
			return "" // a script file
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			if text, ok := strings.CutPrefix(a.text, "--expression="); ok && !sedPlain.MatchString(text) {
				return name + " runs program text"
			}
			if a.text == "-e" && i+1 < len(args) && !sedPlain.MatchString(args[i+1].text) {
				return name + " runs program text"
			}
		case sedPlain.MatchString(a.text):
			return ""
		default:
			return name + " runs program text"
		}
	}
	return ""
}

// steering are variables that name what programs run.
var steering = regexp.MustCompile(`(?i)(EDITOR|PAGER|BROWSER|SHELL|COMMAND|SSH|ASKPASS|OPTIONS|OPT)$|^(LD_|DYLD_|GIT_|BASH_ENV$|ENV$|PATH$|PERL5|PYTHON(PATH|STARTUP)|RUBYOPT|NODE_OPTIONS)`)
