package mcp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// workspaceFile is where a workspace keeps its servers.
const workspaceFile = ".roo/mcp.json"

// Files are the files that define servers. The workspace's own comes first and is not
// listed here. None of them need exist.
type Files struct {
	Own     string   // the user's; its servers need no agreement. "" = none
	Editors []string // Roo's mcp_settings.json, the first one first
	Choices Choices  // the user's decisions about the others
}

// Load returns the servers that a task in a workspace has, by name, with their states,
// and a description of each file that could not be read.
func (p Files) Load(workspace string) (servers []Server, problems []string) {
	taken := map[string]bool{}
	add := func(path string, list []Server, err error) {
		if err != nil {
			problems = append(problems, path+": "+err.Error())
		}
		for _, s := range list {
			if !taken[s.Name] {
				taken[s.Name] = true
				s.State = p.Choices.state(s)
				servers = append(servers, s)
			}
		}
	}
	path := filepath.Join(workspace, filepath.FromSlash(workspaceFile))
	list, err := readWorkspace(workspace, path)
	add(path, list, err)
	for i, path := range append([]string{p.Own}, p.Editors...) {
		if path == "" {
			continue
		}
		scope := Own
		if i > 0 {
			scope = Editor
		}
		list, err := readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), scope, path)
		add(path, list, err)
	}
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return servers, problems
}

// readWorkspace reads the workspace's file and follows no link that leads out of it.
func readWorkspace(workspace, path string) ([]Server, error) {
	root, err := os.OpenRoot(workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return readFile(root.FS(), workspaceFile, Workspace, path)
}
