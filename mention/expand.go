// Package mention turns a person's words into the text that a model is sent: it finds "@/path", "@problems",
// "@git-changes", "@terminal", commit hashes, addresses and slash commands in the words, replaces them, and adds
// their content in Roo's form.
//
// Scan and Commands are pure. Expand asks a World for content and never fails: where content is missing, the reason
// takes its place, for the model and in Notes for the person. Disk is the World on disk. It shows files of the
// workspace that .rooignore does not hide, only the beginning of long files and the names of binary ones, and runs
// git with everything disabled that a repository's own settings could run.
//
// Differences from Roo on purpose: an escaped path loses its backslashes everywhere, a slash command keeps the blank
// before it and does not count inside a mention, and files outside the workspace are refused.
package mention

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace/slash"
)

// World holds what mentions refer to. Missing content is no error: text then states the reason, for the model, and ok
// is false.
type World interface {
	// File returns the content of a file or a folder.
	File(ctx context.Context, path string) Block
	// Changes returns the state of the working directory.
	Changes(ctx context.Context) (text string, ok bool)
	// Commit returns a commit's message and changes.
	Commit(ctx context.Context, hash string) (text string, ok bool)
	// Problems returns the output of a linter.
	Problems(ctx context.Context) (text string, ok bool)
	// Command returns a slash command. note states why an existing one cannot be used.
	Command(ctx context.Context, name string) (c slash.Command, ok bool, note string)
}

// Block is the content of a mentioned file or folder.
type Block struct {
	Folder  bool
	Path    string // as the text shows it
	Text    string // as the model reads it
	Images  []json.RawMessage
	Files   []tool.FileTouch // what the model now knows of files
	Lines   int              // lines of the file
	Shown   int              // lines of the file in Text, from the first
	Problem string           // why the file is not shown, for the person; "" when it is
}

// Expansion is a text after its mentions are resolved.
type Expansion struct {
	Text     string // with mentions replaced
	Appended string // the elements that directly follow the text
	Blocks   []Block
	Commands string   // the slash commands' contents, "" without any
	Mode     string   // the mode that the first slash command with a mode asks for
	Notes    []string // what a person should know
}

// Bounds of one expansion. A provider accepts no more images, and a model no more text; content beyond them is only
// named, and can be read with tools.
const (
	maxText       = 2 << 20
	maxImages     = 20
	maxImageBytes = 20 << 20
	maxLookups    = 50 // distinct mentions that are resolved
)

// Expand replaces mentions and slash commands by Roo's words for them, and resolves each of them once.
func Expand(ctx context.Context, text string, w World) Expansion {
	e := &expander{ctx: ctx, world: w, seen: map[string]bool{}, known: map[string]bool{}}
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

// expander builds one expansion.
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

// replacementText returns the text that replaces a mention.
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
			e.appendContent(m.Kind, "git_commit", fmt.Sprintf(" hash=%q", m.Name), text, ok)
		}
		return fmt.Sprintf("Git commit '%s' (see below for commit info)", m.Name)
	case Changes:
		if first {
			text, ok := e.world.Changes(e.ctx)
			e.appendContent("git-changes", "git_working_state", "", text, ok)
		}
		return "Working directory changes (see below for details)"
	case Problems:
		if first {
			text, ok := e.world.Problems(e.ctx)
			e.appendContent(m.Kind, "workspace_diagnostics", "", text, ok)
		}
		return "Workspace Problems (see below for diagnostics)"
	case Terminal:
		if first { // only an editor has a terminal to read from
			e.appendContent(m.Kind, "terminal_output", "",
				"There is no terminal to read from here. What commands of this task printed is in their results.", false)
		}
		return "Terminal Output (see below for output)"
	}
	return "@" + m.Name
}

// appendContent appends content after the text, in an element.
func (e *expander) appendContent(name Kind, element, attributes, text string, ok bool) {
	if !ok {
		e.note("@%s: %s", name, text)
	}
	e.appended = append(e.appended, fmt.Sprintf("\n\n<%s%s>\n%s\n</%s>", element, attributes, e.withinBounds(text), element))
}

func (e *expander) note(format string, args ...any) {
	e.out.Notes = append(e.out.Notes, fmt.Sprintf(format, args...))
}

// withinBounds returns content, or a note that it does not fit.
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
	e.out.Mode = cmp.Or(e.out.Mode, c.Mode)
	text := ""
	if c.Description != "" {
		text = "Description: " + c.Description + "\n\n"
	}
	e.contents = append(e.contents, fmt.Sprintf("<command name=\"%s\">\n%s\n</command>", name, e.withinBounds(text+c.Content)))
	return true
}

