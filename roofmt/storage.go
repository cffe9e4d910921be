package roofmt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Shape classifies a directory.
type Shape uint8

// The shapes of a directory. The zero value: it holds no task.
const (
	NoTasks     Shape = iota // can be read, but holds no task folder
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
	ID  string // directory name; for a subagent's transcript, Cline's name of its session
	Dir string // the directory; for a subagent, the file
}

// Listing is the result of Find.
type Listing struct {
	Shape    Shape
	TasksDir string // the folder that holds the task folders; "" for a single folder
	Tool     Tool   // read from the path; "" when the path does not show it
	Tasks    []Found
}

// unborn matches the folders in which Roost builds tasks before it gives them their names.
var unborn = lazyregexp.New(`^\.(import|fork-[A-Za-z0-9][A-Za-z0-9._-]{0,127}-[0-9]+)$`)

// Find determines what dir is and lists its task folders by name. A folder in a tasks directory counts even when it
// is empty, except for names that begin with "_" or ".": Roo does not count those, so they count only when they hold
// a file of a task. Find reads only names, no messages. Every read error wraps ErrUnreachable.
func Find(ctx context.Context, dir string) (Listing, error) {
	var l Listing
	abs, err := filepath.Abs(dir)
	if err != nil {
		return l, fmt.Errorf("looking for tasks in %s: %w: %w", dir, ErrUnreachable, err)
	}
	l.Tool = toolOfPath(abs)
	entries, err := readDir(ctx, abs)
	if err != nil {
		return l, err
	}
	if hasTaskFile(entries) || isSession(abs, entries) {
		l.Shape = TaskFolder
		id := filepath.Base(abs)
		l.Tasks = []Found{{id, abs}}
		if isSession(abs, entries) {
			l.Tool = cmp.Or(l.Tool, Cline)
			l.Tasks = append(l.Tasks, subagentsOf(abs, entries)...)
		}
		return l, nil
	}
	if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "tasks" }); i >= 0 && isDir(abs, entries[i], true) {
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

// holdsTaskFolders reports whether the entries of a directory include task folders.
func holdsTaskFolders(dir string, entries []fs.DirEntry) bool {
	return slices.ContainsFunc(folders(dir, entries), func(f Found) bool { return f.ID != "tasks" && IsFolder(f.Dir) })
}

func readDir(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("looking for tasks in %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	return entries, api.Failed(err, "looking for tasks in %s: %w", dir, ErrUnreachable)
}

// isDir reports whether an entry is a folder, or a link to one. For a link that cannot be followed it returns
// unknown: the target may still exist.
func isDir(parent string, e fs.DirEntry, unknown bool) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(parent, e.Name()))
	return err != nil && unknown || err == nil && info.IsDir()
}

// folders returns the task folders among the entries of a directory. A dead or circular link counts as one: reading
// it then gives the reason why it cannot be read.
func folders(dir string, entries []fs.DirEntry) []Found {
	const sep = string(filepath.Separator)
	prefix := strings.TrimSuffix(dir, sep) + sep
	list := make([]Found, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if isLock(name) || !isDir(dir, e, true) || (name[0] == '_' || name[0] == '.') && (unborn().MatchString(name) || !IsFolder(prefix+name)) {
			continue
		}
		list = append(list, Found{name, prefix + name})
	}
	return list
}

// transcriptEnd ends the name of a transcript. The rest is the id of its session.
const transcriptEnd = ".messages.json"

// TranscriptName returns the name of the transcript in a session's folder.
func TranscriptName(id string) string { return id + transcriptEnd }

// IsTranscript reports whether a file of this name is one of Cline's transcripts.
func IsTranscript(name string) bool { return strings.HasSuffix(name, transcriptEnd) }

// PlaceOf splits a path that Read accepts into the folder that holds the tasks, and the task's id there. Transcripts
// of subagents lie in the folder of the session that started them; they are tasks of their own all the same.
func PlaceOf(dir string) (tasksDir, id string) {
	tasksDir, id = filepath.Split(filepath.Clean(dir))
	tasksDir = filepath.Clean(tasksDir)
	if stem, ok := strings.CutSuffix(id, transcriptEnd); ok {
		root := filepath.Base(tasksDir)
		return filepath.Dir(tasksDir), root + subagentMark + stem
	}
	return tasksDir, id
}

