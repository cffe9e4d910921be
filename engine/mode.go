package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
)

// modesFile is where a workspace keeps its own modes.
const modesFile = ".roomodes"

// Modes are the modes that a task in a workspace may be in, and what could not be
// read of them, in words. Of the user's own files the first one that defines a mode
// counts.
func Modes(workspace string, c Config) (mode.Set, []string) {
	var notes []string
	tell := func(f mode.File, path string) []mode.Mode {
		for _, p := range f.Problems {
			notes = append(notes, path+": "+p)
		}
		return f.Modes
	}
	var project, global []mode.Mode
	path := filepath.Join(workspace, modesFile)
	if err := inWorkspace(workspace, func(fsys fs.FS) {
		project = tell(mode.ReadFile(fsys, modesFile, mode.Project, path), path)
	}); err != nil {
		notes = append(notes, fmt.Sprintf("%s: it cannot be read: %v", path, err))
	}
	for _, path := range c.ModeFiles {
		global = append(global, tell(mode.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), mode.Global, path), path)...)
	}
	return mode.Merge(project, global), notes
}

// inWorkspace lets f read a workspace's files, and no link lead out of it: what a
// repository brings along is sent to a provider without being asked for.
func inWorkspace(workspace string, f func(fs.FS)) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	f(root.FS())
	return nil
}

// userRules loads the user's rules for a mode: those of the workspace and those below
// the home folder.
func (e *Engine) userRules(workspace, slug string) (rules mode.Rules) {
	var p mode.Places
	if dir := e.opt.Config.Home; dir != "" {
		p.Home = os.DirFS(dir)
	}
	if dir := e.opt.Config.Settings; dir != "" {
		p.Settings = os.DirFS(dir)
	}
	if err := inWorkspace(workspace, func(fsys fs.FS) { p.Project = fsys; rules = mode.LoadRules(p, slug) }); err != nil {
		p.Project = nil
		rules = mode.LoadRules(p, slug)
		rules.Notes = append(rules.Notes, fmt.Sprintf("the workspace's rules cannot be read: %v", err))
	}
	return rules
}

// enter checks the task's mode. One that was named now must exist. One that the task
// has kept may have gone with its file; then the task goes on as Roo's would, and the
// person is told. The error is a *mode.UnknownError.
func (p *parts) enter(s *task.Settings, r Request) error {
	m, err := p.modes.Lookup(s.Mode)
	switch {
	case err != nil && r.Mode != "":
		return err
	case err != nil:
		p.notes = append(p.notes, fmt.Sprintf("the task's mode %s does not exist any more: it goes on in mode %s; --mode names another one", s.Mode, mode.Fallback))
		s.Mode = mode.Fallback
	case m.Source == mode.Project:
		for _, slug := range p.modes.Redefined() {
			if slug == s.Mode {
				p.notes = append(p.notes, fmt.Sprintf("the mode %s is not the built-in one: %s of this workspace redefines it", slug, modesFile))
			}
		}
	}
	return nil
}

// mode is the mode that the run's task is in at the moment. Only the agent may ask: the
// mode is its to change.
func (r *Run) mode() string { return r.agent.Task.Settings.Mode }
