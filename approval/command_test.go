package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

func TestAllowMatchesOnlyPlainWords(t *testing.T) {
	everything := []string{"git", "git log", "echo", "ls", "cat", "npm test", "find", "sed", "tar", "sort", "go test", "rg", "env", "sudo", "sh", "bash", "xargs", "curl", "python3", "make", "grep", "time", "awk", "*", "test", "head", "uniq", "node", "./run"}
	allowed := []string{
		"git log", "git log -3 --oneline", "git --no-pager log", "ls", "ls -la src", "'ls' -la",
		`"git" "log"`, "npm test", "npm test --silent", "grep -rn 'a b|c' src", "cat a.txt",
		"echo 'a && rm b'",
		"go test ./...", "go test -run TestX ./a", "find . -name 'x' -type f", "sed -n 1,20p a.go",
		"sort a.txt", "rg foo src", "make test", "head -n 3 é.txt", "./run x", "tar -tf a.tar",
		"git commit -m 'a message'", "grep --include=a.go x",
		// Chains and pipes of which each part is allowed, and no file comes of them.
		"ls && ls", "ls | cat", "git log -3 || ls; cat a.txt", "go test ./... 2>&1 | head -n 3", "grep x f > /dev/null && echo found",
		"cat < /dev/null", "ls 2>/dev/null | grep -v a | sort a.txt",
	}
	for _, c := range allowed {
		if v := Command(c, everything, nil); v.State != Allow {
			t.Errorf("%q: got %+v, want v.State = Allow", c, v)
		}
	}
	asked := []string{
		"", " ", "gitx", "gitk", "./git log", "/usr/bin/git log", "GIT log", "git log\n",
		"ls\trm", "ls; rm x", "ls && rm x", "ls | tee f", "ls & ", "ls > f", "ls < f",
		"A=1 ls", "A=1", "! ls",
		"ls $(id)", "ls `id`", "ls $HOME", "ls ${x}", "ls ~", "ls ~/x", "ls *", "ls a?",
		"ls [ab]", "ls {a,b}", "ls a\\ b", "$'ls'", `$"ls"`, `echo "$x"`, `echo "!x"`, "echo !x",
		"ls # c", "(ls)", "{ ls; }", "if ls; then ls; fi", "ls <(id)", "ls <<< x",
		"cat << E\nx\nE",
		"env ls", "sudo ls", "sh -c ls", "bash x", "xargs ls", "time ls", "awk x",
		"find . -delete", "find . -exec ls", "find . -fprint f", "find . -ok ls",
		"sed -i s/a/b/ f", "sed s/a/b/e f", "sed -n 'w f' a", "sed --in-place x",
		"sed -n 1p -i f",
		"git -c a=b log", "git --exec-path=x log", "git -C x log", "git config a b", "git mine",
		"git bisect run x", "git submodule foreach ls", "git grep -Oless x",
		"git grep --open-files x", "git diff --output=f", "git diff --outp=f",
		"git diff --ext-diff", "git rebase -x ls", "git rebase --exec=ls", "git clone ext::sh",
		"git fetch --upload-pack=x y", "git archive -o f HEAD",
		"tar --to-command=x -xf a", "tar -I x -xf a", "tar --checkpoint-action=exec=x a",
		"sort -o f a", "sort --compress-program=x", "sort -ro f", "uniq a b", "rg --pre x y",
		"go test -exec x", "go test -toolexec=x", "go run -exec x .", "go generate",
		"go test -o f",
		"curl -o f x", "curl -sO x", "curl -K f", "python3 -c x", "python3", "python3 x.py",
		"node -e x", "make SHELL=x test", "make -f x test", "make --eval=x", "npm exec x",
		"npm test --script-shell=x",
		"echo \u202e x", "echo a\u200bb", "echo a\u00a0b", "echo \x1b[0m", "echo \xff",
		"echo a\x00b", "l\u200bs", "echo \u3164", "ls 'a", "ls )", "function f { ls; }",
		"alias ls=rm", "eval ls", "ls |& cat", "*", "test x = y > z", "=ls", "ls ^a",
	}
	for _, c := range asked {
		if v := Command(c, everything, nil); v.State != Ask {
			t.Errorf("%q: got %+v, want v.State = Ask", c, v)
		}
	}
}

// An expansion has no text that is known before the line runs.
func TestAnExpansionIsNoLiteral(t *testing.T) {
	for _, parts := range [][]syntax.WordPart{
		{&syntax.ParamExp{}},
		{&syntax.Lit{Value: "a"}, &syntax.CmdSubst{}},
		{&syntax.DblQuoted{Parts: []syntax.WordPart{&syntax.ArithmExp{}}}},
	} {
		if got, ok := literal(parts, false); got != "" || ok {
			t.Errorf("%T: got %q, %t, want no text", parts[len(parts)-1], got, ok)
		}
	}
}

