// Package slash knows the slash commands: prompts that a person has written down under a name, in
// .roo/commands/NAME.md of the workspace or of the home folder, or that are built in. The workspace's come before the
// home folder's, and both before the built-in ones.
//
// A file may begin with front matter (YAML between lines of "---"): the package reads description, argument-hint and
// mode, and ignores the rest. Front matter that is no YAML counts as content.
//
// A file of the workspace that is a link out of it is refused: a name from a model must not lead to a file outside.
// Files are read when they are requested, so that an edit takes effect at once.
package slash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace"
)

// maxFront bounds front matter in bytes; usually it is three short lines.
const maxFront = 16 << 10

// Parse reads the text of a command's file.
func Parse(text string) Command {
	front, content := Front(text)
	return Command{
		Content: content, Description: front.Text("description"),
		Hint: front.Text("argument-hint"), Mode: front.Text("mode"),
	}
}

// Fields are the members of front matter, each as a text or as a list.
type Fields map[string]field

type field struct {
	text string
	list []string
}

// Text returns a field that is text, "" for any other.
func (f Fields) Text(name string) string { return f[name].text }

// List returns a field that is a list of texts, nil for any other.
func (f Fields) List(name string) []string { return f[name].list }

// Front splits a text into its front matter and the content after it. If a text has no front matter, or front matter
// that is no list of fields, the whole text is content, and the fields are nil.
func Front(text string) (Fields, string) {
	text = strings.ToValidUTF8(strings.TrimPrefix(text, "\uFEFF"), "\uFFFD")
	if front, rest, ok := split(text); ok {
		if fields, ok := decode(front); ok {
			return fields, strings.TrimSpace(rest)
		}
	}
	return nil, strings.TrimSpace(text)
}

// split returns the front matter, which is between a first line of "---" and the next such line, and the rest.
func split(text string) (front, rest string, ok bool) {
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t\r") != "---" {
		return "", "", false
	}
	for at := 0; at <= len(rest) && at <= maxFront; {
		line, _, more := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t\r") == "---" {
			return rest[:at], rest[min(len(rest), at+len(line)+1):], true
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return "", "", false
}

