package mention

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/slash"
)

// World holds what mentions refer to. No answer is an error: where content is missing, text gives the model the reason,
// and ok is false.
type World interface {
	// File shows a file or a folder.
	File(ctx context.Context, path string) Block
	// Changes is the state of the working directory.
	Changes(ctx context.Context) (text string, ok bool)
	// Commit is a commit's message and changes.
	Commit(ctx context.Context, hash string) (text string, ok bool)
	// Problems is what a linter finds.
	Problems(ctx context.Context) (text string, ok bool)
	// Command finds a slash command. A note gives the reason why an existing one cannot be used.
	Command(ctx context.Context, name string) (c slash.Command, ok bool, note string)
}

// Block is the content of a mentioned file or folder.
type Block struct {
	Folder  bool
	Path    string // as the text shows it
	Text    string // as the model reads it
	Images  []json.RawMessage
	Files   []tool.FileTouch // what the model now knows
	Lines   int              // of the file
	Shown   int              // lines of it in Text, from the first
	Problem string           // why it is not shown, for the person; "" when it is
}

// Expansion is a text whose mentions are resolved.
type Expansion struct {
	Text     string // with mentions replaced
	Appended string // what follows it directly, in elements
	Blocks   []Block
	Commands string   // the slash commands' contents, "" without any
	Mode     string   // the mode that the first slash command with a mode asks for
	Notes    []string // what a person should know
}

// Bounds of one expansion. A provider accepts no more images, and a model no more text; what is beyond them is named
// and can be read with tools.
const (
	maxText       = 2 << 20
	maxImages     = 20
	maxImageBytes = 20 << 20
	maxLookups    = 50 // distinct mentions whose content is resolved
)

// Expand replaces mentions and slash commands by Roo's words for them, and resolves each once.
func Expand(ctx context.Context, text string, w World) Expansion {
	e := &expander{
		ctx:   ctx,
		world: w,
		seen:  map[string]bool{},
		known: map[string]bool{},
	}
	mentions, commands := Scan(text), Commands(text)
	if len(mentions)+len(commands) == 0 {
		return Expansion{Text: text}
	}
	var b strings.Builder
	from := 0
	put := func(at, end int, words string) {
		b.WriteString(text[from:at])
		b.WriteString(words)
		from = end
	}
	for len(mentions)+len(commands) > 0 {
		switch {
		case len(mentions) == 0 || len(commands) > 0 && commands[0].At < mentions[0].At:
			c := commands[0]
			commands = commands[1:]
			if c.At >= from && e.addCommand(c.Name) { // a command inside a mention is none
				put(c.At, c.End, fmt.Sprintf("Command '%s' (see below for command content)", c.Name))
			}
		default:
			put(mentions[0].At, mentions[0].End, e.replacementText(mentions[0]))
			mentions = mentions[1:]
		}
	}
	b.WriteString(text[from:])
	e.out.Text, e.out.Appended = b.String(), strings.Join(e.appended, "")
	e.out.Commands = strings.Join(e.contents, "\n\n")
	return e.out
}

// expander gathers one expansion.
type expander struct {
	ctx      context.Context //nolint:containedctx // lives as long as one call of Expand
	world    World
	out      Expansion
	seen     map[string]bool // resolved mentions
	known    map[string]bool // slash commands, and whether they exist
	appended []string
	contents []string
	size     int // bytes of text
	images   int
	pictures int // bytes of images
}