// Kind is the kind of thing that a mention refers to.
type Kind string

// The kinds of mentions.
const (
	File     Kind = "file"     // a file or a folder
	Address  Kind = "address"  // scheme://...
	Commit   Kind = "commit"   // 7 to 40 lower-case hexadecimal digits
	Changes  Kind = "changes"  // git-changes
	Problems Kind = "problems" // problems
	Terminal Kind = "terminal" // terminal
)

// Mention is one "@..." in a text.
type Mention struct {
	Kind    Kind
	At, End int    // byte offsets in the text; At is that of the "@"
	Name    string // as written, without the "@"
	Path    string // of a file: without the first "/", blanks unescaped
}

// mentionForm and slashForm match what follows the "@" of a mention and the "/" of a possible slash command.
var (
	mentionForm = lazyregexp.New(`(?s)^(/.+?|\w+://.+?|[0-9a-f]{7,40}|problems|git-changes|terminal)[.,;:!?]?$`)
	slashForm   = lazyregexp.New(`^([\w.-]+)$`)
)

// find returns where a sign and the group of a form after it are in a text, in order: at the beginning, or after a
// blank. The form describes what follows the sign up to a blank, or the end; a backslash escapes a blank.
func find(text string, sign byte, form *regexp.Regexp) (places [][2]int) {
	end := 0 // of the stretch without blanks that holds the sign: looked for once, as escaped blanks may hold many signs
	for at := 0; at < len(text); at++ {
		next := strings.IndexByte(text[at:], sign)
		if next < 0 {
			break
		}
		at += next
		if before, _ := utf8.DecodeLastRuneInString(text[:at]); at > 0 && !linetext.IsSpace(before) {
			continue
		}
		if at >= end {
			end = at + stretch(text[at:])
		}
		if strings.HasPrefix(text[end:], `\`) {
			at = end
		} else if group := form.FindStringSubmatchIndex(text[at+1 : end]); group != nil {
			places = append(places, [2]int{at, at + 1 + group[3]})
			at += group[3]
		}
	}
	return places
}

// stretch returns where a text has its first blank without a backslash before it, or backslash without a blank behind it.
func stretch(text string) int {
	for i, r := range text {
		if r == '\\' && !strings.HasPrefix(text[i+1:], " ") || linetext.IsSpace(r) && !strings.HasSuffix(text[:i], `\`) {
			return i
		}
	}
	return len(text)
}

// Scan finds the mentions of a text, in order. An "@" counts at the beginning and after a blank. A mention ends
// before a blank or the end of the text, or before one punctuation mark that a blank or the end follows.
func Scan(text string) []Mention {
	return api.Each(find(text, '@', mentionForm()), func(at [2]int) Mention {
		m := Mention{Kind: Commit, At: at[0], End: at[1], Name: text[at[0]+1 : at[1]]}
		for _, n := range namedMentions {
			if m.Name == n.word {
				m.Kind = n.kind
			}
		}
		if strings.HasPrefix(m.Name, "/") {
			m.Kind, m.Path = File, strings.ReplaceAll(m.Name[1:], `\ `, " ")
		} else if strings.Contains(m.Name, "://") {
			m.Kind = Address
		}
		return m
	})
}

// namedMentions are the mentions that are fixed names.
var namedMentions = []struct {
	word  string
	kind  Kind
	about string
}{
	{"problems", Problems, "what the linter reports"},
	{"git-changes", Changes, "what differs from the last commit"},
	{"terminal", Terminal, ""},
}

// Named returns the mentions that are fixed names with a meaning in Roost, each with a description.
func Named() (list [][2]string) {
	for _, n := range namedMentions {
		if n.about != "" {
			list = append(list, [2]string{n.word, n.about})
		}
	}
	return list
}

// Slash is one "/name" in a text.
type Slash struct {
	At, End int // byte offsets in the text; At is that of the "/"
	Name    string
}

// Commands finds possible slash commands, in order: at the beginning or after a blank, and before a blank or the end.
// It does not check whether a command of that name exists.
func Commands(text string) []Slash {
	return api.Each(find(text, '/', slashForm()), func(at [2]int) Slash {
		return Slash{At: at[0], End: at[1], Name: text[at[0]+1 : at[1]]}
	})
}
