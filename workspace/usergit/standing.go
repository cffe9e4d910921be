package usergit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Standing lists the reasons against running git in a folder without asking.
type Standing struct {
	Any   string // why no git command may run there, "" = nothing speaks against it
	Hooks string // why none may that runs hooks or talks to other repositories
}

const (
	lookTime     = 10 * time.Second
	maxRepos     = 32 // submodules that are looked at
	minMajor     = 2
	minMinor     = 38 // the first git with safe.bareRepository
	noRepository = "not a git repository"
)

// Judge examines the repository that contains dir. It must be the one of the workspace root, and its own settings
// must name no program: they are compared with the settings that are known to be harmless. Programs in the user's
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
		return Standing{Any: fmt.Sprintf("%s is older than %d.%d and takes any folder for a repository",
			strings.TrimSpace(text), minMajor, minMinor)}
	}
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"} {
		if os.Getenv(name) != "" {
			return Standing{Any: "the variable " + name + " names another repository"}
		}
	}
	here, why := top(ctx, git, dir)
	home := here
	if why == "" && dir != root {
		home, why = top(ctx, git, root)
	}
	switch {
	case why != "":
		return Standing{Any: why}
	case here != home:
		return Standing{Any: "the folder is not in the workspace's own repository"}
	case here == "":
		return Standing{}
	}
	if rel, err := filepath.Rel(here, root); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return Standing{Any: "the repository's working tree is " + here + ", which does not hold the workspace"}
	}
	left := maxRepos
	s := repository(ctx, git, here, &left)
	for _, name := range []string{"origin", "upstream"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && s.Hooks == "" {
			s.Hooks = "the folder " + name + " may act as a repository"
		}
	}
	return s
}

var version = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

func recent(text string) bool {
	m := version.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > minMajor || major == minMajor && minor >= minMinor
}

// top is the top of the working tree that contains a folder, "" when it is in none.
func top(ctx context.Context, git, dir string) (path, why string) {
	text, err := read(ctx, git, dir, "rev-parse", "--show-toplevel")
	switch {
	case err == nil:
		return filepath.FromSlash(strings.TrimRight(text, "\r\n")), ""
	case strings.Contains(err.Error(), noRepository):
		return "", ""
	}
	return "", "git cannot find the repository: " + err.Error()
}

// repository judges one repository and those in it.
func repository(ctx context.Context, git, dir string, left *int) (s Standing) {
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
			strings.HasSuffix(key, ".pushurl")) && !server.MatchString(value); local && s.Hooks == "" {
			s.Hooks = "the remote " + value + " is no server, and could hold hooks"
		}
	}
	folder, why := hooksFolder(ctx, git, dir, hooks)
	if why != "" {
		return Standing{Any: why}
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
	return inner(ctx, git, dir, left, s)
}

// hooksFolder is the folder with the hooks of a repository.
func hooksFolder(ctx context.Context, git, dir, set string) (folder, why string) {
	if folder = set; folder == "" {
		text, err := read(ctx, git, dir, "rev-parse", "--git-common-dir")
		if err != nil {
			return "", "the repository's hooks cannot be found: " + err.Error()
		}
		folder = filepath.Join(strings.TrimRight(text, "\r\n"), "hooks")
	}
	if strings.HasPrefix(folder, "~") {
		return "", "the repository's hooks lie in " + folder
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(dir, folder)
	}
	return folder, ""
}

// runnable lists the hooks in a folder that git would run.
func runnable(folder string) (names []string, err error) {
	if folder == os.DevNull {
		return nil, nil
	}
	list, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil, nil
	}
	for _, e := range list {
		info, err := os.Stat(filepath.Join(folder, e.Name()))
		if err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || filepath.Separator == '\\') &&
			!strings.HasSuffix(e.Name(), ".sample") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// inner judges the submodules: git status looks into them, with their own settings.
func inner(ctx context.Context, git, dir string, left *int, s Standing) Standing {
	index, err := read(ctx, git, dir, "ls-files", "--stage", "-z")
	if err != nil {
		return Standing{Any: "the repository's index cannot be read: " + err.Error()}
	}
	for line := range strings.SplitSeq(index, "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(head, "160000 ") {
			continue
		}
		sub := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil {
			continue
		}
		in := repository(ctx, git, sub, left)
		if in.Any != "" {
			return Standing{Any: name + ": " + in.Any}
		}
		if s.Hooks == "" && in.Hooks != "" {
			s.Hooks = name + ": " + in.Hooks
		}
	}
	return s
}