// replacementText replaces a mention in the text.
func (e *expander) replacementText(m Mention) string {
	first := !e.seen[m.Name]
	if first && m.Kind != Address {
		if len(e.seen) == maxLookups {
			e.note("only the first %d mentions are looked up", maxLookups)
		}
		e.seen[m.Name] = true
	}
	first = first && len(e.seen) <= maxLookups
	switch m.Kind {
	case File:
		if first {
			e.addFile(m.Path)
		}
		return "'" + m.Path + "'"
	case Address:
		if strings.HasPrefix(m.Name, "http") {
			return "'" + m.Name + "'"
		}
	case Commit:
		if first {
			text, ok := e.world.Commit(e.ctx, m.Name)
			e.appendContent(fmt.Sprintf("git_commit hash=%q", m.Name), "git_commit", text, ok)
		}
		return fmt.Sprintf("Git commit '%s' (see below for commit info)", m.Name)
	case Changes:
		if first {
			text, ok := e.world.Changes(e.ctx)
			e.appendContent("git_working_state", "git_working_state", text, ok)
		}
		return "Working directory changes (see below for details)"
	case Problems:
		if first {
			text, ok := e.world.Problems(e.ctx)
			e.appendContent("workspace_diagnostics", "workspace_diagnostics", text, ok)
		}
		return "Workspace Problems (see below for diagnostics)"
	case Terminal:
		if first {
			e.appendContent("terminal_output", "terminal_output", noTerminal, false)
		}
		return "Terminal Output (see below for output)"
	}
	return "@" + m.Name
}

// noTerminal: only an editor has a terminal to read from.
const noTerminal = "There is no terminal to read from here. What commands of this task printed is in their results."

// appendContent appends content after the text, in an element.
func (e *expander) appendContent(head, tail, text string, ok bool) {
	if !ok {
		e.note("@%s: %s", map[string]string{
			"git_commit": "commit", "git_working_state": "git-changes", "workspace_diagnostics": "problems", "terminal_output": "terminal",
		}[tail], text)
	}
	e.appended = append(e.appended, fmt.Sprintf("\n\n<%s>\n%s\n</%s>", head, e.withinBounds(text), tail))
}

func (e *expander) note(format string, args ...any) {
	e.out.Notes = append(e.out.Notes, fmt.Sprintf(format, args...))
}

// withinBounds is content, or a note that it does not fit.
func (e *expander) withinBounds(text string) string {
	if e.size+len(text) > maxText {
		e.note("the mentions hold more than %d bytes of text: the rest is left out", maxText)
		return "Note: left out, the mentions before it are as much as fits. Use tools to read it."
	}
	e.size += len(text)
	return text
}

// addFile adds a file or folder.
func (e *expander) addFile(path string) {
	b := e.world.File(e.ctx, path)
	b.Path = path
	if text := e.withinBounds(b.Text); text != b.Text {
		b.Text, b.Images, b.Files, b.Problem = fmt.Sprintf("[read_file for '%s']\n%s", path, text), nil, nil, "left out"
	} else if b.Problem != "" {
		e.note("@/%s: %s", path, b.Problem)
	}
	size := 0
	for _, i := range b.Images {
		size += len(i)
	}
	if e.images+len(b.Images) > maxImages || e.pictures+size > maxImageBytes {
		e.note("@/%s: one turn holds at most %d images and %d bytes of them: it is left out", path, maxImages, maxImageBytes)
		b.Text, b.Images, b.Files, b.Problem = fmt.Sprintf("[read_file for '%s']\nNote: image left out, there are "+
			"too many in this turn.", path), nil, nil, "left out"
	} else {
		e.images += len(b.Images)
		e.pictures += size
	}
	e.out.Blocks = append(e.out.Blocks, b)
}

// addCommand adds a slash command's content and reports whether it exists.
func (e *expander) addCommand(name string) bool {
	if there, asked := e.known[name]; asked {
		return there
	}
	if len(e.known) >= maxLookups {
		return false
	}
	c, ok, note := e.world.Command(e.ctx, name)
	e.known[name] = ok
	if note != "" {
		e.note("/%s: %s", name, note)
	}
	if !ok {
		return false
	}
	if e.out.Mode == "" {
		e.out.Mode = c.Mode
	}
	text := ""
	if c.Description != "" {
		text = "Description: " + c.Description + "\n\n"
	}
	e.contents = append(e.contents, fmt.Sprintf("<command name=\"%s\">\n%s\n</command>", name, e.withinBounds(text+c.Content)))
	return true
}
