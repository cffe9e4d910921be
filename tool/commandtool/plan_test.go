//go:build linux

package commandtool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/tool"
)

// mistake plans a call and gives what the model is told, "" when it is fine.
func mistake(t *testing.T, env tool.Env, in map[string]any) string {
	t.Helper()
	_, err := New().Plan(t.Context(), env, input(t, in))
	var wrong *tool.InputError
	if err != nil && !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	if wrong == nil {
		return ""
	}
	return wrong.Reason
}

// What cannot run is said before anybody is asked to allow it.
func TestWhatCannotRunIsNotAskedFor(t *testing.T) {
	env := setup(t)
	root := env.Workspace.Root()
	for name, text := range map[string]string{".rooignore": "*.key\nsecret/\n", "file": "", "secret/s": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ line, cwd, want string }{
		{"true", "gone", `the "cwd" gone does not exist`},
		{"true", "file", `"cwd" file is not a folder`},
		{"true", "file/below", `"cwd" file/below is not a folder`},
		{"cat a.key", "", `would show "a.key", which .rooignore hides`},
		{"ls; head -3 secret/s | wc", "", `would show "secret/s"`},
		{": " + strings.Repeat("x", 128<<10), "", "write it to a file"},
		{"cat file", ".", ""},
		{": " + strings.Repeat("x", 128<<10-4), "", ""},
	} {
		got := mistake(t, env, map[string]any{"command": tt.line, "cwd": tt.cwd})
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%.40q in %q: %q, want %q", tt.line, tt.cwd, got, tt.want)
		}
	}
}

// The longest line that the plan lets through is one that the system takes.
func TestTheLongestLineRuns(t *testing.T) {
	line := "echo ok; : "
	res := do(t, setup(t), &output{}, map[string]any{"command": line + strings.Repeat("x", maxLine-len(line))})
	if !strings.HasSuffix(res.Text, "Output:\nok\n") {
		t.Errorf("%.300q", res.Text)
	}
}

func TestTheFolderIsJudgedAgainWhenTheCommandStarts(t *testing.T) {
	outside := t.TempDir()
	for name, meddle := range map[string]func(dir string) error{
		"gone":           os.Remove,
		"a file now":     func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
		"a link outside": func(dir string) error { return errors.Join(os.Remove(dir), os.Symlink(outside, dir)) },
		"a link inside":  func(dir string) error { return errors.Join(os.Remove(dir), os.Symlink(".", dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			env := setup(t)
			dir := filepath.Join(env.Workspace.Root(), "sub")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": "touch was-here", "cwd": "sub"}))
			if err != nil {
				t.Fatal(err)
			}
			if err := meddle(dir); err != nil {
				t.Fatal(err)
			}
			out := &output{}
			res, err := p.Run(t.Context(), out)
			if err != nil || !res.IsError || !strings.HasPrefix(res.Text, "Error: nothing was run: ") || out.process.PGID != 0 {
				t.Errorf("got %+v, %v, want no error and res.IsError and strings.HasPrefix(res.Text, \"Error: nothing was run: \") and out.process.PGID = 0",
					res, err)
			}
			for _, place := range []string{outside, env.Workspace.Root()} {
				if _, err := os.Stat(filepath.Join(place, "was-here")); err == nil {
					t.Errorf("it ran in %s", place)
				}
			}
		})
	}
}

// A person decides by the title: nothing in it may act on the terminal or turn
// text around.
func TestTitleShowsWhatIsThere(t *testing.T) {
	env := setup(t)
	for line, want := range map[string]string{
		"ls":                           "execute_command ls",
		"ls\n":                         "execute_command ls",
		"git log\nid > x":              "execute_command\n    git log\n    id > x",
		"ls \x1b[2K\rrm x":             "execute_command ls «U+001B»[2K«U+000D»rm x",
		"echo \u202egnp.exe":           "execute_command echo «U+202E»gnp.exe",
		"cat <<E\n" + "x\n" + "E":      "execute_command\n    cat <<E\n    x\n    E",
		"echo a # \x07\u0085 the bell": "execute_command echo a # «U+0007 U+0085» the bell",

		"git log" + strings.Repeat(" ", 300) + "; id": "execute_command git log«300 blanks»; id",
		"echo " + strings.Repeat("x", 400):            "execute_command\n    echo " + strings.Repeat("x", 400),
	} {
		p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": line}))
		if err != nil {
			t.Fatal(err)
		}
		if a := p.Ask(); a.Title != want || a.Command != line || a.Text != line || a.Dir == "" {
			t.Errorf("%q: got %+v, want a.Title = %v and a.Command = line and a.Text = line and a.Dir != \"\"", line, a, want)
		}
	}
}

func TestTimeLimits(t *testing.T) {
	env := setup(t)
	for _, tt := range []struct {
		model any // seconds
		want  string
	}{{nil, "0s"}, {2, "2s"}, {0, "0s"}, {1e18, "0s"}, {1e300, "0s"}, {0.25, "250ms"}} {
		p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": "true", "timeout": tt.model}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(*plan).limit.String(); got != tt.want {
			t.Errorf("the model's %v s give %s, want %s", tt.model, got, tt.want)
		}
	}
}

// TestAPatternDoesNotReachThroughALink: a link in the workspace leads a change of a plain name to another folder.
func TestAPatternDoesNotReachThroughALink(t *testing.T) {
	env := setup(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(env.Workspace.Root(), "out")); err != nil {
		t.Skip("links cannot be made here")
	}
	policy := approval.Policy{Allow: []string{"cp", "mv", "touch", "git mv", "git clone", "git init", "black", "ruff format", "cat", "ls", "split", "gzip", "zip", "scp", "go fmt", "isort"}}
	for line, want := range map[string]approval.State{
		"cp a out/a": approval.Ask, "cp a out": approval.Ask, "ls; mv a out/b": approval.Ask, "touch out/sub/x": approval.Ask, "git mv a out/c": approval.Ask,
		"git clone https://example.org/a.git out/a": approval.Ask, "git init out": approval.Ask, "black out/a.py": approval.Ask, "ruff format out/a.py": approval.Ask,
		"split a out/x": approval.Ask, "gzip out/a": approval.Ask, "zip out/a.zip b": approval.Ask, "scp a out/b": approval.Ask, "go fmt ./out": approval.Ask, "isort out/a.py": approval.Ask,
		"split a b": approval.Allow, "go fmt ./in": approval.Allow,
		"cp a b": approval.Allow, "cat out/a": approval.Allow, "git clone https://example.org/a.git in/a": approval.Allow,
	} {
		p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": line}))
		if err != nil {
			t.Fatal(err)
		}
		if got := approval.Decide(policy, tool.Command, p.Ask()).State; got != want {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
}
