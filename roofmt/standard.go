package roofmt

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// Env holds what DefaultStorages needs to know of the machine. DefaultStorages reads no other environment.
type Env struct {
	GOOS   string // linux, darwin, windows; others are treated like linux
	Home   string
	Config string // $XDG_CONFIG_HOME, ~/Library/Application Support, %APPDATA%; "" = the usual place below Home
	Getenv func(string) string

	// WindowsHomes is the folder with the homes of the Windows that this Linux runs in (WSL), such as /mnt/c/Users;
	// "" when it runs in none. An editor window on the Windows side keeps its tasks there.
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

// configs returns the folders below which editors keep their data, by the rules of the system that env describes.
func (env Env) configs() []string {
	usual := filepath.Join(env.Home, ".config")
	switch env.GOOS {
	case "darwin":
		usual = filepath.Join(env.Home, "Library", "Application Support")
	case "windows":
		usual = filepath.Join(env.Home, "AppData", "Roaming")
	}
	if env.Config == "" || env.Config == usual {
		return []string{usual}
	}
	// The variable may be newer than the editor's data, or set for some programs only.
	return []string{env.Config, usual}
}

// Storage is a folder where an editor or program keeps tasks (below tasks/).
type Storage struct {
	Dir   string
	Tool  Tool
	Reach Reach
}

// products are the editors whose places are listed even when they cannot be read. Other editors are found beside
// them.
var products = [...]string{"Code", "Code - Insiders", "Code - OSS", "VSCodium", "Cursor", "Windsurf", "Antigravity"}

// DefaultStorages lists the places where editors and command line tools of this machine keep tasks, the standard
// places first, then forks found beside them. It leaves out absent places; unreadable ones are in the list, marked by
// Reach.
func DefaultStorages(env Env) []Storage { return find(env).list }

// Places lists the places that DefaultStorages checks, whether they exist or not.
func Places(env Env) []api.Place { return find(env).places }

func find(env Env) *finder {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	f := &finder{env: env}
	for _, config := range env.configs() {
		f.editors(config)
	}
	f.windows()
	f.hosts()
	f.programs()
	return f
}

// finder collects storages, each place once.
type finder struct {
	env    Env
	list   []Storage
	places []api.Place
}

// look checks and records a place.
func (f *finder) look(product string, dir ...string) {
	p := api.Place{Dir: filepath.Join(dir...), Product: product}
	if !slices.Contains(f.places, p) {
		f.places = append(f.places, p)
	}
}

func (f *finder) add(dir string, tool Tool, product string) {
	if dir == "" || slices.ContainsFunc(f.list, func(s Storage) bool { return s.Dir == dir }) {
		return
	}
	f.look(product, dir)
	if reach := probe(dir); reach != Absent {
		f.list = append(f.list, Storage{dir, tool, reach})
	}
}

// editors checks every folder below a folder of configurations: forks of VS Code have its layout under their own
// names.
func (f *finder) editors(config string) {
	for _, p := range products {
		f.editor(filepath.Join(config, p), p, true)
	}
	for _, e := range children(config) {
		if !slices.Contains(products[:], e) {
			f.editor(filepath.Join(config, e), e, false)
		}
	}
}

// editor examines the data folder of one editor. An unreadable place that is only guessed to be an editor's is not
// reported: most folders beside an editor's are no editors'.
func (f *finder) editor(userData, product string, known bool) {
	storage := filepath.Join(userData, "User", "globalStorage")
	reach := probe(storage)
	if known || reach == Reachable {
		f.look(product, storage)
	}
	switch {
	case reach == Reachable:
		entries, _ := os.ReadDir(storage) // the probe above reported a folder that cannot be listed
		for _, e := range entries {
			dir := filepath.Join(storage, e.Name())
			if tool := signInPath(e.Name()); tool != UnknownTool || holdsTasks(dir) {
				f.add(dir, tool, product)
			}
		}
	case reach == Unreachable && known:
		f.add(storage, UnknownTool, product) // once, and not for each extension that may be in it
	}
	customPaths(userData, func(dir string, tool Tool) { f.add(dir, tool, product) })
}

// windows checks the homes on the Windows side of WSL.
func (f *finder) windows() {
	if f.env.WindowsHomes == "" {
		return
	}
	for _, name := range children(f.env.WindowsHomes) {
		roaming := filepath.Join(f.env.WindowsHomes, name, "AppData", "Roaming")
		if probe(roaming) == Reachable { // the homes of other people are none of ours
			f.editors(roaming)
		}
	}
}

// hosts looks for editors that run here without being installed here: the far ends of remote windows, editors in a
// browser or in a sandbox, and portable ones.
func (f *finder) hosts() {
	home := f.env.Home
	f.look("editors' far ends", home, ".*-server", "data", "User", "globalStorage")
	f.look("Flatpak", home, ".var", "app", "*", "config", "*", "User", "globalStorage")
	f.look("Snap", home, "snap", "*", "current", ".config", "*", "User", "globalStorage")
	for _, name := range children(home) {
		// .vscode-server, .vscode-server-insiders, .cursor-server, .windsurf-server, .vscode-remote and what forks call theirs
		if strings.HasPrefix(name, ".") && (strings.Contains(name, "-server") || strings.HasSuffix(name, "-remote")) {
			f.editor(filepath.Join(home, name, "data"), name[1:], strings.HasSuffix(name, "-server"))
		}
	}
	data := []string{filepath.Join(home, ".local", "share")}
	if dir := f.env.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		data = append(data, dir)
	}
	for _, dir := range data {
		f.editor(filepath.Join(dir, "code-server"), "code-server", true)
	}
	for _, app := range children(filepath.Join(home, ".var", "app")) { // Flatpak
		f.editors(filepath.Join(home, ".var", "app", app, "config"))
	}
	for _, app := range children(filepath.Join(home, "snap")) {
		f.editors(filepath.Join(home, "snap", app, "current", ".config"))
	}
	if dir := f.env.Getenv("VSCODE_AGENT_FOLDER"); filepath.IsAbs(dir) { // where a host's owner put the far end
		f.editor(filepath.Join(dir, "data"), "remote", true)
	}
	if dir := f.env.Getenv("VSCODE_PORTABLE"); filepath.IsAbs(dir) {
		f.editor(filepath.Join(dir, "user-data"), "portable", true)
	}
}

