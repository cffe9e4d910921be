package roofmt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

func TestPlainJSON(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"plain", `{"a":[1,2],"b":"c"}`, `{"a":[1,2],"b":"c"}`},
		{"a line comment", "{\"a\":1 // one\n}", "{\"a\":1 \n}"},
		{"a line comment at the end", `{"a":1}// done`, `{"a":1}`},
		{"a block comment", `{/* x */"a":/**/1}`, `{"a":1}`},
		{"a slash is no end of a block", `{/*/ "b":2 */"a":1}`, `{"a":1}`},
		{"a block that never ends", `{"a":1}/* x`, `{"a":1}`},
		{"a comma too many", `{"a":[1,2,],"b":{"c":1,},}`, `{"a":[1,2 ],"b":{"c":1 } }`},
		{"a comma too many before a comment", "{\"a\":1, // why\n /* so */ }", "{\"a\":1  \n  }"},
		{"marks inside strings", `{"a":"// no /* no */ ,}","b":"\"//"}`, `{"a":"// no /* no */ ,}","b":"\"//"}`},
		{"a string that never ends", `{"a":"b\`, `{"a":"b\`},
		{"a byte order mark", "\ufeff{}", "{}"},
		{"a slash alone", `{"a":/}`, `{"a":/}`},
		{"nothing", ``, ``},
	} {
		if got := string(plainJSON([]byte(c.src))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{`{"a":1,}`, `/* */ // `, `"\`, `[,]`, "{\"a\":\"\\\"//\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out := plainJSON(src)
		if len(out) > len(src) {
			t.Errorf("%q grew to %q", src, out)
		}
		// What is JSON already says the same afterwards.
		if esjson.Valid(src) && !esjson.Equal(src, out) {
			t.Errorf("%q became %q", src, out)
		}
	})
}

func TestCustomStorage(t *testing.T) {
	home := t.TempDir()
	moved := map[string]Tool{}
	put := func(file, key string, tool Tool, text func(dir string) string) {
		dir := filepath.Join(home, "moved", key+filepath.Base(filepath.Dir(file)))
		for _, d := range []string{dir, filepath.Dir(file)} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(text(dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		if tool != UnknownTool {
			moved[dir] = tool
		}
	}
	setting := func(key string) func(string) string {
		return func(dir string) string {
			return "{\n  // where tasks go\n  \"editor.fontSize\": 12,\n  \"" + key + "\": " + string(esjson.Quote(nil, dir)) + ",\n}\n"
		}
	}
	config := filepath.Join(home, ".config")
	code := filepath.Join(config, "Code")
	put(filepath.Join(code, "User", "settings.json"), "roo", Roo, setting("roo-cline.customStoragePath"))
	put(filepath.Join(code, "User", "profiles", "-5a3f", "settings.json"), "profile", Roo, setting("roo-cline.customStoragePath"))
	put(filepath.Join(config, "Cursor", "User", "settings.json"), "kilo", Kilo, setting("kilo-code.customStoragePath"))
	put(filepath.Join(config, "SomeFork", "User", "settings.json"), "night", Roo, setting("roo-code-nightly.customStoragePath"))
	put(filepath.Join(home, ".vscode-server", "data", "Machine", "settings.json"), "remote", Roo, setting("roo-cline.customStoragePath"))
	// What an editor would not take either.
	put(filepath.Join(config, "VSCodium", "User", "settings.json"), "broken", UnknownTool, func(dir string) string { return `{"roo-cline.customStoragePath":"` + dir })
	put(filepath.Join(config, "Windsurf", "User", "settings.json"), "relative", UnknownTool, func(string) string { return `{"roo-cline.customStoragePath":"moved/relative"}` })
	put(filepath.Join(config, "Antigravity", "User", "settings.json"), "empty", UnknownTool, func(string) string { return `{"roo-cline.customStoragePath":"","roo-cline":{"customStoragePath":7}}` })
	if err := os.MkdirAll(filepath.Join(config, "Code - OSS", "User", "settings.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := map[string]Tool{}
	for _, s := range DefaultStorages(Env{GOOS: "linux", Home: home}) {
		got[s.Dir] = s.Tool
	}
	if d := cmp.Diff(moved, got); d != "" {
		t.Error(d)
	}

	// A folder that is not there now is no storage; it is not made.
	if err := os.RemoveAll(filepath.Join(home, "moved")); err != nil {
		t.Fatal(err)
	}
	if list := DefaultStorages(Env{GOOS: "linux", Home: home}); len(list) != 0 {
		t.Errorf("got %+v, want len(list) = 0", list)
	}
	if _, err := os.Stat(filepath.Join(home, "moved")); err == nil {
		t.Error("looking made a folder")
	}
}

// From inside WSL the tasks of a window on the Windows side are found as well.
func TestWindowsAround(t *testing.T) {
	home, homes := t.TempDir(), t.TempDir()
	here := filepath.Join(home, ".vscode-server", "data", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	there := filepath.Join(homes, "anna", "AppData", "Roaming", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	for _, d := range []string{here, there, filepath.Join(homes, "Public")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(homes, "desktop.ini"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for windows, want := range map[string][]string{"": {here}, homes: {there, here}, filepath.Join(homes, "none"): {here}} {
		var got []string
		for _, s := range DefaultStorages(Env{GOOS: "linux", Home: home, WindowsHomes: windows}) {
			got = append(got, s.Dir)
			if s.Tool != Roo || s.Reach != Reachable {
				t.Errorf("got %+v, want s.Tool = Roo and s.Reach = Reachable", s)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", windows, d)
		}
	}
}

func TestSystemEnv(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "/somewhere/config")
	for distro, want := range map[string]string{"": "", "Ubuntu": "/mnt/c/Users"} {
		t.Setenv("WSL_DISTRO_NAME", distro)
		env, err := SystemEnv()
		if err != nil {
			t.Fatal(err)
		}
		if env.GOOS == "linux" && (env.WindowsHomes != want || env.Config != "/somewhere/config") {
			t.Errorf(`%q: got %+v, want env.GOOS != "linux" or (env.WindowsHomes = %v and env.Config = "/somewhere/config")`,
				distro, env, want)
		}
		if env.Getenv("WSL_DISTRO_NAME") != distro {
			t.Error("the environment is not the process's")
		}
	}
}

// The places of command line tools come from the environment first.
func TestToolsOfTheEnvironment(t *testing.T) {
	home := t.TempDir()
	dirs := map[string]Tool{}
	mk := func(parts ...string) string {
		dir := filepath.Join(append([]string{home}, parts...)...)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	mock, agentz := mk(".vscode-mock", "global-storage"), mk(".agentz")
	clineHome, clineData, clineDir := mk(".cline", "data"), mk("cline-data"), mk("cline", "data")
	zoo := mk(".zoo-code", "globalStorage", "wecode-ai.zoo-code")
	server := mk(".local", "share", "code-server", "User", "globalStorage", "kilocode.kilo-code")
	for _, c := range []struct {
		env   map[string]string
		cline string
	}{
		{nil, clineHome},
		{map[string]string{"CLINE_DATA_DIR": clineData, "CLINE_DIR": filepath.Join(home, "cline")}, clineData},
		{map[string]string{"CLINE_DIR": filepath.Join(home, "cline")}, clineDir},
		{map[string]string{"API_STORAGE_ROOT": agentz}, clineHome}, // named twice, listed once
	} {
		clear(dirs)
		for _, s := range DefaultStorages(Env{GOOS: "linux", Home: home, Getenv: func(k string) string { return c.env[k] }}) {
			if dirs[s.Dir] != UnknownTool {
				t.Errorf("twice: %s", s.Dir)
			}
			dirs[s.Dir] = s.Tool
		}
		want := map[string]Tool{mock: Roo, agentz: Roo, c.cline: Cline, zoo: Zoo, server: Kilo}
		if d := cmp.Diff(want, dirs); d != "" {
			t.Errorf("%v: got %s, want d = \"\"", c.env, d)
		}
	}
}
