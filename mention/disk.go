package mention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
	"github.com/roost-dev/roost/workspace/terminal"
	"github.com/roost-dev/roost/workspace/usergit"
)

// Disk is the World on disk.
type Disk struct {
	Workspace *workspace.Workspace
	Commands  slash.Set
	// Skills of the mode that Mode returns serve as commands, where no command has that name.
	Skills skill.Set
	Mode   func() string // nil = the default
	// Linter is a command line that the person has set up; @problems shows its output. "" = none. Mark identifies its
	// processes (see shell.FindMarked) if this process dies before they end; "" = a new one.
	Linter, Mark string
}

// Time limits for git and a linter.
const (
	gitTime    = 10 * time.Second
	linterTime = 60 * time.Second
)

// Limits of a folder.
const (
	maxNames       = 100_000   // names that are read; the others are not even counted
	maxEntries     = 1000      // entries that are listed
	maxFolderFiles = 256 << 10 // bytes of its files that are shown
)

// File returns the content of a file or a folder.
func (g Disk) File(ctx context.Context, name string) Block {
	p, err := g.Workspace.Resolve(name)
	switch {
	case err != nil:
		return failedBlock(name, err.Error())
	case p.Outside:
		return failedBlock(name, "it is outside the workspace, and mentions do not reach there. Name it in words: "+
			"reading it with a tool asks for consent")
	}
	info, err := os.Stat(p.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failedBlock(name, "there is no such file or folder in the workspace")
	case p.Ignored:
		return Block{Text: blockHead(name) + "Note: File is ignored by .rooignore.", Problem: "it is hidden by .rooignore"}
	case err == nil && info.IsDir():
		return g.folderBlock(ctx, name, p)
	}
	return g.fileBlock(ctx, name, p)
}

func blockHead(name string) string { return fmt.Sprintf("[read_file for '%s']\n", name) }

// failedBlock returns the block for a file that cannot be shown.
func failedBlock(name, why string) Block {
	return Block{Folder: strings.HasSuffix(name, "/"), Text: blockHead(name) + "Error: " + why, Problem: why}
}

// fileBlock returns the content of one file.
func (g Disk) fileBlock(ctx context.Context, name string, p workspace.Path) Block {
	s, why, err := filetool.Show(ctx, g.Workspace, p)
	switch {
	case err != nil:
		return failedBlock(name, "it was not read: "+err.Error())
	case why != "":
		return failedBlock(name, why)
	case s.Binary:
		return Block{Text: blockHead(name) + "Note: Binary file omitted from context.", Problem: fmt.Sprintf("a binary file of %d bytes, "+
			"or too large an image: it is only named", s.Touch.Size)}
	case s.Image != nil:
		return Block{
			Text:   fmt.Sprintf("%sNote: image (%s, %d bytes) follows.", blockHead(name), s.Media, s.Touch.Size),
			Images: []json.RawMessage{s.Image}, Files: []tool.FileTouch{s.Touch},
		}
	}
	return Block{Text: shownText(name, s), Files: []tool.FileTouch{s.Touch}, Lines: s.Lines, Shown: s.Returned}
}

// shownText returns a file's text as the model reads it.
func shownText(name string, s filetool.Shown) string {
	more := ""
	if s.Truncated {
		more = fmt.Sprintf("IMPORTANT: File content truncated.\nStatus: Showing lines 1-%d of %d total lines.\nTo "+
			"read more: Use the read_file tool with offset=%d and limit=2000.\n\n", s.Returned, s.Lines, s.Returned+1)
	}
	return blockHead(name) + more + "File: " + name + "\n" + s.Text
}

