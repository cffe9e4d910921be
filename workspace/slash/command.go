// Package slash knows the slash commands: prompts that a person has written down
// under a name, in .roo/commands/NAME.md of the workspace or of the home folder, or
// that are built in. The workspace's come before the home folder's, and both before
// what is built in.
//
// A file may begin with front matter (YAML between lines of "---"): description,
// argument-hint and mode are read, the rest is passed over. Front matter that is no
// YAML is taken for content.
//
// A file of the workspace that is a link out of it is refused: a name that a model
// may give must not lead to what it may not read. Files are read when they are asked
// for, so that an edit counts at once.
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
	"strings"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/workspace"
)

// Command is one slash command.
type Command struct {
	Name        string
	Content     string
	Description string
	Hint        string // what its arguments are
	Mode        string // that it is for; "" for any
	Source      string // project, global or built-in
	Path        string // of its file; "" when it is built in
}

// maxFile bounds a command's file in bytes: it becomes part of every request.
const maxFile = 256 << 10

// Set is the commands of one workspace. The zero value has the built-in ones only.
type Set struct {
	Workspace *workspace.Workspace
	Home      string // folder of the global .roo folder; "" for none
}

// Valid reports whether something can be the name of a command: letters, digits
// and "_", "." and "-".
func Valid(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && len(name) <= 200
}

// Find gives a command. An error means that there is a file for it that cannot be
// used; ErrNone that there is none.
func (s Set) Find(ctx context.Context, name string) (Command, error) {
	if !Valid(name) {
		return Command{}, ErrNone
	}
	for _, place := range []struct {
		source string
		read   func(context.Context, string) ([]byte, string, error)
	}{{"project", s.project}, {"global", s.global}} {
		text, file, err := place.read(ctx, name+".md")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Command{}, fmt.Errorf("read the command /%s: %w", name, err)
		}
		if len(text) > 0 {
			c := Parse(string(text))
			c.Name, c.Source, c.Path = name, place.source, file
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

func (s Set) project(ctx context.Context, file string) ([]byte, string, error) {
	if s.Workspace == nil {
		return nil, "", fs.ErrNotExist
	}
	p, err := s.Workspace.Resolve(path.Join(folder, file))
	if err != nil {
		return nil, "", err
	}
	if _, err := os.Stat(p.Real); err != nil {
		return nil, "", fs.ErrNotExist
	}
	if p.Outside {
		return nil, "", fmt.Errorf("%s leads out of the workspace", p.Readable)
	}
	text, _, err := s.Workspace.Read(ctx, p, maxFile)
	return text, p.Real, err
}

func (s Set) global(_ context.Context, file string) ([]byte, string, error) {
	if s.Home == "" {
		return nil, "", fs.ErrNotExist
	}
	name := filepath.Join(s.Home, filepath.FromSlash(folder), file)
	text, err := inputfile.ReadFS(os.DirFS(s.Home), path.Join(folder, file), maxFile+1)
	switch {
	case err == nil && len(text) > maxFile, errors.Is(err, inputfile.ErrIrregular):
		return nil, "", fmt.Errorf("%s is no file of at most %d bytes", name, maxFile)
	case err != nil:
		return nil, "", fs.ErrNotExist
	}
	return text, name, nil
}

// Names lists the commands there are, in byte order. A folder that cannot be read
// has none.
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
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && Valid(name) && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

// builtIn are the commands that are there without a file.
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
