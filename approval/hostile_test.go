package approval

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestHostileLinesAreAsked: an allow pattern for every program in sight, and lines that
// run, write or show something else than their first words say. Each group is one way
// to do it.
func TestHostileLinesAreAsked(t *testing.T) {
	allow := []string{"git", "git log", "ls", "cat", "echo", "env", "sh", "npm test", "go test", "*"}
	for way, lines := range map[string][]string{
		"a second command": {
			"ls;rm -rf x", "ls ; rm x", "ls&rm x", "ls && rm x", "ls || rm x", "ls | sh", "ls |& sh",
			"ls\nrm x", "ls\r\nrm x", "ls\rrm x", "ls &", "ls;", ";ls", "ls \\\n; rm x", "! ls", "ls; # x",
		},
		"a substitution": {
			"ls $(rm x)", "ls `rm x`", `ls "$(rm x)"`, "ls \"`rm x`\"", "ls <(rm x)", "ls >(rm x)",
			"ls =(rm x)", "ls $((`rm x`))", "ls ${x:-$(rm x)}", "ls $[1]", "ls ${x@P}", "ls ${!x}",
			`ls "${x}"`, "ls $'\\x24(rm x)'", `ls $"x"`, "$(ls)", "`ls`",
		},
		"a file": {
			"ls > f", "ls >> f", "ls >| f", "ls &> f", "ls >& f", "ls 2> f", "ls 3<> f", "ls < f", "ls <<< x",
			"ls > f > g", "> f ls", "ls >f", "ls {fd}> f", "ls >&3", "ls 3>&1", "ls 2>&1 > f", "ls > /dev/tty", "ls > /dev/null/../x",
		},
		"a heredoc": {
			"cat << E\nx\nE", "cat <<- E\n\tx\n\tE", "cat << 'E'\n$(rm x)\nE", "cat << E\n$(rm x)\nE",
			"sh << E\nrm x\nE", "cat << E | sh\nrm x\nE", "cat << A << B\nA\nB\n",
		},
		"an assignment": {
			"A=1 ls", "PATH=. ls", "LD_PRELOAD=./x.so ls", "A=1", "A=$(rm x)", "A+=1 ls", "a[0]=1 ls",
			"GIT_SSH_COMMAND=./x git log", "A=1 B=2 git log", "export A=1", "declare -x A=1", "readonly A=1",
		},
		"a wrapper": {
			"env ls", "env -i ls", "env A=1 ls", "sudo ls", "doas ls", "nohup ls", "nice ls", "timeout 1 ls",
			"time ls", "command ls", "builtin echo", "exec ls", "eval ls", "xargs ls", "sh -c ls",
			"bash -lc ls", "busybox ls", "watch ls", "strace ls", "setsid ls", "stdbuf -o0 ls", "ssh host ls",
			"parallel ls", "find . -exec ls {} +", "script -c ls", "flock f ls", "unshare ls", "chroot / ls",
			"su -c ls",
		},
		"an expansion": {
			"ls *", "ls ?", "ls [a]", "ls {a,b}", "ls ~", "ls ~root", "ls $x", "ls ${x}", "ls a~b", "echo !!",
			"echo !x", `echo "!x"`, "ls \\*", "l\\s", "ls -{a,l}", "/bin/l?", "ls @(a|b)", "ls ^x^y", "%1 ls",
			"ls #c", "ls a=~1", "ls a:~", "ls @{a,b}", "ls =x", "ls ''=x", "ls \"\"''=x", "ls @{1..9}", "ls @{$x}", "ls 'a'~1",
		},
		"something that cannot be seen": {
			"ls \u202e txt.exe", "ls \u2066x\u2069", "ls\u00a0x", "ls\u200bx", "l\u200ds", "ls \ufeffx",
			"ls \u00adx", "ls \u2028rm x", "ls \u0085rm x", "ls \u3164", "ls \u2800", "ls \U000e0041",
			"ls \x1b[2K\x1b[1G", "ls \x08\x08rm", "ls \x00", "ls \x7f", "ls \xff", "ls \xc0\xaf", "ls\trm",
			"ls \ufe0f", "\ufeffls", "ls \u034f", "ls \u115f", "ls \u1160", "ls \u17b4", "ls \u17b5", "ls \uffa0",
			"ls \ufe00", "ls \U000e0100", "ls \U000e01ef",
		},
		"another program": {
			"lsx", "LS", "Ls", "./ls", "/bin/ls", "../ls", "ls/../rm x", "l's'x", "gitk", "git-log",
			"'ls ' x", "'' ls", "=ls", "-ls", "ls=1", "'git log'", "ｌｓ", "lѕ",
		},
		"not a command at all": {
			"", " ", "ls 'a", `ls "a`, "ls \\", "ls )", "ls }", "(ls)", "{ ls; }", "((1))", "[[ a ]]",
			"if ls; then ls; fi", "while ls; do ls; done", "for i in a; do ls; done",
			"case a in a) ls;; esac", "f() { ls; }", "function f { ls; }", "select i in a; do ls; done",
			"coproc ls", "let a=1", "ls <<", "ls |", "ls &&",
		},
		"what a subcommand runs": {
			"git -c core.pager=./x log", "git -c alias.log=!./x log", "git --git-dir=x log",
			"git --exec-path=. log", "git log --output=f", "git diff --ext-diff", "git rebase -x ./x",
			"git clone ext::./x y", "git submodule foreach ./x", "git bisect run ./x", "git difftool",
			"git mergetool", "git config core.pager ./x", "git log --textconv",
			"git archive --remote=x --exec=./x HEAD", "git push --receive-pack=./x",
			"git ls-remote --upload-pack=./x y",
			"npm test --script-shell=./x", "npm exec x", "go test -exec ./x", "go test -toolexec ./x", "go test -o f", "go test -c -o f",
		},
	} {
		for _, line := range lines {
			if v := Command(line, allow, nil); v.State == Allow {
				t.Errorf("%s: %q is allowed: %+v", way, line, v)
			}
			for _, mode := range []string{ModeAsk, ModeRead, ModeEdits, "", "nonsense"} {
				if d := Decide(Policy{Mode: mode, Allow: allow}, "command", askOf(line)); d.State == Allow {
					t.Errorf("%s: %q is allowed in mode %q: %+v", way, line, mode, d)
				}
			}
		}
	}
}

