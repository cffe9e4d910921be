package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// heavy are folders that hold what tools made, not what people wrote.
var heavy = []string{".git", "node_modules", "__pycache__", ".venv", "venv", "target", "dist", "vendor"}

// Overview lists up to limit files and folders (folders end in "/"), those near
// the root first, each folder in byte order. What .rooignore hides and what tools
// made is left out. It reports whether there is more. A folder that cannot be
// read is listed and not entered.
func (w *Workspace) Overview(limit int) (listing string, more bool) {
	rules, err := w.Ignore()
	if err != nil {
		return "", false
	}
	var lines []string
	queue := []string{"."}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		entries, err := os.ReadDir(filepath.Join(w.root, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			rel := filepath.ToSlash(filepath.Join(dir, e.Name()))
			if slices.Contains(heavy, e.Name()) || rules.Hides(rel, e.IsDir()) {
				continue
			}
			if len(lines) == limit {
				return strings.Join(lines, "\n"), true
			}
			if !e.IsDir() {
				lines = append(lines, rel)
				continue
			}
			lines = append(lines, rel+"/")
			queue = append(queue, rel)
		}
	}
	return strings.Join(lines, "\n"), false
}
