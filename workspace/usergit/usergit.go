// Package usergit runs git in the user's repositories to read, decides whether git may run there without asking, and
// clones. A repository's own settings name programs for many occasions, and their author need not be the user that runs
// a task.
package usergit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace/shell"
)

// quiet turns off the settings that could make any git command run a program.
var quiet = []string{
	"--no-pager", "--no-optional-locks",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "core.pager=cat",
	"-c", "core.askPass=",
	"-c", "log.showSignature=false",
	"-c", "gpg.program=false",
	"-c", "safe.bareRepository=explicit",
	"-c", "submodule.recurse=false",
}

// alone keeps a git command from contacting servers.
var alone = []string{"-c", "core.sshCommand=false", "-c", "credential.helper="}

// Command returns a git command that reads in a folder. It runs no program that the repository names but filters and
// text conversions, fetches nothing and asks nothing. Variables that steer git are dropped, because they can name
// programs and other repositories.
func Command(ctx context.Context, program, dir string, args ...string) *exec.Cmd {
	cmd := command(ctx, program, dir, slices.Concat(alone, args))
	cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
	return cmd
}

func command(ctx context.Context, program, dir string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, slices.Concat(quiet, args)...)
	cmd.Dir = dir
	cmd.Env = environ(os.Environ())
	cmd.WaitDelay = time.Second
	return cmd
}

func environ(base []string) []string {
	out := slices.DeleteFunc(shell.Environ(base), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		return strings.HasPrefix(name, "GIT_") || name == "LC_ALL"
	})
	return append(out, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat")
}

// maxOutput bounds the bytes that git may print: enough for an index of half a million files. A small index can name
// paths of gigabytes. maxSaid bounds its messages.
const (
	maxOutput = 1 << 26
	maxSaid   = 1 << 16
)

// Read runs a git command that reads in a folder (see Command), and returns its output. in is its input, or nil.
func Read(ctx context.Context, program, dir string, in io.Reader, args ...string) ([]byte, error) {
	cmd := Command(ctx, program, dir, args...) // its WaitDelay ends the reading, should another process hold the pipe open
	out, said := shell.Beginning{Most: maxOutput}, shell.Beginning{Most: maxSaid}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Kept))
	}
	if out.Cut {
		return nil, errors.New("it prints too much")
	}
	return out.Kept, nil
}

func read(ctx context.Context, program, dir string, args ...string) (string, error) {
	out, err := Read(ctx, program, dir, nil, args...)
	return string(out), err
}

// Standing lists the reasons against running git in a folder without asking.
type Standing struct {
	Any   string // why no git command may run there without asking, "" = each may
	Hooks string // why no git command that runs hooks or contacts other repositories may, "" = each may
}

const (
	lookTime     = 10 * time.Second
	maxRepos     = 32      // submodules that are judged
	maxList      = 1 << 20 // bytes of the list of a rebase
	minMajor     = 2
	minMinor     = 38 // the first git with safe.bareRepository
	noRepository = "not a git repository"
)

// Judge examines the repository that contains dir. It must be the repository of the workspace root, and its own
// settings must name no program: Judge accepts only settings that are known to be harmless. Programs in the user's
// global settings are the user's own choice.
func Judge(ctx context.Context, root, dir string) Standing {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	git, err := exec.LookPath("git")
	if err != nil {
		return Standing{} // then none runs
	}
	text, err := read(ctx, git, dir, "version")
	if err != nil {
		return Standing{Any: "git cannot be run: " + err.Error()}
	}
	if !recent(text) {
		return Standing{Any: fmt.Sprintf("%s is older than %d.%d, and such a git treats any folder as a repository",
			strings.TrimSpace(text), minMajor, minMinor)}
	}
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"} {
		if os.Getenv(name) != "" {
			return Standing{Any: "the variable " + name + " names another repository"}
		}
	}
	here, own, why := top(ctx, git, dir)
	home := here
	if why == "" && dir != root {
		home, _, why = top(ctx, git, root)
	}
	switch {
	case why != "":
		return Standing{Any: why}
	case here != home:
		return Standing{Any: "the folder is not in the workspace's own repository"}
	case here == "":
		return Standing{}
	}
	if !holds(here, root) {
		return Standing{Any: "the repository's working tree is " + here + ", which does not hold the workspace"}
	}
	left := maxRepos
	s := repository(ctx, git, here, own, &left)
	for _, name := range []string{"origin", "upstream"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && s.Hooks == "" {
			s.Hooks = "the folder " + name + " may act as a repository"
		}
	}
	return s
}

var version = lazyregexp.New(`^git version (\d+)\.(\d+)`)

func recent(text string) bool {
	m := version().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > minMajor || major == minMajor && minor >= minMinor
}