// hidden draws a way to run the line inside another one. Each form is the shell's own,
// or that of a program that runs others.
func hidden(t *rapid.T, line string) string {
	quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	forms := []string{
		"%s", "ls; %s", "%s; ls", "ls && %s", "ls || %s", "ls | %s", "%s | cat", "%s &", "ls\n%s\nls",
		"(%s)", "{ %s; }", "! %s", "if %s; then ls; fi", "if ls; then %s; fi", "while %s; do ls; done",
		"until ls; do %s; done",
		"for i in a b; do %s; done", "case x in x) %s;; esac", "f() { %s; }; f", "echo $(%s)",
		"echo \"$(%s)\"", "x=$(%s)", "cat <(%s)", "echo ${a:-$(%s)}", "[[ -n $(%s) ]]",
		"cat << E\n$(%s)\nE", "echo $(( $(%s) ))", "ls > $(%s)",
		"sh -c @", "bash -c @", "bash -lc @", "dash -c @", "eval @", "sudo sh -c @", "ssh host @",
		"env sh -c @", "xargs sh -c @", "find . -exec sh -c @ \\;", "nohup sh -c @ &", "watch @",
		"timeout 5 sh -c @",
	}
	form := rapid.SampledFrom(forms).Draw(t, "form")
	if strings.Contains(line, "\n") && strings.Contains(line, "<<") {
		form = rapid.SampledFrom([]string{"ls\n%s\nls", "sh -c @", "eval @"}).Draw(t, "form") // the heredoc must end at its own line
	}
	if strings.HasPrefix(line, "(") {
		line = " " + line // $(( begins a sum, in which rm is a variable and no command
	}
	return strings.ReplaceAll(strings.ReplaceAll(form, "%s", line), "@", quoted)
}

