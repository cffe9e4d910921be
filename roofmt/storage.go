package roofmt

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
)

// Shape is what a directory is.
type Shape uint8

// The shapes of a directory. The zero value: nothing of ours in it.
const (
	NoTasks     Shape = iota // reachable, but no task folder where one would be
	StorageRoot              // holds tasks/<id>
	TasksDir                 // is itself the directory of task folders
	TaskFolder               // is one task folder
)

// String describes the shape.
func (s Shape) String() string {
	return [...]string{"no tasks", "storage root", "tasks directory", "task folder"}[s]
}

// Found is a task folder found in a storage.
type Found struct {
	ID   string // directory name; of a subagent's transcript what Cline calls its session
	Dir  string // the directory; of a subagent the file
	Safe bool   // ValidID(ID): it can be opened by id; others are only listed and imported
}

// Listing is what a directory holds.
type Listing struct {
	Dir      string // as asked for
	Shape    Shape
	TasksDir string // where the folders lie; "" for a single folder
	Tool     Tool   // read from the path; "" when the path does not show it
	Tasks    []Found
}

// unborn are the folders in which Roost makes tasks before it gives them their names.
var unborn = regexp.MustCompile(`^\.(import|fork-[A-Za-z0-9][A-Za-z0-9._-]{0,127}-[0-9]+)$`)

// Find determines what dir is and lists its task folders by name. A folder in a tasks directory counts even when it
// is empty, except for names that begin with "_" or ".": Roo does not count those, so they count only when they hold
// a file of a task. Find reads names only, no message. Every failure to read wraps ErrUnreachable.
func Find(ctx context.Context, dir string) (Listing, error) {
	l := Listing{Dir: dir}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return l, fmt.Errorf("looking for tasks in %s: %w: %w", dir, ErrUnreachable, err)
	}
	l.Tool, _ = toolOfPath(abs)
	entries, err := readDir(ctx, abs)
	if err != nil {
		return l, err
	}
	if hasTaskFile(entries) || isSession(abs, entries) {
		l.Shape = TaskFolder
		id := filepath.Base(abs)
		l.Tasks = []Found{{id, abs, api.ValidTaskID(id)}}
		if isSession(abs, entries) {
			l.Tool = cmp.Or(l.Tool, Cline)
			l.Tasks = append(l.Tasks, subagentsOf(abs, entries)...)
		}
		return l, nil
	}
	if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "tasks" }); i >= 0 && mayBeDir(abs, entries[i]) {
		tasks := filepath.Join(abs, "tasks")
		l.TasksDir = tasks
		siblings := entries
		if entries, err = readDir(ctx, tasks); err != nil {
			return l, err
		}
		l.Shape, l.Tasks = StorageRoot, folders(tasks, entries)
		if info, err := os.Stat(filepath.Join(abs, filepath.FromSlash(ClineHistory))); l.Tool == UnknownTool &&
			err == nil && info.Mode().IsRegular() {
			l.Tool = Cline // a copy under another name; no other tool keeps such a list
		}
		if len(l.Tasks) > 0 || !holdsTaskFolders(abs, siblings) {
			return l, nil
		}
		entries = slices.DeleteFunc(siblings, func(e fs.DirEntry) bool { return e.Name() == "tasks" }) // an empty one among task folders
	}
	named := filepath.Base(abs) == "tasks" || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == IndexName })
	found := folders(abs, entries)
	for i := 0; !named && i < len(found); i++ {
		if ctx.Err() != nil {
			return l, fmt.Errorf("looking for tasks in %s: %w", dir, ctx.Err())
		}
		named = IsFolder(found[i].Dir)
	}
	if named {
		l.Shape, l.TasksDir, l.Tasks = TasksDir, abs, found
	}
	if named && filepath.Base(abs) == sessionsName {
		for _, f := range found {
			entries, err := os.ReadDir(f.Dir)
			if err != nil || !isSession(f.Dir, entries) {
				continue
			}
			l.Tool = cmp.Or(l.Tool, Cline)
			l.Tasks = append(l.Tasks, subagentsOf(f.Dir, entries)...)
		}
	}
	return l, nil
}

// holdsTaskFolders reports whether task folders are among the entries of a directory themselves.
func holdsTaskFolders(dir string, entries []fs.DirEntry) bool {
	return slices.ContainsFunc(folders(dir, entries), func(f Found) bool { return f.ID != "tasks" && IsFolder(f.Dir) })
}

func readDir(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("looking for tasks in %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for tasks in %s: %w: %w", dir, ErrUnreachable, err)
	}
	return entries, nil
}

func isDir(parent string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(parent, e.Name()))
	return err == nil && info.IsDir()
}

// mayBeDir is isDir, but a link that can not be followed counts, too: what it leads to is unknown, not gone.
func mayBeDir(parent string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(parent, e.Name()))
	return err != nil || info.IsDir()
}

// folders are the task folders among the entries of a directory. A link that leads nowhere, or round in a circle, is
// one: reading it gives the reason why it cannot be read.
func folders(dir string, entries []fs.DirEntry) []Found {
	const sep = string(filepath.Separator)
	prefix := strings.TrimSuffix(dir, sep) + sep
	list := make([]Found, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if isLock(name) || !mayBeDir(dir, e) || (name[0] == '_' || name[0] == '.') && (unborn.MatchString(name) || !IsFolder(prefix+name)) {
			continue
		}
		list = append(list, Found{name, prefix + name, api.ValidTaskID(name)})
	}
	return list
}
