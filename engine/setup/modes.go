package setup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/workspace/skill"
)

// modesFile holds a workspace's own modes.
const modesFile = ".roomodes"

// Modes are the modes that a task in a workspace may be in, and what could not be read of them, in words. Where several
// of the user's own files define a mode, the first one counts.
func (c Config) Modes(workspace string) (mode.Set, []string) {
	var notes []string
	collect := func(f mode.File, path string) []mode.Mode {
		for _, p := range f.Problems {
			notes = append(notes, path+": "+p)
		}
		return f.Modes
	}
	var project, global []mode.Mode
	path := filepath.Join(workspace, modesFile)
	if err := inWorkspace(workspace, func(fsys fs.FS) {
		project = collect(mode.ReadFile(fsys, modesFile, mode.Project, path), path)
	}); err != nil {
		notes = append(notes, fmt.Sprintf("%s: it cannot be read: %v", path, err))
	}
	for _, path := range c.ModeFiles {
		global = append(global, collect(mode.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), mode.Global, path), path)...)
	}
	return mode.Merge(project, global), notes
}

// Skills are the skills of a workspace and of the user's own.
func (c Config) Skills(root string) skill.Set { return skill.Set{Workspace: root, Home: c.Home} }

// inWorkspace lets f read a workspace's files and follow no link out of it: what a repository contains is sent to a
// provider without a question.
func inWorkspace(workspace string, f func(fs.FS)) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	f(root.FS())
	return nil
}

// rules loads the user's rules for a mode: those of the workspace and those below the home folder.
func (c Config) rules(workspace, slug string) (rules mode.Rules) {
	var p mode.Places
	if c.Home != "" {
		p.Home = os.DirFS(c.Home)
	}
	if c.Settings != "" {
		p.Settings = os.DirFS(c.Settings)
	}
	if err := inWorkspace(workspace, func(fsys fs.FS) { p.Project = fsys; rules = mode.LoadRules(p, slug) }); err != nil {
		p.Project = nil
		rules = mode.LoadRules(p, slug)
		rules.Notes = append(rules.Notes, fmt.Sprintf("the workspace's rules cannot be read: %v", err))
	}
	return rules
}
