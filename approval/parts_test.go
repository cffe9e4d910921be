package approval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParts: what a person is shown of a line are its simple commands, as they stand
// there, each with the pattern that decided.
func TestParts(t *testing.T) {
	deny := []string{"rm", "git push"}
	for line, want := range map[string][]string{
		"ls":                                 {"ls"},
		"ls -la | sort > f":                  {"ls -la", "sort"},
		"ls; rm x":                           {"ls", "rm x (rm)"},
		"ls && rm x || git push":             {"ls", "rm x (rm)", "git push (git push)"},
		"if ls; then rm x; else cd; fi":      {"ls", "rm x (rm)", "cd"},
		"for i in a b; do cat $i; done":      {"cat $i"},
		"while read x; do echo $x; done < f": {"read x", "echo $x"},
		"case $x in a) ls;; b) rm x;; esac":  {"ls", "rm x (rm)"},
		"f() { rm x; }; f":                   {"rm x (rm)", "f"},
		"echo $(rm x) `ls`":                  {"echo $(rm x) `ls`", "rm x (rm)", "ls"},
		"cat <(ls) >(rm x)":                  {"cat <(ls) >(rm x)", "ls", "rm x (rm)"},
		"A=1 B=$(rm x) ls":                   {"ls", "rm x (rm)"},
		"A=$(ls)":                            {"ls"},
		"A=1":                                {},
		"(ls; { cd; })":                      {"ls", "cd"},
		"sudo -u root rm x":                  {"sudo -u root rm x (rm)"},
		"sh -c 'ls; rm x'":                   {"sh -c 'ls; rm x' (rm)"},
		"find . -exec rm {} ;":               {"find . -exec rm {} (rm)"},
		"cat << E\n$(rm x)\nE":               {"cat", "rm x (rm)"},
		"! ls &":                             {"ls"},
		"ls # rm x":                          {"ls"},
		"echo 'rm x' \"git push\"":           {"echo 'rm x' \"git push\""},
		"[[ -f x && $(rm x) ]]":              {"rm x (rm)"},
		"time rm x":                          {"rm x (rm)"},
		"ls 'a":                              {"ls 'a"},
		"":                                   {},
	} {
		v := Command(line, nil, deny)
		got := []string{}
		for _, p := range v.Parts {
			text := p.Text
			if p.State == Deny {
				text += " (" + p.Rule + ")"
			} else if p.Rule != "" || p.State != Ask {
				t.Errorf("%q: got %+v, want p.Rule = \"\" and p.State = Ask", line, p)
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// TestSpellings: a shell takes all of these for rm, or for git push, and so does a deny.
func TestSpellings(t *testing.T) {
	for _, line := range []string{
		`rm x`,
		`'rm' x`,
		`"rm" x`,
		`r'm' x`,
		`r""m x`,
		`''rm x`,
		`\rm x`,
		`r\m x`,
		"r\\\nm x",
		`"r\
m" x`,
		`$'rm' x`,
		`$'\x72\x6d' x`,
		`$'\162m' x`,
		`$'r\u006d' x`,
		`$"rm" x`,
		`/bin/rm x`,
		`./rm x`,
		`"/usr/bin/r"m x`,
		`RM x`,
		`Rm.exe x`,
		`  rm   x  `,
		"\trm x",
		"rm\tx",
		`git push`,
		`git  push origin`,
		`git -C dir push`,
		`git --git-dir=x push`,
		`git -c a.b=c --no-pager push`,
		`git 'pu'sh`,
		`git PUSH`,
		`"git" "push"`,
		`/usr/bin/git push`,
	} {
		v := Command(line, []string{"rm", "git", "git push"}, []string{"rm", "git push"})
		if v.State != Deny {
			t.Errorf("%q: got %+v, want v.State = Deny", line, v)
		}
	}
	for _, line := range []string{
		`rmdir x`,
		`xrm x`,
		`rm-x`,
		`r m x`,
		`'rm x'`,
		`echo rm x`,
		`ls rm`,
		`git status push`,
		`git log --grep push`,
		`gitpush`,
		`git pushx`,
		`grep 'git push' f`,
		`echo "rm x"`,
		`echo \$\(rm x\)`,
		`echo '$(rm x)' '` + "`rm x`" + `'`,
		"cat << 'E'\n$(rm x)\nE",
		`# rm x`,
		`ls #; rm x`,
	} {
		v := Command(line, nil, []string{"rm", "git push"})
		if v.State == Deny {
			t.Errorf("%q is denied: %+v", line, v)
		}
	}
}

// TestUnsure: why a deny pattern cannot be ruled out is said, and with any deny at all
// such a line runs in no mode.
func TestUnsure(t *testing.T) {
	for line, why := range map[string]string{
		`$x y`:                                  "only known when it runs",
		`$(echo rm) x`:                          "only known when it runs",
		`r${m}m x`:                              "only known when it runs",
		`r* x`:                                  "only known when it runs",
		`{rm,x} y`:                              "only known when it runs",
		`~/bin/x y`:                             "only known when it runs",
		`sh < f`:                                "reads commands from its input",
		`bash`:                                  "reads commands from its input",
		`sh -s`:                                 "reads commands from its input",
		`cat f | sh`:                            "reads commands from its input",
		`python3 -`:                             "reads commands from its input",
		"sh << E\nls\nE":                        "read commands from",
		`sh -c "$x"`:                            "only known when it runs",
		`sudo $x`:                               "only known when it runs",
		`find . -exec $x`:                       "only known when it runs",
		`echo ${!x}`:                            "expansion that can run commands",
		`echo ${x@P}`:                           "expansion that can run commands",
		`alias ls=rm`:                           "changes what later words run",
		`trap x EXIT`:                           "changes what later words run",
		`ls 'a`:                                 "cannot be read",
		`ls )`:                                  "cannot be read",
		`sh -c 'ls ('`:                          "cannot be read",
		"ls \u202e":                             "control or invisible",
		"ls \x1b[1G":                            "control or invisible",
		"ls \u200b":                             "control or invisible",
		"echo \xff":                             "cannot be read",
		"sudo sh -c '" + nested("ls", 12) + "'": "nested too deep",
		"echo $((" + strings.Repeat("(", 120_000): "nested too deep", // parsing it takes a gigabyte
	} {
		v := Command(line, []string{"ls", "sh"}, []string{"shutdown"})
		if v.State != Ask || !v.unsure || !strings.Contains(v.Reason, why) {
			t.Errorf("%q: %+v, want %q", line, v, why)
		}
		if d := Decide(Policy{Mode: ModeAll, Deny: []string{"shutdown"}}, "command", askOf(line)); d.State != Ask {
			t.Errorf("%q with everything allowed: %+v", line, d)
		}
		// Nothing is denied: then there is nothing to be unsure of.
		if v := Command(line, nil, nil); v.unsure {
			t.Errorf("%q without a deny: %+v", line, v)
		}
	}
}

// nested wraps a line in so many shells, each quoting with twice the backslashes.
func nested(line string, depth int) string {
	for range depth {
		line = "eval " + strings.NewReplacer(" ", `\ `, `\`, `\\`).Replace(line)
	}
	return line
}