// folderBlock lists a folder and shows the files directly in it.
func (g Disk) folderBlock(ctx context.Context, name string, p workspace.Path) Block {
	entries, err := g.Workspace.ReadDir(p.Real, maxNames)
	if err != nil {
		return failedBlock(name, err.Error())
	}
	var lines, texts, left []string
	size, more := 0, 0
	for _, e := range entries {
		at, err := g.Workspace.Resolve(filepath.Join(p.Real, e.Name()))
		if err != nil || at.Ignored {
			continue
		}
		if len(lines) == maxEntries {
			more++
			continue
		}
		line := tool.SafeName(e.Name())
		if e.IsDir() {
			line += "/"
		}
		lines = append(lines, line)
		if !e.Type().IsRegular() || at.Outside {
			continue
		}
		inner := path.Join(filepath.ToSlash(name), tool.SafeName(e.Name()))
		if size >= maxFolderFiles {
			left = append(left, inner)
			continue
		}
		s, why, err := filetool.Show(ctx, g.Workspace, at)
		if err != nil || why != "" || s.Binary || s.Image != nil {
			continue
		}
		text := shownText(inner, s)
		if size+len(text) > maxFolderFiles {
			left = append(left, inner)
			continue
		}
		size += len(text)
		texts = append(texts, text)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[read_file for folder '%s']\nFolder listing:\n", name)
	for i, l := range lines {
		branch := "├── "
		if i == len(lines)-1 && more == 0 {
			branch = "└── "
		}
		b.WriteString(branch + l + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "└── (%d more: use list_files)\n", more)
	}
	if len(texts) > 0 {
		b.WriteString("\n\n--- File Contents ---\n\n" + strings.Join(texts, "\n\n"))
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\n\nNote: too much to be shown at once: %s. Use read_file.", strings.Join(left[:min(len(left), 50)], ", "))
	}
	return Block{Folder: true, Text: b.String()}
}

// Command returns a slash command, or a skill of that name.
func (g Disk) Command(ctx context.Context, name string) (slash.Command, bool, string) {
	c, err := g.Commands.Find(ctx, name)
	switch {
	case errors.Is(err, slash.ErrNone):
		return g.skill(name)
	case err != nil:
		return c, false, err.Error()
	}
	return c, true, ""
}

// skill returns a skill of the task's mode, as a command.
func (g Disk) skill(name string) (slash.Command, bool, string) {
	mode := ""
	if g.Mode != nil {
		mode = g.Mode()
	}
	k, text, err := g.Skills.Find(mode, name)
	switch {
	case errors.Is(err, skill.ErrNone):
		return slash.Command{}, false, ""
	case err != nil:
		return slash.Command{}, false, err.Error()
	}
	return slash.Command{
		Name:        k.Name,
		Description: k.Description,
		Source:      k.Source,
		Content:     "Folder: " + filepath.Dir(k.Path) + "\n\n" + text,
	}, true, ""
}

// Limits of the output of git or a linter.
const (
	outputLines = 500
	outputChars = 100_000
	outputBytes = 1 << 20 // bytes that are kept
)

// outputText returns an output as the model reads it.
func outputText(c *shell.Beginning) string {
	text := c.Text()
	if c.Cut {
		text += fmt.Sprintf("\n[... more than %d bytes: the rest is left out]", c.Most)
	}
	return terminal.Truncate(text, outputLines, outputChars)
}

// Problems runs the linter that the person has set up.
func (g Disk) Problems(ctx context.Context) (string, bool) {
	if g.Linter == "" {
		return "There is no editor to ask, and no linter is set up. `roost config set linter COMMAND` names the one to run.", false
	}
	out := &shell.Beginning{Most: outputBytes}
	command := shell.Command{Line: g.Linter, Dir: g.Workspace.Root(), Timeout: linterTime, Output: out, Mark: g.Mark}
	ran, err := shell.Run(ctx, command)
	said := strings.TrimSpace(terminal.Plain(outputText(out)))
	switch {
	case err != nil:
		return fmt.Sprintf("The linter %q could not be run: %v", g.Linter, err), false
	case ran.Cancelled:
		return "The linter was stopped with the run.", false
	case ran.TimedOut:
		return fmt.Sprintf("The linter %q took more than %s and was ended. Its output until then:\n%s", g.Linter, linterTime, said), false
	case said == "" && ran.Exit == 0:
		return "No errors or warnings detected.", true
	case said == "":
		return fmt.Sprintf("The linter %q ended with exit code %d and printed nothing.", g.Linter, ran.Exit), true
	}
	return said, true
}

// stableSettings make git's output independent of the user's settings.
var stableSettings = []string{"-c", "core.quotePath=false", "-c", "log.showRoot=true"}

// plainDiff keeps a diff from running programs and from entering submodules.
var plainDiff = []string{"--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all", "--relative"}

// errNoGit and errNoRepo are shown alone, without "failed": they state why there is nothing to show.
var (
	errNoGit  = errors.New("Git is not installed") //nolint:staticcheck // shown as it is, as Roo does
	errNoRepo = errors.New("Not a git repository") //nolint:staticcheck // the same
)

// repo is a repository that is being read.
type repo struct {
	git     string   // the program
	dir     string   // the workspace
	filters []string // settings that turn filters off
	prefix  string   // the workspace's path in the repository, "" or ending in "/"
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

// disableFilters disables the repository's filters: otherwise a comparison of a changed file with its stored content
// would run them.
func (r *repo) disableFilters(ctx context.Context) error {
	out, err := r.run(ctx, "config", "-z", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil // there are none
	}
	if err != nil {
		return fmt.Errorf("read the repository's filters: %w", err)
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
	cmd := usergit.Command(ctx, r.git, r.dir, slices.Concat(stableSettings, r.filters, args)...)
	out, said := &shell.Beginning{Most: outputBytes}, &shell.Beginning{Most: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(outputText(said)))
	}
	return string(out.Kept), nil
}

// maxHidden bounds the names of hidden files on a command line.
const maxHidden = 500

// visibleArgs returns the arguments that limit a diff to files of the workspace that .rooignore does not hide, and
// the number of hidden ones. names are the changed files.
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

// Changes returns the state of the working directory: the output of `git status` and `git diff HEAD` about the
// workspace's files.
func (g Disk) Changes(ctx context.Context) (string, bool) {
	return answer(ctx, "Failed to get working state", g.changes)
}

var errSlow = fmt.Errorf("git took more than %s", gitTime)

// answer returns what ask gets from git, or the reason why there is nothing.
func answer(ctx context.Context, what string, ask func(context.Context) (string, error)) (string, bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, errSlow)
	defer cancel()
	text, err := ask(ctx)
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
	names, err := r.run(ctx, slices.Concat([]string{"diff", "--name-only", "-z"}, plainDiff, []string{"HEAD", "--", "."})...)
	if err != nil {
		return "", err
	}
	only, _, err := r.visibleArgs(names)
	if err != nil {
		return "Working directory changes:\n\n" + status + note + "\n(Not shown in full: " + err.Error() + ".)", nil
	}
	diff, err := r.run(ctx, slices.Concat([]string{"diff"}, plainDiff, []string{"HEAD"}, only)...)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace("Working directory changes:\n\n" + status + note + "\n\n" + diff), nil
}

// status returns the lines of `git status --short` for files that .rooignore does not hide.
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
		b.WriteString(entry[:3] + tool.SafeName(name) + "\n")
	}
	return b.String(), hidden
}

// Commit returns a commit's message and its changes to the workspace's files.
func (g Disk) Commit(ctx context.Context, hash string) (string, bool) {
	return answer(ctx, "Failed to get commit info", func(ctx context.Context) (string, error) { return g.commit(ctx, hash) })
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
	lines := append(strings.SplitN(strings.TrimRight(info, "\n"), "\n", 5), "", "", "", "")
	show := append([]string{"show", "--format=", "--no-notes", "--no-show-signature"}, plainDiff...)
	names, err := r.run(ctx, slices.Concat(show, []string{"--name-only", "-z", full, "--", "."})...)
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
	stat, err := r.run(ctx, slices.Concat(show, []string{"--stat", full}, only)...)
	if err != nil {
		return "", err
	}
	diff, err := r.run(ctx, slices.Concat(show, []string{full}, only)...)
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