func TestDenyMatchesAnywhere(t *testing.T) {
	deny := []string{"rm", "git push", "curl -X"}
	denied := []string{
		"rm", "rm -rf x", "ls; rm x", "ls && rm x", "ls | rm x", "ls || rm x", "rm x &",
		"ls\nrm x", "(rm x)", "{ rm x; }", "if true; then rm x; fi",
		"for i in a; do rm $i; done", "f() { rm x; }; f", "echo $(rm x)", "echo `rm x`",
		"echo \"$(rm x)\"", "cat <(rm x)", "echo ${a:-$(rm x)}", "echo $((`rm x`))",
		"'rm' x", "r\\m x", "r''m x", "\"rm\" x", "$'rm' x", "$'\\x72m' x", "/bin/rm x",
		"./../bin/rm x", "RM x", "A=1 rm x", "> f rm x", "rm x > f", "! rm x", "env rm x",
		"env A=1 rm x", "sudo -u root rm x", "nohup rm x", "time rm x", "time -- rm x |& cat", "timeout 5 rm x",
		"echo x | xargs rm", "xargs -n1 -I{} rm {}",
		"sh -c 'rm x'", "bash -lc 'ls; rm x'", "sh -c \"sh -c 'rm x'\"", "eval 'rm x'",
		"eval rm x", "find . -exec rm {} ;", "find . -exec sh -c 'rm x' ;", "env -S 'rm x'",
		"command rm x", "exec rm x", "builtin rm", "ssh host rm x", "ssh host 'ls; rm x'",
		"watch 'rm x'", "time sudo nice rm x", "cat << E\n$(rm x)\nE", "x=$(rm x)",
		"coproc rm x", "[[ -n $(rm x) ]]",
		"git push", "git push origin", "git -C d push", "git --no-pager push", "git -c a=b push",
		"git --git-dir=x push", "git --git-dir x push", "git submodule foreach git push",
		"git rebase --exec 'git push' x", "curl -X POST u", "curl -s -X POST u",
		"curl -sX POST u", "docker run x rm y", "npm exec rm",
	}
	for _, c := range denied {
		v := Command(c, []string{"rm", "git push", "ls"}, deny)
		if v.State != Deny {
			t.Errorf("%q: got %+v, want v.State = Deny", c, v)
		}
		if v.State == Deny && v.rule(Deny) == "" {
			t.Errorf("%q: no rule in %+v", c, v)
		}
	}
	unsure := []string{
		"$x y", "$(echo rm) x", "r${m}m x", "/bin/r? x", "{rm,x}", "git $x", "ls 'a",
		"echo 'rm x' | sh", "sh < f", "sh << E\nrm x\nE", "eval $x", "eval \"$x\"",
		"sh -c \"$x\"", "xargs $x", "alias ls=rm; ls", "trap x EXIT", "echo ${x@P}",
		"echo ${!x}", "env $x", "find . -exec $x", "ls \u202e", "ls \x1b", "A=$x make",
		"A+=1 make", "A=(1) make",
	}
	for _, c := range unsure {
		if v := Command(c, []string{"ls"}, append(deny, "A=1 make")); v.State != Ask || !v.unsure {
			t.Errorf("%q: got %+v, want v.State = Ask and v.unsure", c, v)
		}
	}
	fine := []string{"ls", "ls -la", "echo rm", "git pull", "grep -rn 'git push' .", "ls; cat f | sort > g", "for i in *; do echo $i; done", "cat *.go", "curl u", "find . -name rm", "echo \"$x\""}
	for _, c := range fine {
		if v := Command(c, nil, deny); v.State != Ask || v.unsure {
			t.Errorf("%q: got %+v, want v.State = Ask and not v.unsure", c, v)
		}
	}
	for _, c := range []string{"ls", "x | y", "export A=1", "A=1", "ls 'a"} {
		if v := Command(c, []string{"ls"}, []string{"*"}); v.State != Deny {
			t.Errorf("%q with *: %+v", c, v)
		}
	}
	for _, tt := range []struct {
		p, c string
		want State
	}{
		{"A=1 make", "A=1 make", Deny}, {"A=1 make", "B=2 A=1 make x", Deny}, {"A=1 make", "ls | A='1' make", Deny}, {"A=1 make", "env A=1 make", Deny}, {"A=1 make", "sh -c 'A=1 make'", Deny},
		{"A=1 make", "A=2 make", Ask}, {"A=1 make", "make", Ask}, {"A=1 make", "A=1 ls", Ask}, {"A=1 make", "A=1", Ask}, {"A=1", "A=1", Deny}, {"A=1", "A=1 ls", Deny}, {"A=1", "B=1", Ask},
		{"rm -rf", "rm -fr x", Deny}, {"rm -rf", "rm -r -f x", Deny}, {"rm -rf", "rm x -rf", Deny}, {"rm -rf", "rm -r x", Ask}, {"git push --force", "git push -u --force", Deny}, {"", "ls", Ask},
		{"git push --force", "git push origin main --force", Deny}, {"git reset --hard", "git reset HEAD --hard", Deny}, {"x --a=b", "x y --a=b", Deny}, {"x --a", "x y --a=b", Deny}, {"x --a", "x y --ab", Ask},
		{"git push --force", "git --force push", Ask}, {"git push --force x", "git push x --force", Deny}, {"git push --force x", "git push y --force", Ask}, {"x -", "x -", Deny}, {"x -", "x y -", Deny}, {"x -", "x -y", Ask},
	} {
		if v := Command(tt.c, nil, []string{tt.p}); v.State != tt.want {
			t.Errorf("%q against %q: %+v", tt.c, tt.p, v)
		}
	}
	for _, tt := range [][2]string{{"rm -rf", "rm a $x"}, {"x --a", "x b $y"}} {
		if v := Command(tt[1], nil, tt[:1]); v.State != Ask || !v.unsure {
			t.Errorf("%q against %q: got %+v, want v.State = Ask and v.unsure", tt[1], tt[0], v)
		}
	}
}

