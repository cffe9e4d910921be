package roofmt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/roofmt"
)

// found are the storages of a home that has these folders, by their path in it.
func found(t *testing.T, goos string, env map[string]string, dirs ...string) map[string]roofmt.Tool {
	t.Helper()
	home := t.TempDir()
	for _, d := range dirs {
		mkdirs(t, filepath.Join(home, filepath.FromSlash(d)))
	}
	config := ""
	if c := env["XDG_CONFIG_HOME"]; c != "" {
		config = filepath.Join(home, c)
	}
	got := map[string]roofmt.Tool{}
	for _, s := range roofmt.DefaultStorages(roofmt.Env{GOOS: goos, Home: home, Config: config, Getenv: func(k string) string {
		if v := env[k]; v != "" {
			return filepath.Join(home, v)
		}
		return ""
	}}) {
		rel, err := filepath.Rel(home, s.Dir)
		if err != nil || s.Reach != roofmt.Reachable {
			t.Fatalf("got %+v (%v), want no error and s.Reach = roofmt.Reachable", s, err)
		}
		if _, twice := got[filepath.ToSlash(rel)]; twice {
			t.Errorf("%s is found twice", rel)
		}
		got[filepath.ToSlash(rel)] = s.Tool
	}
	return got
}

// ~/.roo holds rules and settings, and tasks only where somebody keeps them there.
func TestTasksBesideRoosRules(t *testing.T) {
	home := t.TempDir()
	at := func() (dirs []string) {
		for _, s := range roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home}) {
			dirs = append(dirs, s.Dir)
		}
		return dirs
	}
	dir := filepath.Join(home, ".roo", "tasks", "task_1776200000000")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := at(); len(got) > 0 {
		t.Errorf("found %v where no task is", got)
	}
	if err := os.WriteFile(filepath.Join(dir, roofmt.UIName), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // files do not count as folders without tasks
		if err := os.WriteFile(filepath.Join(home, ".roo", "tasks", fmt.Sprint("note", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := at(), []string{filepath.Join(home, ".roo")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPlacesOfEditors(t *testing.T) {
	const roo, cline = "/User/globalStorage/rooveterinaryinc.roo-cline", "/User/globalStorage/saoudrizwan.claude-dev"
	for name, c := range map[string]struct {
		goos string
		env  map[string]string
		dirs []string
		want map[string]roofmt.Tool
	}{
		"every known editor": {goos: "linux", dirs: []string{".config/Code" + roo, ".config/Code - Insiders" + roo, ".config/VSCodium" + roo, ".config/Cursor" + cline, ".config/Windsurf" + cline},
			want: map[string]roofmt.Tool{".config/Code" + roo: roofmt.Roo, ".config/Code - Insiders" + roo: roofmt.Roo, ".config/VSCodium" + roo: roofmt.Roo, ".config/Cursor" + cline: roofmt.Cline, ".config/Windsurf" + cline: roofmt.Cline}},
		"every known extension": {goos: "darwin", dirs: []string{"Library/Application Support/Trae" + roo, "Library/Application Support/Trae/User/globalStorage/rooveterinaryinc.roo-code-nightly",
			"Library/Application Support/Trae/User/globalStorage/kilocode.kilo-code", "Library/Application Support/Trae/User/globalStorage/WeCode-AI.zoo-code", "Library/Application Support/Trae/User/globalStorage/ms-python.python"},
			want: map[string]roofmt.Tool{"Library/Application Support/Trae" + roo: roofmt.Roo, "Library/Application Support/Trae/User/globalStorage/rooveterinaryinc.roo-code-nightly": roofmt.Roo,
				"Library/Application Support/Trae/User/globalStorage/kilocode.kilo-code": roofmt.Kilo, "Library/Application Support/Trae/User/globalStorage/WeCode-AI.zoo-code": roofmt.Zoo}},
		"the far ends of remote windows": {goos: "linux", dirs: []string{".vscode-server/data" + roo, ".vscode-server-insiders/data" + roo, ".cursor-server/data" + cline, ".windsurf-server/data" + cline, ".vscode-remote/data" + roo, ".local/share/code-server" + roo},
			want: map[string]roofmt.Tool{".vscode-server/data" + roo: roofmt.Roo, ".vscode-server-insiders/data" + roo: roofmt.Roo, ".cursor-server/data" + cline: roofmt.Cline, ".windsurf-server/data" + cline: roofmt.Cline,
				".vscode-remote/data" + roo: roofmt.Roo, ".local/share/code-server" + roo: roofmt.Roo}},
		"a sandboxed editor": {goos: "linux", dirs: []string{".var/app/com.vscodium.codium/config/VSCodium" + roo}, want: map[string]roofmt.Tool{".var/app/com.vscodium.codium/config/VSCodium" + roo: roofmt.Roo}},
		"a portable editor": {goos: "windows", env: map[string]string{"VSCODE_PORTABLE": "stick"}, dirs: []string{"stick/user-data" + roo, "AppData/Roaming/Code" + cline},
			want: map[string]roofmt.Tool{"stick/user-data" + roo: roofmt.Roo, "AppData/Roaming/Code" + cline: roofmt.Cline}},
		"a moved configuration": {goos: "linux", env: map[string]string{"XDG_CONFIG_HOME": "cfg", "XDG_DATA_HOME": "data"}, dirs: []string{"cfg/Code" + roo, ".config/Cursor" + roo, "data/code-server" + roo},
			want: map[string]roofmt.Tool{"cfg/Code" + roo: roofmt.Roo, ".config/Cursor" + roo: roofmt.Roo, "data/code-server" + roo: roofmt.Roo}},
		"tools without an editor": {goos: "linux", env: map[string]string{"CLINE_DIR": "c"}, dirs: []string{".vscode-mock/global-storage", ".agentz", "c/data", "c/data/sessions", ".zoo-code/globalStorage/wecode-ai.zoo-code"},
			want: map[string]roofmt.Tool{".vscode-mock/global-storage": roofmt.Roo, ".agentz": roofmt.Roo, "c/data": roofmt.Cline, "c/data/sessions": roofmt.Cline, ".zoo-code/globalStorage/wecode-ai.zoo-code": roofmt.Zoo}},
		"Windows": {goos: "windows", dirs: []string{"AppData/Roaming/Code" + roo, "AppData/Roaming/Code - Insiders" + cline, "AppData/Roaming/Antigravity" + cline, "AppData/Local/Code" + roo, ".config/Code" + roo, ".cline/data/sessions"},
			want: map[string]roofmt.Tool{"AppData/Roaming/Code" + roo: roofmt.Roo, "AppData/Roaming/Code - Insiders" + cline: roofmt.Cline, "AppData/Roaming/Antigravity" + cline: roofmt.Cline,
				".cline/data": roofmt.Cline, ".cline/data/sessions": roofmt.Cline}},
		"macOS": {goos: "darwin", dirs: []string{"Library/Application Support/Code" + roo, "Library/Application Support/Windsurf" + cline, ".config/Code" + roo, ".local/share/code-server" + roo, ".vscode-server/data" + roo},
			want: map[string]roofmt.Tool{"Library/Application Support/Code" + roo: roofmt.Roo, "Library/Application Support/Windsurf" + cline: roofmt.Cline,
				".local/share/code-server" + roo: roofmt.Roo, ".vscode-server/data" + roo: roofmt.Roo}},
		"a host whose owner moved the far end": {goos: "linux", env: map[string]string{"VSCODE_AGENT_FOLDER": "ws/.vscode-remote"}, dirs: []string{"ws/.vscode-remote/data" + roo},
			want: map[string]roofmt.Tool{"ws/.vscode-remote/data" + roo: roofmt.Roo}},
		"a snap": {goos: "linux", dirs: []string{"snap/code/current/.config/Code" + roo}, want: map[string]roofmt.Tool{"snap/code/current/.config/Code" + roo: roofmt.Roo}},
		"a fork of Cline's maker": {goos: "linux", dirs: []string{".config/Code/User/globalStorage/saoudrizwan.cline-nightly"},
			want: map[string]roofmt.Tool{".config/Code/User/globalStorage/saoudrizwan.cline-nightly": roofmt.Cline}},
		"the code agent": {goos: "linux", env: map[string]string{"ROO_GLOBAL_STORAGE_PATH": "a", "API_STORAGE_ROOT": "b", "TMPDIR": "tmp"}, dirs: []string{"a", "b", ".agentz", "tmp/.agentz", ".roocode", ".roo/storage/RooStorage"},
			want: map[string]roofmt.Tool{"a": roofmt.Roo, "b": roofmt.Roo, ".agentz": roofmt.Roo, "tmp/.agentz": roofmt.Roo, ".roocode": roofmt.Roo, ".roo/storage/RooStorage": roofmt.Roo}},
		"the code agent on Windows": {goos: "windows", env: map[string]string{"TMPDIR": "no", "TEMP": "tmp"}, dirs: []string{"no/.agentz", "tmp/.agentz"}, want: map[string]roofmt.Tool{"tmp/.agentz": roofmt.Roo}},
		"Cline's folders moved": {goos: "linux", env: map[string]string{"CLINE_DATA_DIR": "d", "CLINE_DIR": "c", "CLINE_SESSION_DATA_DIR": "s"}, dirs: []string{"d/sessions", "c/data/sessions", "s", ".cline/data"},
			want: map[string]roofmt.Tool{"d": roofmt.Cline, "s": roofmt.Cline}},
		"what is no editor": {goos: "linux", dirs: []string{".config/fish/functions", ".config/Code/User/globalStorage/ms-python.python/tasks/x", ".vscode-server/data/logs", ".cache/tasks"}, want: map[string]roofmt.Tool{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := found(t, c.goos, c.env, c.dirs...); !cmp.Equal(c.want, got) {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}

// A fork of an extension under a name of its own is known by what it keeps.
func TestForksOfExtensions(t *testing.T) {
	home := t.TempDir()
	storage := filepath.Join(home, ".config", "Code", "User", "globalStorage")
	mkdirs(t, filepath.Join(storage, "somebody.fork", "tasks", "1"), filepath.Join(storage, "somebody.else", "tasks", "1"))
	write(t, filepath.Join(storage, "somebody.fork", "tasks", "1"), map[string]string{roofmt.UIName: uiList(1)})
	list := roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home})
	if len(list) != 1 || filepath.Base(list[0].Dir) != "somebody.fork" || list[0].Tool != roofmt.UnknownTool {
		t.Errorf(`got %+v, want len(list) = 1 and filepath.Base(list[0].Dir) = "somebody.fork" and list[0].Tool = roofmt.UnknownTool`,
			list)
	}
}

// A storage of editors that cannot be listed is told once, and one that may not be an editor's not at all.
func TestAStorageThatCannotBeListed(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"Code", "fish"} {
		user := filepath.Join(home, ".config", name, "User")
		mkdirs(t, user)
		if err := os.WriteFile(filepath.Join(user, "globalStorage"), nil, 0o600); err != nil { // a file in its place: whoever asks
			t.Fatal(err)
		}
	}
	list := roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home})
	if len(list) != 1 || list[0].Dir != filepath.Join(home, ".config", "Code", "User", "globalStorage") || list[0].Reach != roofmt.Unreachable {
		t.Errorf("got %+v, want that of Code, with Reach = roofmt.Unreachable",
			list)
	}
}