// FolderOf returns the folder of a path that Read accepts: the path itself, except for the transcript of a subagent.
func FolderOf(dir string) string {
	if strings.HasSuffix(dir, transcriptEnd) {
		return filepath.Dir(dir)
	}
	return dir
}

// IsFolder reports whether dir holds a file of a task. Errors count as false.
func IsFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && (hasTaskFile(entries) || isSession(dir, entries))
}

func hasTaskFile(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && isTaskFile(e.Name()) })
}

// isSession reports whether the folder of this name holds a session.
func isSession(dir string, entries []fs.DirEntry) bool {
	want := TranscriptName(filepath.Base(dir))
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == want && !e.IsDir() })
}

// subagentsOf returns the transcripts in a session's folder other than its own.
func subagentsOf(dir string, entries []fs.DirEntry) []Found {
	var list []Found
	own := filepath.Base(dir)
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), transcriptEnd)
		if !ok || stem == "" || stem == own || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		_, id := PlaceOf(path)
		list = append(list, Found{id, path})
	}
	return list
}

// subagentMark separates, in a subagent's id, the id of the first session from its own.
const subagentMark = "__"

// Names of the files in a task folder, and of the index beside the folders.
const (
	UIName       = "ui_messages.json"
	APIName      = "api_conversation_history.json"
	MetadataName = "task_metadata.json"
	ItemName     = "history_item.json"
	LegacyName   = "claude_messages.json" // 2024: UI list or API list; its shape decides
	ContextName  = "context_history.json" // classic Cline: edits of the context
	IndexName    = "_index.json"
)

// ourPrefix begins every name that Roost uses in a task folder. Roo opens files by exact name and skips names with a
// dot in its listing, so it never sees them.
const ourPrefix = ".roost-"

// leftover is a temporary file of an interrupted write by Roo or classic Cline.
type leftover struct {
	Name   string
	Target string // the file that it was to become, or had been
	Backup bool
	MS     int64 // the time in its name
}

var (
	rooTemp   = lazyregexp.New(`^\.([A-Za-z_]+\.json)\.(bak|new)_(\d+)_[A-Za-z0-9]+\.tmp$`)
	clineTemp = lazyregexp.New(`^([A-Za-z_]+\.json)\.tmp\.(\d+)\.[A-Za-z0-9]+\.json$`)
)

func parseLeftover(name string) (leftover, bool) {
	if m := rooTemp().FindStringSubmatch(name); m != nil {
		ms, _ := strconv.ParseInt(m[3], 10, 64)
		return leftover{name, m[1], m[2] == "bak", ms}, true
	}
	if m := clineTemp().FindStringSubmatch(name); m != nil {
		ms, _ := strconv.ParseInt(m[2], 10, 64)
		return leftover{name, m[1], false, ms}, true
	}
	return leftover{}, false
}

// isTaskFile reports whether a file of this name makes the folder that holds it a task folder.
func isTaskFile(name string) bool {
	switch name {
	case UIName, APIName, MetadataName, ItemName, LegacyName, ContextName:
		return true
	}
	l, ok := parseLeftover(name)
	return ok && l.Target != IndexName && isTaskFile(l.Target)
}

// isLock reports whether a directory of this name is a lock of Roo's.
func isLock(name string) bool { return strings.HasSuffix(name, ".json.lock") }

var ourTemp = lazyregexp.New(`^\.roost-tmp_([0-9a-f]+)_(\d+)_(\d+)_[0-9a-f]+_`)

// Reach states whether a storage can be read.
type Reach uint8

// Absent: there is no such directory. Unreachable: it may exist, but cannot be read now (rights, a dead mount); its
// content is unknown, not gone.
const (
	Absent Reach = iota
	Reachable
	Unreachable
)

// ErrUnreachable is wrapped by errors about a place that cannot be read. Such a place is never "empty": a disk that
// is not mounted must not look like deleted tasks.
var ErrUnreachable = errors.New("cannot be reached")

// probe checks whether a directory can be listed.
func probe(dir string) Reach {
	d, err := os.Open(dir)
	if err == nil {
		_, err = d.Readdirnames(1)
		_ = d.Close()
		if err == nil || errors.Is(err, io.EOF) {
			return Reachable
		}
	}
	// A link whose target is not there now is a disk that is not mounted, and not an absent place.
	if _, there := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && there != nil {
		return Absent
	}
	return Unreachable
}
