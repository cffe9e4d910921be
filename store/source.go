package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// OwnSource is the name of Roost's own root among the sources.
const OwnSource = "roost"

// Source is one storage with task folders.
type Source struct {
	Name  string
	Tool  string // what its name and place say; "" = judged by each task
	Path  string // as it was named
	Tasks string // the folder that holds the task folders
	One   bool   // Path is a single task folder
	Own   bool
}

// sources lists Roost's own root, the named storages and those found on this
// machine, each once.
func (s *Store) sources() []Source {
	list := []Source{{Name: OwnSource, Tool: "roost", Path: s.opt.Root, Tasks: s.tasksDir(), Own: true}}
	seen := map[string]bool{clean(s.tasksDir()): true}
	add := func(src Source) {
		if key := clean(src.Tasks); !seen[key] {
			seen[key] = true
			src.Name = sourceName(src.Path)
			list = append(list, src)
		}
	}
	for _, path := range s.opt.Sources {
		add(shape(path))
	}
	if s.opt.AutoSources {
		for _, path := range editorStorages() {
			if info, err := os.Stat(filepath.Join(path, "tasks")); err == nil && info.IsDir() {
				add(shape(path))
			}
		}
	}
	return list
}

func clean(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// shape tells whether a path is a storage root, its tasks folder, or one task.
func shape(path string) Source {
	src := Source{Path: path, Tool: toolOf(path)}
	if info, err := os.Stat(filepath.Join(path, "tasks")); err == nil && info.IsDir() {
		src.Tasks = filepath.Join(path, "tasks")
		return src
	}
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			src.Tasks, src.One = filepath.Dir(path), true
			return src
		}
	}
	src.Tasks = path
	return src
}

// toolOf reads the tool off a storage's path.
func toolOf(path string) string {
	p := strings.ToLower(path)
	switch {
	case strings.Contains(p, "roo-cline"), strings.Contains(p, "roo-code-nightly"), strings.Contains(p, ".vscode-mock"):
		return "roo"
	case strings.Contains(p, "claude-dev"), strings.Contains(p, ".cline"):
		return "cline"
	case strings.Contains(p, "kilo"):
		return "kilo"
	case strings.Contains(p, "zoo"):
		return "zoo"
	}
	return ""
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// sourceName is readable, stable, and tells storages of equal names apart.
func sourceName(path string) string {
	sum := sha256.Sum256([]byte(clean(path)))
	base := strings.Trim(unsafeName.ReplaceAllString(filepath.Base(path), "-"), ".-_")
	if base == "" {
		base = "source"
	}
	return base + "-" + hex.EncodeToString(sum[:3])
}

// extensions are the storage folders of the extensions we know.
var extensions = []string{
	"rooveterinaryinc.roo-cline", "rooveterinaryinc.roo-code-nightly", "roo-code.roo-cline",
	"saoudrizwan.claude-dev", "kilocode.kilo-code", "wecode-ai.zoo-code",
}

// editorStorages are the places where editors of this machine keep the storage
// of those extensions: every child of the configuration root that has a
// globalStorage, and the remote servers in the home folder.
func editorStorages() []string {
	var bases []string
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	if config, err := os.UserConfigDir(); err == nil {
		children, err := names(config)
		if err == nil {
			for _, name := range children {
				bases = append(bases, filepath.Join(config, name, "User", "globalStorage"))
			}
		}
	}
	for _, server := range []string{".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"} {
		bases = append(bases, filepath.Join(home, server, "data", "User", "globalStorage"))
	}
	bases = append(bases, filepath.Join(home, ".local", "share", "code-server", "User", "globalStorage"))
	var out []string
	for _, base := range bases {
		for _, ext := range extensions {
			out = append(out, filepath.Join(base, ext))
		}
	}
	out = append(out, filepath.Join(home, ".vscode-mock", "global-storage"), filepath.Join(home, ".agentz"))
	return append(out, filepath.Join(home, ".zoo-code", "globalStorage", "wecode-ai.zoo-code"))
}