// decode reads the fields of front matter that are texts or lists of texts; false when it is no list of fields. It
// knows the forms in which YAML writes a text at the top level and skips other values. go-yaml was rejected: one
// value that YAML requires to be quoted ("usage: deploy: all", an open quote) would cost all other fields, and files
// that anybody may have written could make it panic or expand aliases without end.
func decode(front string) (Fields, bool) {
	fields := Fields{}
	lines := strings.Split(strings.ReplaceAll(front, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		if t := strings.TrimSpace(line); t == "" || t[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(line[:1], ": \t-[]{}&*!|>'\"%@`") || value != "" && value[0] != ' ' && value[0] != '\t' {
			return nil, false
		}
		from := i
		for i < len(lines) && (strings.TrimSpace(lines[i]) == "" || lines[i][0] == ' ' || lines[i][0] == '\t' ||
			strings.HasPrefix(lines[i], "- ")) {
			i++
		}
		value = strings.TrimSpace(value)
		fields[strings.TrimSpace(key)] = field{strings.TrimSpace(scalar(value, lines[from:i])), items(value, lines[from:i])}
	}
	return fields, true
}

// items returns the texts of a list, on one line ("[a, b]") or on lines that begin with "-". A list with anything
// else than texts without commas gives none.
func items(value string, below []string) []string {
	if at := strings.Index(value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	var list []string
	add := func(text string) bool {
		text = scalar(strings.TrimSpace(text), nil)
		list = append(list, text)
		return text != ""
	}
	if value == "" {
		for _, l := range below {
			l = strings.TrimSpace(l)
			if l == "" || l[0] == '#' {
				continue
			}
			item, ok := strings.CutPrefix(l, "- ")
			if !ok || !add(item) {
				return nil
			}
		}
		return list
	}
	inner, open := strings.CutPrefix(value, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !open || !closed || strings.TrimSpace(strings.Join(below, "")) != "" {
		return nil
	}
	for item := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(inner), ","), ",") {
		if !add(item) {
			return nil
		}
	}
	return list
}

// scalar returns a value that is text, "" for any other. below are the indented lines that follow.
func scalar(value string, below []string) string {
	if value == "" {
		return ""
	}
	switch value[0] {
	case '|', '>':
		return block(below, value[0] == '>')
	case '[', '{', '&', '*', '!', '%', '@', '`', '#', '-':
		if value[0] == '-' && len(value) > 1 && value[1] != ' ' {
			break
		}
		return ""
	}
	for _, l := range below {
		if l = strings.TrimSpace(l); l != "" {
			value += " " + l
		}
	}
	if value[0] == '\'' || value[0] == '"' {
		return quoted(value)
	}
	if at := strings.Index(value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	switch strings.ToLower(value) {
	case "true", "false", "null", "~":
		return ""
	}
	if number().MatchString(value) {
		return ""
	}
	return value
}

// number matches the texts that YAML reads as numbers: 1, -2.5e3, 0x1f, 1_000, .inf. A word that begins with a letter
// is no number, even where Go reads one: inf and nan are words.
var number = lazyregexp.New(`(?i)^[-+]?(\.inf|\.nan|0x[0-9a-f_]+|0o[0-7_]+|0b[01_]+|([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(e[-+]?[0-9_]+)?)$`)

// quoted returns the text between quotes; "" when they are not closed.
func quoted(value string) string {
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		c := value[i]
		switch {
		case c == value[0] && c == '\'' && strings.HasPrefix(value[i+1:], "'"):
			i++
		case c == value[0]:
			return b.String()
		case c == '\\' && value[0] == '"' && i+1 < len(value):
			r, _, tail, err := strconv.UnquoteChar(value[i:], '"')
			if err != nil {
				return ""
			}
			b.WriteRune(r)
			i = len(value) - len(tail) - 1
			continue
		}
		b.WriteByte(c)
	}
	return ""
}

// block joins indented lines: unchanged, or folded into one line.
func block(below []string, folded bool) string {
	indent := -1
	for _, l := range below {
		if t := strings.TrimLeft(l, " "); t != "" && (indent < 0 || len(l)-len(t) < indent) {
			indent = len(l) - len(t)
		}
	}
	var b strings.Builder
	for _, l := range below {
		l = strings.TrimRight(l[min(max(indent, 0), len(l)):], " \t")
		switch {
		case b.Len() == 0:
		case folded && l != "":
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}

// Command is one slash command.
type Command struct {
	Name        string
	Content     string
	Description string
	Hint        string // a description of its arguments
	Mode        string // the mode that it is for; "" for any
	Source      string // project, global or built-in
}

// maxFile bounds a command's file in bytes: it becomes part of every request.
const maxFile = 256 << 10

// Set is the commands of one workspace. The zero value has only the built-in ones.
type Set struct {
	Workspace *workspace.Workspace
	Home      string // folder of the global .roo folder; "" for none
}

// Valid reports whether a text can be the name of a command: letters, digits and "_", "." and "-".
func Valid(name string) bool { return len(name) <= 200 && validName().MatchString(name) }

var validName = lazyregexp.New(`^[A-Za-z0-9_.-]+$`)

// Find returns a command. ErrNone means that there is no such command; any other error means that its file cannot be
// used.
func (s Set) Find(ctx context.Context, name string) (Command, error) {
	if !Valid(name) {
		return Command{}, ErrNone
	}
	for _, place := range []struct {
		source string
		read   func(context.Context, string) ([]byte, error)
	}{{"project", s.project}, {"global", s.global}} {
		text, err := place.read(ctx, name+".md")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Command{}, fmt.Errorf("read the command /%s: %w", name, err)
		}
		if len(text) > 0 {
			c := Parse(string(text))
			c.Name, c.Source = name, place.source
			return c, nil
		}
	}
	if c, ok := builtIn[name]; ok {
		return c, nil
	}
	return Command{}, ErrNone
}

// ErrNone: there is no such command.
var ErrNone = errors.New("there is no such command")

const folder = ".roo/commands"

func (s Set) project(ctx context.Context, file string) ([]byte, error) {
	if s.Workspace == nil {
		return nil, fs.ErrNotExist
	}
	p, err := s.Workspace.Resolve(path.Join(folder, file))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.Real); err != nil {
		return nil, fs.ErrNotExist
	}
	if p.Outside {
		return nil, fmt.Errorf("%s leads out of the workspace", p.Readable)
	}
	text, _, err := s.Workspace.Read(ctx, p, maxFile)
	return text, err
}

func (s Set) global(_ context.Context, file string) ([]byte, error) {
	if s.Home == "" {
		return nil, fs.ErrNotExist
	}
	name := filepath.Join(s.Home, filepath.FromSlash(folder), file)
	text, err := inputfile.ReadFS(os.DirFS(s.Home), path.Join(folder, file), maxFile+1)
	switch {
	case err == nil && len(text) > maxFile, errors.Is(err, inputfile.ErrIrregular):
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, maxFile)
	case err != nil:
		return nil, fs.ErrNotExist
	}
	return text, nil
}

// Names lists the existing commands, in byte order. For a folder that cannot be read it lists none.
func (s Set) Names() []string {
	names := slices.Collect(maps.Keys(builtIn))
	if s.Workspace != nil {
		if p, err := s.Workspace.Resolve(folder); err == nil && !p.Outside {
			names = append(names, namesIn(p.Real)...)
		}
	}
	if s.Home != "" {
		names = append(names, namesIn(filepath.Join(s.Home, filepath.FromSlash(folder)))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return api.Some(entries, func(e os.DirEntry) (string, bool) {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		return name, ok && Valid(name) && !e.IsDir()
	})
}

// builtIn are the commands that exist without a file.
var builtIn = map[string]Command{
	"init": {
		Name: "init", Source: "built-in",
		Description: "Look through the workspace and write AGENTS.md for the agents that come after",
		Content: "Write or improve the file AGENTS.md in the root of the workspace. It is for an agent that has never seen " +
			"this project: what it must know to work in it.\n\n" +
			"1. Read what is there: AGENTS.md and other rule files, README, the build and test settings, and enough of the " +
			"code to know its parts.\n" +
			"2. Keep what is right in an AGENTS.md that exists. Take out what is wrong or what anybody would guess.\n" +
			"3. Write down, short and checked against the code: how to build, how to run all tests and how to run one, how " +
			"to check style; " +
			"the parts of the project and which may use which; conventions that differ from what is usual; traps that cost time.\n" +
			"4. Invent nothing. A command that you have not seen in the project does not belong there.",
	},
}
