package mention

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/workspace/terminal"
	"github.com/roost-dev/roost/workspace/usergit"
)

// stableSettings make git's output independent of the user's settings.
var stableSettings = []string{"-c", "core.quotePath=false", "-c", "log.showRoot=true"}

// plainDiff keeps a diff from running programs and from following submodules.
var plainDiff = []string{"--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all", "--relative"}

// errNoGit and errNoRepo are answers, not failures.
var (
	errNoGit  = errors.New("Git is not installed") //nolint:staticcheck // shown as it is, as Roo does
	errNoRepo = errors.New("Not a git repository") //nolint:staticcheck // the same
)

// repo is a repository that is being read.
type repo struct {
	git     string   // the program
	dir     string   // the workspace
	filters []string // settings that turn filters off
	prefix  string   // of the workspace in the repository, "" or ending in "/"
	hides   func(rel string) bool
}

// open finds the repository of the workspace.
func (g Disk) open(ctx context.Context) (*repo, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, errNoGit
	}
	r := &repo{git: git, dir: g.Workspace.Root(), hides: func(rel string) bool {
		p, err := g.Workspace.Resolve(rel)
		return err != nil || p.Ignored
	}}
	top, err := r.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, errNoRepo
	}
	// core.worktree may name any folder: its files do not belong to the workspace.
	rel, err := filepath.Rel(filepath.FromSlash(strings.TrimRight(top, "\r\n")), r.dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil, fmt.Errorf("the repository's working tree is %s, which does not hold the workspace", strings.TrimSpace(top))
	}
	if rel != "." {
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	return r, r.disableFilters(ctx)
}

// disableFilters disables the repository's filters: comparing a changed file with its stored content would run them.
func (r *repo) disableFilters(ctx context.Context) error {
	out, err := r.run(ctx, "config", "-z", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // there are none
	}
	if err != nil {
		return fmt.Errorf("look for filters: %w", err)
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if strings.Contains(name, "=") {
			return fmt.Errorf("the repository names a filter (%q) that cannot be turned off, and git is not run with it", name)
		}
		value := ""
		if strings.HasSuffix(name, ".required") {
			value = "false"
		}
		r.filters = append(r.filters, "-c", name+"="+value)
	}
	return nil
}

// run runs git and returns its output.
func (r *repo) run(ctx context.Context, args ...string) (string, error) {
	all := append(append(append([]string{}, stableSettings...), r.filters...), args...)
	cmd := usergit.Command(ctx, r.git, r.dir, all...)
	out, said := &limitedBuffer{max: outputBytes}, &limitedBuffer{max: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(said.text()))
	}
	return out.b.String(), nil
}

// maxHidden bounds the names of hidden files on a command line.
const maxHidden = 500

// visibleArgs returns the arguments that limit a diff to files of the workspace that .rooignore does not hide, and how
// many it hides. names are the changed files.
func (r *repo) visibleArgs(names string) (args []string, hidden int, err error) {
	args = []string{"--", "."}
	for name := range strings.SplitSeq(names, "\x00") {
		if name == "" || !r.hides(name) {
			continue
		}
		if hidden++; hidden > maxHidden {
			return nil, hidden, fmt.Errorf("it changes more than %d files that .rooignore hides", maxHidden)
		}
		args = append(args, ":(exclude,literal)"+name)
	}
	return args, hidden, nil
}

// Changes is the state of the working directory: what `git status` and `git diff HEAD` print about the workspace's
// files.
func (g Disk) Changes(ctx context.Context) (string, bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, errSlow)
	defer cancel()
	text, err := g.changes(ctx)
	return answerText(text, "Failed to get working state", err)
}

var errSlow = fmt.Errorf("git took more than %s", gitTime)

// answerText is the output, or the reason why there is none.
func answerText(text, what string, err error) (string, bool) {
	switch {
	case errors.Is(err, errNoGit), errors.Is(err, errNoRepo):
		return err.Error(), false
	case err != nil:
		return what + ": " + err.Error(), false
	}
	return terminal.Truncate(strings.ToValidUTF8(text, "\uFFFD"), outputLines, outputChars), true
}