// However deep a denied command is hidden, and however its words are spelled, no
// policy lets it run: it is denied, or asked because a deny cannot be ruled out.
func TestDeniedCommandsDoNotHide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{
			"rm -rf /", "rm x", "'rm' x", `"rm" x`, `r\m x`, "r''m x", "/bin/rm x", "../../bin/rm x", "RM x",
			"rm", "sudo rm x", "env A=1 rm x", "nice -n 5 rm x", "command rm x", "A=1 rm x", "rm x > f",
			"git push", "git -C x push", "git --no-pager push -f", "xargs rm",
		}).Draw(t, "line")
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			line = hidden(t, line)
		}
		policy := Policy{Mode: ModeAll, Allow: []string{"ls", "rm", "git", "sh", "*"}, Deny: []string{"rm", "git push"}}
		if d := Decide(policy, "command", askOf(line)); d.State == Allow {
			t.Fatalf("%q runs: %+v", line, d)
		}
		if v := Command(line, policy.Allow, policy.Deny); v.State == Allow || v.State == Ask && !v.unsure {
			t.Fatalf("%q: got %+v, want v.State != Allow and (v.State != Ask or v.unsure)", line, v)
		}
	})
}

// TestAllowedLinesRunAsTheyRead gives allowed lines to the shells that are there. Each
// must run the named program once, with the words that were judged, and nothing else.
func TestAllowedLinesRunAsTheyRead(t *testing.T) {
	if otherShell {
		t.Skip("allow patterns match nothing here")
	}
	bin, work := t.TempDir(), t.TempDir()
	const script = "#!/bin/sh\nprintf '%s\\0' run \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "probe"), []byte(script), 0o700); err != nil { //nolint:gosec // it must run
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var shells []string
	for _, name := range []string{"sh", "bash", "dash", "zsh", "busybox"} {
		if path, err := exec.LookPath(name); err == nil {
			shells = append(shells, path)
		}
	}
	word := rapid.SampledFrom([]string{
		"a", "-n", "--flag=x", "k=v", "50%", "é", "日本", "a.b/c", "+1", "x:y", "@z", "a,b", "'a b'",
		`"a b"`, "'$HOME'", "'*'", `"it's"`, `'"'`, "'a;b'", `"a|b"`, "'`id`'", "'$(id)'", `"#"`, "''",
		`""`, "a'b'c", `a"b"'c'`, "-", "--", "x_y",
		"'\\n'", "~", "*", "$x", "#", "!x", "{a,b}", ";", "|", "&", "$(id)", "`id`", "\\x", "> f", "< f",
		"[a]", "?", "=x", "a=~", "\n", "\"", "'", "(", ")", "^", "%1", "file*", "{", "}", "a#b", "a!b",
		"x~",
	})
	harmless := rapid.SampledFrom([]string{"a", "a.b/c", "x_y", "b", "日本"})
	ran := 0
	rapid.Check(t, func(t *rapid.T) {
		line, from := "probe", word
		if rapid.Bool().Draw(t, "harmless") { // of the others few lines are allowed
			from = harmless
		}
		for range rapid.IntRange(1, 4).Draw(t, "words") {
			line += rapid.SampledFrom([]string{" ", " ", "  ", ""}).Draw(t, "gap") + from.Draw(t, "word")
		}
		if Command(line, []string{"probe"}, nil).State != Allow {
			return
		}
		list, why := plainCommands(line)
		if why != "" || len(list) != 1 {
			t.Fatalf("%q is allowed and %s", line, why)
		}
		want := "run\x00" + strings.Join(append(list[0].words[1:], ""), "\x00")
		if ran++; ran > 60 {
			return // each takes some processes
		}
		for _, shell := range shells {
			args := []string{"-c", line}
			if strings.HasSuffix(shell, "busybox") {
				args = append([]string{"sh"}, args...)
			}
			cmd := exec.Command(shell, args...) //nolint:gosec // that is what is tested
			cmd.Dir, cmd.Env = work, []string{"PATH=" + bin, "HOME=/nowhere", "x=VALUE"}
			out, err := cmd.CombinedOutput()
			if diff := cmp.Diff(want, string(out)); diff != "" {
				t.Fatalf("%s runs %q (%v): %s", shell, line, err, diff)
			}
		}
	})
	left, err := os.ReadDir(work)
	if err != nil || len(left) != 1 {
		t.Errorf("allowed lines left %v behind (%v)", left, err)
	}
	if got := Command("probe a x_y", []string{"probe"}, nil).State; got != Allow {
		t.Errorf("a line that is allowed is not: %v", got)
	}
}

