package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/mcp"
)

// ImportedModes is the file of the modes that were imported. It is of ours alone: the
// user's own custom_modes.yaml is never written, and its modes count before these.
func ImportedModes(settings string) string {
	return filepath.Join(filepath.Dir(settings), "imported_modes.json")
}

// modeProfiles maps modes to the profiles that answer in them.
func modeProfiles(s *Settings) map[string]string {
	var out map[string]string
	for name, v := range s.Values {
		if slug, ok := strings.CutPrefix(name, config.ModeProfiles+"."); ok && v.Value.Text != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[slug] = v.Value.Text
		}
	}
	return out
}

// Files of MCP servers next to the settings: the user's own servers, and decisions about others.
const (
	serverFile   = "mcp.json"
	choiceFolder = "mcp_allowed"
)

// mcpPlaces are the files that name servers, and the folder with the user's decisions about them.
func (a *App) mcpPlaces(settings string) mcp.Files {
	dir := filepath.Dir(settings)
	return mcp.Files{
		Own: filepath.Join(dir, serverFile), Editors: a.editorFiles("mcp_settings.json", "cline_mcp_settings.json"),
		Choices: mcp.Choices{Dir: filepath.Join(dir, choiceFolder)},
	}
}

// editorFiles are the files of such names in the settings folders of the editors'
// storages that tasks are read from.
func (a *App) editorFiles(names ...string) (files []string) {
	sources, err := a.Global(a.Flags.Sources, "sources")
	if err != nil {
		return nil
	}
	add := func(dir string) {
		for _, name := range names {
			path := filepath.Join(dir, "settings", name)
			if _, err := os.Stat(path); err == nil && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
	}
	named := List(sources)
	for _, dir := range named {
		if dir != "auto" && dir != "none" {
			add(a.Abs(dir))
		}
	}
	if len(named) > 0 && !slices.Contains(named, "auto") {
		return files
	}
	for _, dir := range local.EditorFolders() {
		add(dir)
	}
	return files
}

// modeFiles are the files that may hold the user's own modes: one next to Roost's
// settings, and those of the editors' storages that tasks are read from.
func (a *App) modeFiles(settings string) []string {
	const name = "custom_modes.yaml"
	return append([]string{filepath.Join(filepath.Dir(settings), name), ImportedModes(settings)}, a.editorFiles(name)...)
}

// sourceProfiles is what was remembered for sources.
func sourceProfiles(s *Settings) map[string]string {
	var out map[string]string
	for name, v := range s.Values {
		if source, ok := strings.CutPrefix(name, config.SourceProfiles+"."); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[source] = v.Value.Text
		}
	}
	return out
}
