package usergit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace/shell"
)

// Limits of the difference from a commit: the caller of Describe keeps all of it, each time. A larger one is hardly
// work in progress.
const (
	maxChanged      = 5000     // files
	maxChangedBytes = 64 << 20 // of all of them
)

// Describe returns the data that another machine needs to make the work tree again that contains root, which is
// absolute and without links: Commit is the newest one on HEAD's line that the remote had when git last contacted it.
// differ are the files in root that differ from the commit, or are untracked and not ignored; with slashes. allowed
// selects the remote. The error is the reason why no other machine could make the tree again.
func Describe(ctx context.Context, root string, allowed func(address string) bool) (t api.WorkTree, differ []string, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return t, nil, errors.New("git is not installed")
	}
	if why := Judge(ctx, root, root).Any; why != "" {
		return t, nil, errors.New(why)
	}
	at, _, why := top(ctx, git, root)
	if at == "" {
		return t, nil, errors.New("it lies in no git work tree: " + why)
	}
	below, err := filepath.Rel(at, root)
	if err != nil || !filepath.IsLocal(below) {
		return t, nil, fmt.Errorf("its work tree %s does not contain it", at)
	}
	if t.Below = filepath.ToSlash(below); t.Below == "." {
		t.Below = ""
	}
	name := ""
	if name, t.Remote, err = remote(ctx, git, at, allowed); err != nil {
		return t, nil, err
	}
	if t.Commit, err = pushed(ctx, git, at, name); err != nil {
		return t, nil, err
	}
	if branch, err := read(ctx, git, at, "symbolic-ref", "-q", "--short", "HEAD"); err == nil { // otherwise HEAD is detached
		t.Branch = strings.TrimSpace(branch)
	}
	index, err := read(ctx, git, at, "ls-files", "--stage", "-z")
	if err != nil {
		return t, nil, fmt.Errorf("its index cannot be read: %w", err)
	}
	if strings.HasPrefix(index, "160000 ") || strings.Contains(index, "\x00160000 ") {
		return t, nil, errors.New("it has submodules")
	}
	differ, err = changed(ctx, git, at, t)
	return t, differ, err
}

// remote returns the allowed remote, origin before others.
func remote(ctx context.Context, git, dir string, allowed func(string) bool) (name, address string, err error) {
	list, err := read(ctx, git, dir, "remote")
	if err != nil {
		return "", "", fmt.Errorf("its remotes cannot be listed: %w", err)
	}
	names := strings.Fields(list)
	if at := slices.Index(names, "origin"); at >= 0 {
		names = slices.Insert(slices.Delete(names, at, at+1), 0, "origin")
	}
	for _, name := range names {
		address, err := read(ctx, git, dir, "remote", "get-url", "--", name)
		if address = strings.TrimRight(address, "\r\n"); err == nil && allowed(address) {
			return name, address, nil
		}
	}
	return "", "", errors.New("none of its remotes is one that servers clone from")
}

// pushed returns the newest commit on HEAD's line of first parents that a remote is known to have.
func pushed(ctx context.Context, git, dir, remote string) (string, error) {
	list, err := read(ctx, git, dir, "rev-list", "--first-parent", "HEAD", "--not", "--remotes="+remote)
	if err != nil {
		return "", fmt.Errorf("its commits cannot be listed: %w", err)
	}
	from := "HEAD"
	if own := strings.Fields(list); len(own) > 0 {
		from = own[len(own)-1] + "^"
	}
	commit, err := read(ctx, git, dir, "rev-parse", "--verify", "-q", from+"^{commit}")
	if err != nil {
		return "", errors.New("no commit of it is known to exist at the remote")
	}
	return strings.TrimSpace(commit), nil
}

// changed lists the files of the folder that differ from the commit.
func changed(ctx context.Context, git, dir string, t api.WorkTree) ([]string, error) {
	tracked, err := read(ctx, git, dir, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", t.Commit, "--")
	if err != nil {
		return nil, fmt.Errorf("its changes cannot be listed: %w", err)
	}
	untracked, err := read(ctx, git, dir, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("its untracked files cannot be listed: %w", err)
	}
	var list []string
	outside := 0
	for p := range strings.SplitSeq(tracked+untracked, "\x00") {
		in, is := strings.CutPrefix(p, t.Below+"/")
		switch {
		case p == "":
		case t.Below == "":
			list = append(list, p)
		case is:
			list = append(list, in)
		default:
			outside++
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	size := int64(0)
	for _, p := range list {
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(path.Join(t.Below, p)))); err == nil {
			size += info.Size()
		}
	}
	switch {
	case outside > 0:
		return nil, fmt.Errorf("%d files outside of the workspace differ from what was pushed", outside)
	case len(list) > maxChanged:
		return nil, fmt.Errorf("%d files differ from what was pushed, and at most %d may", len(list), maxChanged)
	case size > maxChangedBytes:
		return nil, fmt.Errorf("%d MB differ from what was pushed, and at most %d MB may", size>>20, maxChangedBytes>>20)
	}
	return list, nil
}

// wholeCommit is the form of a commit's name, in SHA-1 or SHA-256.
var wholeCommit = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Clone makes the work tree of a commit in a folder that does not exist, with the history of all branches. It runs no
// hook, prompts for nothing, follows no redirection to another server and fetches no submodules and no contents of
// LFS. Keys and credential helpers are those of the user of this process. The caller has checked the address.
func Clone(ctx context.Context, t api.WorkTree, dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("clone %s at %s: %w", t.Remote, t.Commit, err)
		}
	}()
	git, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	if !wholeCommit().MatchString(t.Commit) {
		return errors.New("this is no full commit hash")
	}
	run := func(args ...string) error {
		cmd := command(ctx, git, dir, slices.Concat(cloning, args))
		cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL="+protocol(t.Remote), "GIT_SSH_COMMAND=ssh -oBatchMode=yes",
			"SSH_ASKPASS_REQUIRE=never", "GIT_LFS_SKIP_SMUDGE=1")
		out := shell.Beginning{Most: maxSaid} // the server may say as much as it likes
		cmd.Stderr = &out
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(out.Text()))
		}
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "--template="},
		{"remote", "add", "--", "origin", t.Remote},
		{"fetch", "-q", "--no-recurse-submodules", "origin"},
	} {
		if err := run(args...); err != nil {
			return err
		}
	}
	if run("cat-file", "-e", t.Commit+"^{commit}") != nil { // no branch holds the commit any more
		if err := run("fetch", "-q", "--no-recurse-submodules", "origin", t.Commit); err != nil {
			return err
		}
	}
	if t.Branch == "" || run("check-ref-format", "--branch", t.Branch) != nil {
		return run("checkout", "-q", "--detach", t.Commit, "--")
	}
	if err := run("checkout", "-q", "--no-track", "-B", t.Branch, t.Commit, "--"); err != nil {
		return err
	}
	// The remote lacks a branch that was never pushed, and then this fails.
	_ = run("branch", "-q", "--set-upstream-to="+path.Join("origin", t.Branch), t.Branch)
	return nil
}

// cloning are settings that restrict what a remote can make git do.
var cloning = []string{
	"-c", "http.followRedirects=false",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.fsckObjects=true",
}

// protocol returns the only protocol that git may use for an address.
func protocol(address string) string {
	switch {
	case strings.HasPrefix(address, "https://"):
		return "https"
	case filepath.IsAbs(address):
		return "file"
	}
	return "ssh"
}