// programs looks for tools that run without an editor.
func (f *finder) programs() {
	home := f.env.Home
	f.add(filepath.Join(home, ".zoo-code", "globalStorage", "wecode-ai.zoo-code"), Zoo, "Zoo Code")
	f.add(filepath.Join(home, ".vscode-mock", "global-storage"), Roo, "Roo CLI")
	for _, v := range [...]string{"ROO_GLOBAL_STORAGE_PATH", "API_STORAGE_ROOT"} {
		f.add(f.env.Getenv(v), Roo, "code-agent")
	}
	f.add(filepath.Join(home, ".agentz"), Roo, "code-agent")
	temp := "TMPDIR"
	if f.env.GOOS == "windows" {
		temp = "TEMP"
	}
	if dir := f.env.Getenv(temp); filepath.IsAbs(dir) {
		f.add(filepath.Join(dir, ".agentz"), Roo, "code-agent") // where it goes without a home
	}
	if roo := filepath.Join(home, ".roo"); holdsTasks(roo) { // it is rules, commands and settings otherwise
		f.add(roo, Roo, "Roo Code")
	}
	for _, dir := range [...]string{".roocode", ".roo/storage/RooStorage"} {
		f.add(filepath.Join(home, filepath.FromSlash(dir)), Roo, "Roo Code")
	}
	first := func(name, otherwise string) string { // Cline trims them
		if dir := strings.TrimSpace(f.env.Getenv(name)); dir != "" {
			return dir
		}
		return otherwise
	}
	cline := first("CLINE_DATA_DIR", filepath.Join(first("CLINE_DIR", filepath.Join(home, ".cline")), "data"))
	f.add(cline, Cline, "Cline")
	f.add(first("CLINE_SESSION_DATA_DIR", filepath.Join(cline, "sessions")), Cline, "Cline")
}

// holdsTasks reports whether an unknown extension, a fork of a known one under its own name, keeps tasks. It samples
// a few folders.
func holdsTasks(dir string) bool {
	return anyTask(filepath.Join(dir, "tasks"))
}

// anyTask reports whether one of the first subfolders is a task folder.
func anyTask(dir string) bool {
	names := children(dir)
	return slices.ContainsFunc(names[:min(len(names), looked)], func(name string) bool { return IsFolder(filepath.Join(dir, name)) })
}

// children returns the names of the subfolders, in order; none when the folder cannot be listed.
func children(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return api.Some(entries, func(e os.DirEntry) (string, bool) { return e.Name(), isDir(dir, e, false) })
}

// customStorage lists the settings that move an extension's tasks, all but checkpoints, to another folder. Their
// names begin with the extension's package name.
var customStorage = [...]struct {
	key  string
	tool Tool
}{
	{"roo-cline.customStoragePath", Roo},
	{"roo-code-nightly.customStoragePath", Roo},
	{"kilo-code.customStoragePath", Kilo},
	{"zoo-code.customStoragePath", Zoo},
}

// customPaths reads the folders of tasks from the settings of an editor and of each of its profiles. Profiles have
// their own settings but share one globalStorage. It ignores unreadable settings, as the editor does.
func customPaths(userData string, found func(dir string, tool Tool)) {
	files := []string{filepath.Join(userData, "User", "settings.json"), filepath.Join(userData, "Machine", "settings.json")}
	profiles := filepath.Join(userData, "User", "profiles")
	if entries, err := os.ReadDir(profiles); err == nil {
		for _, e := range entries {
			files = append(files, filepath.Join(profiles, e.Name(), "settings.json"))
		}
	}
	for _, file := range files {
		raw, _, err := readRegular(file)
		if err != nil {
			continue
		}
		raw = plainJSON(raw)
		if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
			continue
		}
		for _, s := range customStorage {
			if dir, ok := esjson.GetString(raw, s.key); ok && filepath.IsAbs(dir) {
				found(filepath.Clean(dir), s.tool)
			}
		}
	}
}

// plainJSON turns the JSON of VS Code into JSON: comments become blanks, and so do commas before a closing bracket.
func plainJSON(src []byte) []byte {
	out := make([]byte, 0, len(src))
	comma := -1 // a comma in out that nothing but blanks followed so far
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			end := esjson.StringEnd(src, i)
			out = append(out, src[i:end]...)
			i, comma = end, -1
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '/':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '*':
			for i += 3; i < len(src) && (src[i-1] != '*' || src[i] != '/'); i++ {
			}
			i++
			continue
		case c == ',':
			comma = len(out)
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c == 0xEF && i+2 < len(src) && src[i+1] == 0xBB && src[i+2] == 0xBF && i == 0:
			i += 3
			continue
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
		out = append(out, src[i])
		i++
	}
	return out
}
