package roofmt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Env is what DefaultStorages needs to know of the machine. Nothing else of it is looked up.
type Env struct {
	GOOS   string // linux, darwin, windows; others are treated like linux
	Home   string
	Config string // $XDG_CONFIG_HOME, ~/Library/Application Support, %APPDATA%; "" = the usual place below Home
	Getenv func(string) string

	// WindowsHomes is the folder with the homes of the Windows that this Linux runs in (WSL), such as /mnt/c/Users; "" when it
	// runs in none. An editor window on that side keeps its tasks there.
	WindowsHomes string
}

// SystemEnv describes this machine and user.
func SystemEnv() (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, fmt.Errorf("looking for editor storages: %w", err)
	}
	config, err := os.UserConfigDir()
	if err != nil {
		config = ""
	}
	env := Env{GOOS: runtime.GOOS, Home: home, Config: config, Getenv: os.Getenv}
	if env.GOOS == "linux" && os.Getenv("WSL_DISTRO_NAME") != "" {
		env.WindowsHomes = "/mnt/c/Users"
	}
	return env, nil
}

// Reach tells whether a storage can be looked into.
type Reach uint8

// Absent: there is no such directory. Unreachable: it may be there, but it can not be read now (rights, a dead mount);
// what is in it is unknown, not gone.
const (
	Absent Reach = iota
	Reachable
	Unreachable
)

// String names the state.
func (r Reach) String() string { return [...]string{"absent", "reachable", "unreachable"}[r] }

// Storage is a place where an editor or program keeps tasks (below tasks/).
type Storage struct {
	Dir     string
	Tool    Tool
	Product string // the editor: Code, Cursor, ...; or the program
	Reach   Reach
	Err     error // why it is unreachable; wraps ErrUnreachable
}

// extensions are the folder names below globalStorage.
var extensions = [...]struct {
	folder string
	tool   Tool
}{
	{"rooveterinaryinc.roo-cline", Roo},
	{"rooveterinaryinc.roo-code-nightly", Roo},
	{"saoudrizwan.claude-dev", Cline},
	{"kilocode.kilo-code", Kilo},
	{"wecode-ai.zoo-code", Zoo},
}

var products = [...]string{"Code", "Code - Insiders", "Code - OSS", "VSCodium", "Cursor", "Windsurf", "Antigravity"}

// DefaultStorages lists where the editors and command line tools of this machine keep tasks, the standard places first, then
// forks found beside them. Absent places are left out; places that can not be read are kept, with Reach and Err saying so.
func DefaultStorages(env Env) []Storage {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	config := env.Config
	if config == "" {
		switch env.GOOS {
		case "darwin":
			config = filepath.Join(env.Home, "Library", "Application Support")
		case "windows":
			config = filepath.Join(env.Home, "AppData", "Roaming")
		default:
			config = filepath.Join(env.Home, ".config")
		}
	}
	var list []Storage
	add := func(dir string, tool Tool, product string) {
		if dir == "" || slices.ContainsFunc(list, func(s Storage) bool { return s.Dir == dir }) {
			return
		}
		s := Storage{Dir: dir, Tool: tool, Product: product}
		if s.Reach, s.Err = probe(dir); s.Reach != Absent {
			list = append(list, s)
		}
	}
	addEditor := func(userData, product string) {
		for _, e := range extensions {
			add(filepath.Join(userData, "User", "globalStorage", e.folder), e.tool, product)
		}
		customPaths(userData, func(dir string, tool Tool) { add(dir, tool, product) })
	}
	addEditors := func(config string) {
		for _, p := range products {
			addEditor(filepath.Join(config, p), p)
		}
		// Forks of VS Code have the same layout under a name of their own.
		if entries, err := os.ReadDir(config); err == nil {
			for _, e := range entries {
				if isDir(config, e) && !slices.Contains(products[:], e.Name()) {
					addEditor(filepath.Join(config, e.Name()), e.Name())
				}
			}
		}
	}
	addEditors(config)
	if env.WindowsHomes != "" {
		if homes, err := os.ReadDir(env.WindowsHomes); err == nil {
			for _, e := range homes {
				roaming := filepath.Join(env.WindowsHomes, e.Name(), "AppData", "Roaming")
				if reach, _ := probe(roaming); reach == Reachable { // the homes of other people are none of ours
					addEditors(roaming)
				}
			}
		}
	}
	for _, s := range [...]string{".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"} {
		addEditor(filepath.Join(env.Home, s, "data"), s[1:])
	}
	addEditor(filepath.Join(env.Home, ".local", "share", "code-server"), "code-server")
	add(filepath.Join(env.Home, ".zoo-code", "globalStorage", "wecode-ai.zoo-code"), Zoo, "Zoo Code")
	add(filepath.Join(env.Home, ".vscode-mock", "global-storage"), Roo, "Roo CLI")
	for _, v := range [...]string{"ROO_GLOBAL_STORAGE_PATH", "API_STORAGE_ROOT"} {
		add(env.Getenv(v), Roo, "code-agent")
	}
	add(filepath.Join(env.Home, ".agentz"), Roo, "code-agent")
	cline := env.Getenv("CLINE_DATA_DIR")
	if cline == "" {
		if base := env.Getenv("CLINE_DIR"); base != "" {
			cline = filepath.Join(base, "data")
		} else {
			cline = filepath.Join(env.Home, ".cline", "data")
		}
	}
	add(cline, Cline, "Cline")
	return list
}

// probe tells whether a directory can be listed.
func probe(dir string) (Reach, error) {
	d, err := os.Open(dir)
	if err == nil {
		_, err = d.Readdirnames(1)
		_ = d.Close()
		if err == nil || errors.Is(err, io.EOF) {
			return Reachable, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	}
	return Unreachable, fmt.Errorf("looking into %s: %w: %w", dir, ErrUnreachable, err)
}