// What "always" proposes allows the line it was proposed for, and no other program.
func TestPatternAllowsItsLineOnly(t *testing.T) {
	word := rapid.SampledFrom([]string{"git", "log", "npm", "run", "build", "ls", "-la", "go", "test", "./...", "python3", "x.py", "make", "rm", "docker", "ps", "--", "a=b", "'x y'", "sudo", ";", "$x"})
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(word, 1, 5).Draw(t, "words"), " ")
		p := Pattern(line)
		if p == "" {
			return
		}
		if v := Command(line, []string{p}, nil); v.State != Allow {
			t.Fatalf("%q for %q: %+v", p, line, v)
		}
		other := word.Draw(t, "other") + " " + line
		first, _, _ := strings.Cut(p, " ")
		if v := Command(other, []string{p}, nil); v.State == Allow && !strings.HasPrefix(other, first+" ") {
			t.Fatalf("%q allows %q", p, other)
		}
		if v := Command(line, []string{p}, []string{p}); v.State != Deny {
			t.Fatalf("the same pattern denied: %+v", v)
		}
	})
}

// Deny wins: another deny never lets more through, and another allow never undoes one.
func TestMorePatterns(t *testing.T) {
	pattern := rapid.SampledFrom([]string{"git", "git log", "git push", "ls", "rm", "rm -rf", "*", "npm run", "A=1 ls", "", " ", "--", "sh -c"})
	strict := map[State]int{Allow: 0, Ask: 1, Deny: 2}
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(pattern, 0, 3)
		allow, deny := lists.Draw(t, "allow"), lists.Draw(t, "deny")
		more := pattern.Draw(t, "more")
		line := rapid.SampledFrom([]string{"git log", "git push", "git log -3", "ls", "ls | rm x", "rm -r -f x", "sh -c 'git push'", "npm run x", "A=1 ls", "$x", "ls 'a", "echo `rm x`"}).Draw(t, "line")
		before := Command(line, allow, deny)
		if before.Parts == nil || before.Reason == "" {
			t.Fatalf("%q: got %+v, want before.Parts != nil and before.Reason != \"\"", line, before)
		}
		if after := Command(line, allow, append(deny[:len(deny):len(deny)], more)); strict[after.State] < strict[before.State] {
			t.Fatalf("%q: the deny %q turns %+v into %+v", line, more, before, after)
		}
		if after := Command(line, append(allow[:len(allow):len(allow)], more), deny); before.State == Deny && after.State != Deny {
			t.Fatalf("%q: the allow %q turns %+v into %+v", line, more, before, after)
		}
	})
}

func ExamplePattern() {
	fmt.Println(Pattern("git log --oneline -5"))
	fmt.Println(Pattern("npm run build"))
	fmt.Printf("%q\n", Pattern("git log | sh"))
	// Output:
	// git log
	// npm run build
	// ""
}
