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

// Places are the files that name servers beside the workspace's own. They need not
// exist.
type Places struct {
	Own     string   // the user's; what stands there is agreed to. "" = none
	Editors []string // Roo's mcp_settings.json, the first one first
	Choices Choices  // what a person has said to the others
}

// Load gives the servers that a task in a workspace has, by name, with their states,
// and what could not be read, in words.
func (p Places) Load(workspace string) (servers []Server, problems []string) {
	taken := map[string]bool{}
	add := func(path string, list []Server, err error) {
		if err != nil {
			problems = append(problems, path+": "+err.Error())
		}
		for _, s := range list {
			if !taken[s.Name] {
				taken[s.Name] = true
				s.State = p.Choices.judge(s)
				servers = append(servers, s)
			}
		}
	}
	path := filepath.Join(workspace, filepath.FromSlash(workspaceFile))
	list, err := inWorkspace(workspace, path)
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

// inWorkspace reads the workspace's file and lets no link lead out of it.
func inWorkspace(workspace, path string) ([]Server, error) {
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