// top returns the top folder of the working tree that contains dir, "" when dir is in none, and git's own folder.
func top(ctx context.Context, git, dir string) (path, own, why string) {
	text, err := read(ctx, git, dir, "rev-parse", "--show-toplevel", "--absolute-git-dir")
	switch {
	case err == nil:
		path, own, _ = strings.Cut(strings.TrimRight(text, "\r\n"), "\n")
		return filepath.FromSlash(path), own, ""
	case strings.Contains(err.Error(), noRepository):
		return "", "", ""
	}
	return "", "", "git cannot find the repository: " + err.Error()
}

// repository judges the repository whose working tree has its top at dir, and its submodules. want is git's own folder
// if it is known: a setting can give a repository the working tree of another one.
func repository(ctx context.Context, git, dir, want string, left *int) (s Standing) {
	if *left--; *left < 0 {
		return Standing{Any: fmt.Sprintf("the repository holds more than %d others", maxRepos)}
	}
	list, err := read(ctx, git, dir, "config", "--list", "--show-scope", "-z")
	if err != nil {
		return Standing{Any: "the repository's settings cannot be read: " + err.Error()}
	}
	hooks := ""
	fields := strings.Split(list, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope := fields[i]
		key, value, set := strings.Cut(fields[i+1], "\n")
		if key == "core.hookspath" && scope != "command" {
			hooks = value
			if scope == "global" || scope == "system" {
				hooks = os.DevNull // the user's own
			}
		}
		if scope != "local" && scope != "worktree" {
			continue
		}
		if !plain(key, value, set) {
			return Standing{Any: "the repository's setting " + key + " is not known to be harmless"}
		}
		if local := strings.HasPrefix(key, "remote.") && (strings.HasSuffix(key, ".url") ||
			strings.HasSuffix(key, ".pushurl")) && !server().MatchString(value); local && s.Hooks == "" {
			s.Hooks = "the remote " + value + " is no server, and could hold hooks"
		}
	}
	text, err := read(ctx, git, dir, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
	places := strings.Split(strings.TrimRight(text, "\r\n"), "\n") // a fourth line would come from a name with a line end
	if err != nil || len(places) != 3 || strings.HasPrefix(hooks, "~") {
		return Standing{Any: fmt.Sprintf("the repository's hooks cannot be found: %v", cmp.Or(err, errors.New("they lie in "+hooks)))}
	}
	if filepath.FromSlash(places[2]) != dir || want != "" && places[0] != want {
		return Standing{Any: "the repository's setting core.worktree names the folder of another one"}
	}
	own, common := places[0], places[1]
	folder := cmp.Or(hooks, filepath.Join(common, "hooks"))
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(dir, folder)
	}
	named, err := runnable(folder)
	if err != nil {
		return Standing{Any: "the repository's hooks cannot be listed: " + err.Error()}
	}
	for _, name := range named {
		if name == "post-index-change" || name == "reference-transaction" { // run when git only looks
			return Standing{Any: "the repository's hook " + name + " would run"}
		}
		s.Hooks = "the repository's hook " + name + " would run"
	}
	s.Hooks = cmp.Or(s.Hooks, prepared(dir, own, common, folder))
	return inner(ctx, git, dir, left, s)
}