func (g Disk) changes(ctx context.Context) (string, error) {
	r, err := g.open(ctx)
	if err != nil {
		return "", err
	}
	out, err := r.run(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all",
		"--no-renames", "--", ".")
	if err != nil {
		return "", err
	}
	status, hidden := r.status(out)
	note := ""
	if hidden > 0 {
		note = fmt.Sprintf("\n(%d changed files are hidden by .rooignore and left out.)\n", hidden)
	}
	if status == "" {
		return "No changes in working directory" + strings.TrimRight(note, "\n"), nil
	}
	if _, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return "Working directory changes:\n\n" + status + note + "\n(There is no commit yet to compare with.)", ctx.Err()
	}
	names, err := r.run(ctx, append(append([]string{"diff", "--name-only", "-z"}, plainDiff...), "HEAD", "--", ".")...)
	if err != nil {
		return "", err
	}
	only, _, err := r.visibleArgs(names)
	if err != nil {
		return "Working directory changes:\n\n" + status + note + "\n(Not shown in full: " + err.Error() + ".)", nil
	}
	diff, err := r.run(ctx, append(append(append([]string{"diff"}, plainDiff...), "HEAD"), only...)...)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace("Working directory changes:\n\n" + status + note + "\n\n" + diff), nil
}

// status writes the lines of `git status --short` for files that .rooignore does not hide.
func (r *repo) status(out string) (lines string, hidden int) {
	var b strings.Builder
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) < 4 {
			continue
		}
		name := strings.TrimPrefix(entry[3:], r.prefix)
		if r.hides(strings.TrimSuffix(name, "/")) {
			hidden++
			continue
		}
		b.WriteString(entry[:3] + quotedName(name) + "\n")
	}
	return b.String(), hidden
}

// Commit is a commit's message and its changes to the workspace's files.
func (g Disk) Commit(ctx context.Context, hash string) (string, bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, errSlow)
	defer cancel()
	text, err := g.commit(ctx, hash)
	return answerText(text, "Failed to get commit info", err)
}

func (g Disk) commit(ctx context.Context, hash string) (string, error) {
	r, err := g.open(ctx)
	if err != nil {
		return "", err
	}
	full, err := r.run(ctx, "rev-parse", "--verify", "--quiet", hash+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("this repository has no commit %s", hash)
	}
	full = strings.TrimSpace(full)
	info, err := r.run(ctx, "show", "--no-patch", "--no-notes", "--no-show-signature", "--no-color", "--format=%h%n%an%n%ad%n%s%n%b", full)
	if err != nil {
		return "", err
	}
	lines := strings.SplitN(strings.TrimRight(info, "\n"), "\n", 5)
	for len(lines) < 5 {
		lines = append(lines, "")
	}
	show := append([]string{"show", "--format=", "--no-notes", "--no-show-signature"}, plainDiff...)
	names, err := r.run(ctx, append(append(show[:len(show):len(show)], "--name-only", "-z", full), "--", ".")...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Commit: %s (%s)\nAuthor: %s\nDate: %s\n\nMessage: %s\n", lines[0], full, lines[1], lines[2], lines[3])
	if body := strings.TrimSpace(lines[4]); body != "" {
		fmt.Fprintf(&b, "\nDescription:\n%s\n", body)
	}
	only, hidden, err := r.visibleArgs(names)
	if err != nil {
		return b.String() + "\n(Its changes are not shown: " + err.Error() + ".)", nil
	}
	stat, err := r.run(ctx, append(append(show[:len(show):len(show)], "--stat", full), only...)...)
	if err != nil {
		return "", err
	}
	diff, err := r.run(ctx, append(append(show[:len(show):len(show)], full), only...)...)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nFiles Changed:\n%s\n", strings.Trim(stat, "\n"))
	if hidden > 0 {
		fmt.Fprintf(&b, "(%d files are hidden by .rooignore and left out.)\n", hidden)
	}
	fmt.Fprintf(&b, "\nFull Changes:\n\n%s", strings.TrimSpace(diff))
	return b.String(), nil
}