func TestHostileLinesTakeNoTime(t *testing.T) {
	start := time.Now()
	for _, c := range []string{"git" + strings.Repeat(" -a", 20000) + " x", strings.Repeat("$(", 3000), strings.Repeat("env ", 3000), strings.Repeat("sh -c 'x y' ", 2000)} {
		Command(c, []string{"git"}, []string{"git push --force", "rm"})
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
}

func TestPattern(t *testing.T) {
	for line, want := range map[string]string{
		"python3.12 x.py": "python3.12 x.py", "python3.12 -c x": "",
		"git log -3": "git log", "ls -la": "ls", "npm run build -- x": "npm run build", "go test ./...": "go test", "rm -rf x": "", "rm x": "rm", "ls; rm x": "", "sudo ls": "", "git": "", "git -c a=b log": "", "python3 x.py": "python3 x.py", "": "", "find . -delete": "", "cat 'a b'": "cat",
	} {
		if got := Pattern(line); got != want {
			t.Errorf("Pattern(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestVerdictJSON(t *testing.T) {
	got, err := json.Marshal(Command("ls | rm x", []string{"ls"}, []string{"rm"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"decision":"deny","parts":[{"command":"ls","rule":"","decision":"ask"},{"command":"rm x","rule":"rm","decision":"deny"}],"reason":"the pattern \"rm\" denies it"}`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

// An allowed line stays one when it is read by someone else: no allowed line may
// hold a character that starts shell syntax outside quotes.
func TestAllowedLinesHoldNoSyntax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := "echo " + rapid.StringOf(rapid.SampledFrom([]rune("ab '\"\\$`;|&<>(){}[]*?~!#=%\n\t-x\u202e"))).Draw(t, "line")
		if Command(line, []string{"echo"}, nil).State != Allow {
			return
		}
		quote := rune(0)
		for i, r := range line {
			switch {
			case quote == 0 && r == '~' && strings.ContainsRune("abx~", rune(line[i-1])): // an ancestor, as in HEAD~1
			case quote != 0:
				if r == quote {
					quote = 0
				} else if quote == '"' && strings.ContainsRune("$`\\!", r) {
					t.Fatalf("%q was allowed", line)
				}
			case r == '\'' || r == '"':
				quote = r
			case strings.ContainsRune("\\$`;|&<>(){}[]*?~!#\n\t\u202e", r):
				t.Fatalf("%q was allowed", line)
			}
		}
		if quote != 0 {
			t.Fatalf("%q was allowed", line)
		}
	})
}

func FuzzCommand(f *testing.F) {
	f.Add("git log; rm x", "git log", "rm")
	f.Fuzz(func(t *testing.T, line, allow, deny string) {
		v := Command(line, []string{allow}, []string{deny})
		if v.State == Allow && strings.ContainsAny(line, "\n\x1b$`\\") && !strings.Contains(line, "'") {
			t.Errorf("%q was allowed by %q", line, allow)
		}
		Pattern(line)
	})
}

func ExampleCommand() {
	v := Command("git status && git push", []string{"git status"}, []string{"git push"})
	fmt.Println(v.State, v.Reason)
	// Output: deny the pattern "git push" denies it
}