// holds reports whether a path is a folder, or in it.
func holds(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// runsCommand matches a line of a rebase's list that runs a command.
var runsCommand = lazyregexp.New(`(?m)^[ \t]*(x|exec)[ \t]`)

// prepared is why a command that is harmless by its words may run or contact what files of the repository name.
func prepared(dir, own, common, hooks string) string {
	hooks = inputfile.Resolved(hooks)
	if holds(dir, hooks) && !holds(filepath.Join(dir, ".git"), hooks) { // git writes nothing into a folder of that name
		return "the repository's hooks lie in its working tree, where git may change them first"
	}
	// Two folders define remotes beside the settings. Two files name the strategy of an unfinished rebase or cherry-pick,
	// and a strategy may be a program in the working tree.
	for _, name := range []string{common + "/remotes", common + "/branches", own + "/rebase-merge/strategy", own + "/sequencer/opts"} {
		if list, err := os.ReadDir(name); len(list) > 0 || err != nil && !os.IsNotExist(err) { // a file is an error
			return "the repository's " + filepath.Base(name) + " may name repositories or programs"
		}
	}
	list, err := inputfile.ReadFS(os.DirFS(own), "rebase-merge/git-rebase-todo", maxList)
	if err != nil && !os.IsNotExist(err) || len(list) == maxList || runsCommand().Match(list) {
		return "the repository's unfinished rebase runs commands"
	}
	return ""
}

// runnable lists the hooks in a folder that git would run.
func runnable(folder string) (names []string, err error) {
	list, err := os.ReadDir(folder)
	if os.IsNotExist(err) || folder == os.DevNull {
		return nil, nil
	}
	for _, e := range list {
		info, err := os.Stat(filepath.Join(folder, e.Name()))
		if e.Type()&os.ModeSymlink != 0 || err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || filepath.Separator == '\\') &&
			!strings.HasSuffix(e.Name(), ".sample") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// inner judges the submodules: git status reads them, with their own settings. It judges any other repository in the
// working tree, too, since "git add ." and a checkout can make it a submodule.
func inner(ctx context.Context, git, dir string, left *int, s Standing) Standing {
	index, err := read(ctx, git, dir, "ls-files", "--stage", "-z")
	others, bad := read(ctx, git, dir, "ls-files", "--others", "-z", "--", "*/")
	if err = cmp.Or(err, bad); err != nil {
		return Standing{Any: "the repository's index cannot be read: " + err.Error()}
	}
	names := strings.Split(others, "\x00") // with a slash at the end
	for line := range strings.SplitSeq(index, "\x00") {
		if head, name, _ := strings.Cut(line, "\t"); strings.HasPrefix(head, "160000 ") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		sub := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil || name == "" {
			continue
		}
		in := repository(ctx, git, sub, "", left)
		if in.Any != "" {
			return Standing{Any: name + ": " + in.Any}
		}
		if s.Hooks == "" && in.Hooks != "" && !strings.HasSuffix(name, "/") {
			s.Hooks = name + ": " + in.Hooks
		}
	}
	return s
}

// server matches the address of a repository on a server: git runs nothing of that repository here.
var server = lazyregexp.New(`^(https?|ssh|git)://[^-]|^[A-Za-z0-9_.]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^:-]`)

// harmless are settings of a repository that name no program. A section's name with ".*" means all of its settings
// that have no subsection; "<>" stands for a subsection. A setting that is not listed here makes Roost ask before git
// runs.
var harmless = strings.Fields(`core.repositoryformatversion core.filemode core.bare core.logallrefupdates
		core.ignorecase core.precomposeunicode core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.compression core.untrackedcache core.preloadindex core.splitindex core.checkstat core.trustctime
		core.worktree core.sparsecheckout core.sparsecheckoutcone core.longpaths core.protectntfs core.protecthfs core.commitgraph core.multipackindex core.whitespace core.bigfilethreshold
		core.commentchar core.hookspath core.excludesfile core.fsmonitor core.warnambiguousrefs core.sharedrepository
		user.name user.email user.signingkey user.useconfigonly author.name author.email committer.name committer.email commit.gpgsign commit.verbose commit.cleanup tag.gpgsign tag.sort
		push.default push.autosetupremote push.followtags pull.rebase pull.ff fetch.prune fetch.prunetags fetch.output rebase.autosquash rebase.autostash rebase.updaterefs
		merge.ff merge.conflictstyle merge.renames merge.log merge.stat diff.renames diff.renamelimit diff.algorithm diff.colormoved diff.noprefix diff.mnemonicprefix diff.context diff.submodule diff.ignoresubmodules
		log.date log.decorate log.follow log.abbrevcommit log.showroot gc.auto gc.autodetach gc.pruneexpire gc.reflogexpire gc.reflogexpireunreachable gc.autopacklimit
		maintenance.auto maintenance.strategy extensions.worktreeconfig extensions.objectformat extensions.refstorage extensions.noop init.defaultbranch i18n.commitencoding i18n.logoutputencoding
		color.* status.* column.* advice.* pack.* index.* feature.* blame.* grep.* checkout.* rerere.* versionsort.* alias.* alias.<>.* submodule.active submodule.recurse submodule.fetchjobs
		branch.sort branch.autosetuprebase branch.autosetupmerge color.<>.* lfs.repositoryformatversion lfs.<>.access lfs.<>.locksverify http.<>.extraheader github.user
		remote.<>.url remote.<>.pushurl remote.<>.fetch remote.<>.push remote.<>.prune remote.<>.prunetags remote.<>.tagopt remote.<>.gh-resolved remote.<>.skipfetchall remote.<>.skipdefaultupdate remote.<>.followremotehead
		remote.pushdefault branch.<>.* submodule.<>.url submodule.<>.active submodule.<>.branch submodule.<>.ignore submodule.<>.update submodule.<>.fetchrecursesubmodules submodule.<>.path`)

var (
	remoteName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_-]*$|^\.$`)
	truth      = lazyregexp.New(`^(?i)(true|false|yes|no|on|off|0|1|)$`)
)

// plain reports whether a setting names no program.
func plain(key, value string, set bool) bool {
	section, name, _ := strings.Cut(key, ".")
	if at := strings.LastIndex(name, "."); at >= 0 {
		section, name = section+".<>", name[at+1:]
	}
	if !slices.Contains(harmless, section+"."+name) && !slices.Contains(harmless, section+".*") {
		return false
	}
	switch section + "." + name {
	case "core.fsmonitor":
		return !set || truth().MatchString(value)
	case "branch.<>.remote", "branch.<>.pushremote", "remote.pushdefault":
		return remoteName().MatchString(value)
	case "submodule.<>.update":
		return !strings.HasPrefix(value, "!")
	case "remote.<>.url", "remote.<>.pushurl", "submodule.<>.url":
		return !strings.Contains(value, "::") && !strings.HasPrefix(value, "-")
	}
	return true
}
