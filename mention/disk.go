package mention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Disk is the World on disk.
type Disk struct {
	Workspace *workspace.Workspace
	Commands  slash.Set
	// Skills of the mode that Mode returns serve as commands where no command has the name.
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
	maxEntries     = 1000      // entries that are listed
	maxFolderFiles = 256 << 10 // bytes of its files that are shown
)

// File shows a file or a folder.
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

// failedBlock is a file that cannot be shown.
func failedBlock(name, why string) Block {
	return Block{Folder: strings.HasSuffix(name, "/"), Text: blockHead(name) + "Error: " + why, Problem: why}
}

// fileBlock shows one file.
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
	return Block{
		Text:  shownText(name, s),
		Files: []tool.FileTouch{s.Touch},
		Lines: s.Lines,
		Shown: s.Returned,
	}
}

// shownText is a file's text as the model reads it.
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
	entries, err := readFolder(p.Real)
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
		line := quotedName(e.Name())
		if e.IsDir() {
			line += "/"
		}
		lines = append(lines, line)
		if !e.Type().IsRegular() || at.Outside {
			continue
		}
		inner := path.Join(filepath.ToSlash(name), quotedName(e.Name()))
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

// readFolder is os.ReadDir with a bound on the number of names.
func readFolder(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(name)
	if len(entries) > 100_000 {
		entries = entries[:100_000] // the rest is not even counted
	}
	return entries, err
}

// quotedName is a name that cannot pass for other lines or other names.
func quotedName(name string) string {
	if tool.OneLine(name) == name {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// Command finds a slash command, or a skill of that name.
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

// skill finds a skill of the task's mode, as a command.
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
		Path:        k.Path,
		Content:     "Folder: " + filepath.Dir(k.Path) + "\n\n" + text,
	}, true, ""
}

// Limits of the output of git or a linter.
const (
	outputLines = 500
	outputChars = 100_000
	outputBytes = 1 << 20 // bytes that are kept
)

// limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	b   strings.Builder
	max int
	cut bool
}

func (c *limitedBuffer) Write(p []byte) (int, error) {
	room := c.max - c.b.Len()
	if len(p) > room {
		c.cut = true
		c.b.Write(p[:max(0, room)])
		return len(p), nil
	}
	c.b.Write(p)
	return len(p), nil
}

// text is the output as a model is shown it.
func (c *limitedBuffer) text() string {
	text := strings.ToValidUTF8(c.b.String(), "\uFFFD")
	if c.cut {
		text += fmt.Sprintf("\n[... more than %d bytes: the rest is left out]", c.max)
	}
	return terminal.Truncate(text, outputLines, outputChars)
}

// Problems runs the linter that the person has set up.
func (g Disk) Problems(ctx context.Context) (string, bool) {
	if g.Linter == "" {
		return "There is no editor to ask, and no linter is set up. `roost config set linter COMMAND` names the one to run.", false
	}
	out := &limitedBuffer{max: outputBytes}
	ran, err := shell.Run(ctx, shell.Command{
		Line:    g.Linter,
		Dir:     g.Workspace.Root(),
		Timeout: linterTime,
		Output:  out,
		Mark:    g.Mark,
	})
	said := strings.TrimSpace(terminal.Plain(out.text()))
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
