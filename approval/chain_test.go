package approval

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestChains: every part is judged on its own and named; what is between them makes no
// file and runs nothing.
func TestChains(t *testing.T) {
	allow := []string{"git log", "git status", "ls", "grep", "head"}
	for line, want := range map[string][]string{ // the rules of the parts; nil = asked for as a whole
		"ls && ls":                       {"ls", "ls"},
		"git status; ls -la":             {"git status", "ls"},
		"git log | head -n 3":            {"git log", "head"},
		"ls || git status && ls":         {"ls", "git status", "ls"},
		"git log 2>&1 | grep x | head":   {"git log", "grep", "head"},
		"ls 2>/dev/null":                 {"ls"},
		"ls > /dev/null 2>&1":            {"ls"},
		"ls && rm x":                     {"ls", ""},
		"rm x; ls":                       {"", "ls"},
		"git log | sh":                   {"git log", ""},
		"git push && git log":            {"", "git log"},
		"ls | git -c a=b log":            {"ls", ""},
		"ls && cd x":                     nil,
		"cd x && ls":                     nil,
		"ls & ls":                        nil,
		"ls && A=1 ls":                   nil,
		"ls && (ls)":                     nil,
		"ls > f && ls":                   nil,
		"! ls && ls":                     nil,
		"ls\nls":                         nil,
		"ls |& head":                     nil,
		strings.Repeat("ls;", 40) + "ls": nil,
	} {
		v := Command(line, allow, nil)
		if want == nil {
			if v.State != Ask {
				t.Errorf("%q: got %+v, want v.State = Ask", line, v)
			}
			continue
		}
		state, all := Allow, []string{}
		for i, rule := range want {
			if rule == "" {
				state = Ask
			}
			if i < len(v.Parts) {
				all = append(all, v.Parts[i].Rule)
			}
		}
		if v.State != state || strings.Join(all, "|") != strings.Join(want, "|") || len(v.Parts) != len(want) || v.Reason == "" {
			t.Errorf("%q: %+v, want %s by %q", line, v, state, want)
		}
	}
	d := Decide(Policy{Allow: allow}, "command", askOf("git log | head; ls | head"))
	if d.State != Allow || d.By != "allow" || d.Rule != "git log, head, ls" {
		t.Errorf(`got %+v, want d.State = Allow and d.By = "allow" and d.Rule = "git log, head, ls"`, d)
	}
}

// TestAllowedChainsRunNothingElse gives chains that are allowed to the shells that are
// there: only the programs that were allowed run, and no file appears.
func TestAllowedChainsRunNothingElse(t *testing.T) {
	if otherShell {
		t.Skip("allow patterns match nothing here")
	}
	bin, work := t.TempDir(), t.TempDir()
	for name, body := range map[string]string{"probe": "exit 0", "fails": "exit 1", "evil": "echo ran > " + filepath.Join(work, "evil")} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // it must run
			t.Fatal(err)
		}
	}
	var shells []string
	for _, name := range []string{"sh", "bash", "dash", "zsh"} {
		if path, err := exec.LookPath(name); err == nil {
			shells = append(shells, path)
		}
	}
	between := rapid.SampledFrom([]string{" && ", " || ", "; ", " | ", ";", "&&", "|", " & ", " |& ", "\n", " ", " ;; ", " ! ", " > ", " 2>&1 | ", " < ", " # ", " \\\n", " {", " ("})
	piece := rapid.SampledFrom([]string{"probe", "fails", "probe a", "probe evil", "probe 'a; evil'", "probe 2>&1", "probe > /dev/null", "probe 2>/dev/null evil", "evil", "probe $(evil)", "probe \"`evil`\"", "probe #", "fails < /dev/null", "probe \\; evil", "'probe' \"; evil\"", "probe <(evil)", "A=evil probe", "probe {a,evil}", "probe ~", "eval evil", "}", ")"})
	ran := 0
	rapid.Check(t, func(t *rapid.T) {
		line := piece.Draw(t, "first")
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			line += between.Draw(t, "between") + piece.Draw(t, "piece")
		}
		if Command(line, []string{"probe", "fails"}, nil).State != Allow {
			return
		}
		if ran++; ran > 40 {
			return // each takes some processes
		}
		for _, shell := range shells {
			cmd := exec.Command(shell, "-c", line) //nolint:gosec // that is what is tested
			cmd.Dir, cmd.Env = work, []string{"PATH=" + bin, "HOME=/nowhere"}
			out, _ := cmd.CombinedOutput()
			if strings.Contains(string(out), "not found") || strings.Contains(string(out), "rror") {
				t.Fatalf("%s on %q: %s", shell, line, out)
			}
			if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
				t.Fatalf("%s on %q left %v (%v)", shell, line, left, err)
			}
		}
	})
	if ran == 0 {
		t.Error("no chain was allowed")
	}
}

// TestPatternsMustNameWhatRuns: a program that runs others by name is allowed only by a
// pattern that names what it runs.
func TestPatternsMustNameWhatRuns(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          State
	}{
		{"uv run", "uv run pytest", Ask},
		{"uv run pytest", "uv run pytest tests", Allow},
		{"uv", "uv pip list", Allow},
		{"bundle exec", "bundle exec rspec", Ask},
		{"bundle exec rspec", "bundle exec rspec a", Allow},
		{"poetry", "poetry run x", Ask},
		{"deno", "deno run x.ts", Ask},
		{"deno run x.ts", "deno run x.ts", Allow},
		{"python3 -m", "python3 -m http.server", Ask},
		{"python3 -m http.server", "python3 -m http.server", Allow},
		{"python3 -", "python3 -", Ask},
		{"tar", "tar tf a.tar", Allow},
		{"tar", "tar xIf prog a.tar", Ask},
		{"test", "test -f a", Allow},
		{"test", "test -v 'a[$(x)]'", Ask},
		{"git clone", "git clone -c core.pager=x h", Ask},
		{"gіt", "gіt log", Ask}, // not the letter i
	} {
		if v := Command(tt.line, []string{tt.pattern}, nil); v.State != tt.want {
			t.Errorf("%q for %q: %+v", tt.pattern, tt.line, v)
		}
	}
}
