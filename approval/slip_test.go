package approval

import "testing"

// TestDenyAsksWhatItCannotSee: with a deny rule, what runs other commands or holds program
// text does not run unasked under any mode. Scripts and build tools do.
func TestDenyAsksWhatItCannotSee(t *testing.T) {
	policy := Policy{Mode: ModeAll, Deny: []string{"git push", "rm"}}
	for _, line := range []string{
		"echo push | xargs git", "git -c alias.p=push p", `perl -e 'exec "git","push"'`, `ruby -e 'system "git push"'`, "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
		"gdb -ex 'shell git push'", "vim -c '!git push'", "sed '1e git push' f", "tar --checkpoint-action=exec='git push' -cf a b", "expect -c 'spawn git push'",
		"sqlite3 a '.shell git push'", "rsync -e 'git push' a b", "zip -TT 'git push' a", "env -S'git push'", "GIT_EDITOR='git push' git commit",
		"make -f - << E\nall:\n\tgit push\nE", "make -f- << E\nall:\n\tx\nE", "at now << E\ngit push\nE", "crontab - <<< '* * * * * git push'", "git-push", "git send-pack", "git mine", "git --config-env=a=b log",
		"xargs ls", "env A=1 ls", "sudo ls", "sh -c 'ls'", "bash -lc ls", "python3 -c x", "node -e x", "node --eval=x", "php -r x", "lua -e x", "awk 'BEGIN{system(\"x\")}'", "sed s/a/b/e f", "sed -e '1e x' f",
		"sed -n 'w f' a", "alias p='git push'; p", "psql << E\n\\! git push\nE", "mystery << E\ngit push\nE", "mystery <<< 'git push'", "{ cat; sh; } << E\nx\nE", "PAGER='git push' git log", "LD_PRELOAD=./x ls", "PATH=. ls",
		"git rebase -x 'make' main", "git rebase -qx make main", "git grep -nO./x y", "git clone -qu ./x y", "git bisect run make", "git submodule foreach ls", "find . -exec ls {} +", "fd -x ls", "go test -exec ./x .", "docker run x ls",
		"npm exec x", "npx x", "uv run pytest", "timeout 5 ls", "nice ls", "command ls", "parallel ls", "ssh h ls", "ls\rrm x", "ls\r rm x", "ls # all \\\nrm x", "# \\\nrm x\nls", "if ls; then # a \\\nrm x; fi", "ls | # \\\nrm x", "$\\\n'\\x72m' x", "ls &> f r''m x", "ls &>> f A=1 /bin/rm x", "A=1 &> f rm x", "coproc rm x |& cat", "jobs -x rm x", "hash -p /bin/rm a; a x", "mapfile -c 1 -C 'rm x' < f", "run0 rm x", "debconf rm x", "prove -e rm x", "nerdctl run a rm x", "oc exec a -- rm x", "git config alias.p push", "split --filter=x f", "tar -I x -xf a", "sort --compress=x f", "bash -s x", "python3 /dev/stdin", "deno eval x",
		"test -v 'a[$(rm x)]'", "[ -v 'a[$(rm x)]' ]", "[[ -v 'a[$(rm x)]' ]]", "[[ 'a[$(rm x)]' -eq 1 ]]", "unset 'a[$(rm x)]'", "printf -v 'a[$(rm x)]' x",
		"let 'a[$(rm x)]'", "declare -i 'a=b[$(rm x)]'", "A='b[$(rm x)]'; echo $((A))", `test -v a\[\$\(rm x\)\]`, "test -v 'a['\"\\$\"'(rm x)]'", "test -v $'a[\\x24(rm x)]'",
		"read 'a[`rm x`]' < f", "PS4='$(rm x)'; set -x; ls",
		"bash +x -c 'ls'", "bash -m -c ls", "bash -O extglob -c ls", "bash -o errexit -c ls", "bash -euo pipefail -c ls", "zsh -fc ls", "fish -d all -c ls", "python3 -X dev -c x", "python3 -uW ignore -c x", "python3 -Wignore -c x", "python3 -W $A x", "python3 -i x.py",
		"python3 -m timeit x", "python3 -mtimeit x", "python3 -u -m pdb", "python3 -m $A", "perl -E 'exec \"git\",\"push\"'", "php -B x -f y", "php -d a=b -r x", "ts-node -O {} -e x", "pwsh -w x -c x", "bun -e x", "bun --eval=x", "node -r x y", "ruby -W -e x",
		"python3.12 -c x", "/usr/bin/node20 -e x", "perl5.36 -e x", "Rscript -e x", "R -e x", "cmd.exe /c ls", "cmake -E env ls", "just --command ls", "rails runner x", "crystal eval x", "scp -S ./x a b", "scp -o ProxyCommand=x a b", "svn --diff-cmd ./x diff", "wget -e use_askpass=x y",
		"source <(echo rm x)", ". /dev/stdin", "source $A", "caffeinate -i rm x", "cross-env A=1 rm x", "xcrun rm x", "arch -x86_64 rm x", "hyperfine 'rm x'", "dotenv -- rm x", "concurrently 'rm x'", "nodemon -x 'rm x'", "nodemon --exec 'rm x'", "pixi run rm x", "dotenvx run -- rm x",
		"sed -e p -e '1e x' f", "sed p f -e '1e x'", "sed -es/a/b/e p", "sed --expr='1e x' p", "sed --expression='1e x' p", "sed -n --expression '1e x' p", "sed -ne '1e x' f", "sed -n -- '1e x' f", "sed -f x -e '1e x' f", "sed -e $A f", "sed $A f", "sed -ie '1e x' f", `sed '/a\/,/e rm x #/p' f`, `sed '/[a/s|b]/e rm x #|c|' f`,
	} {
		if d := Decide(policy, "command", askOf(line)); d.State == Allow {
			t.Errorf("%q runs: %+v", line, d)
		}
		if v := Command(line, nil, policy.Deny); v.State == Ask && !v.unsure || v.State == Allow {
			t.Errorf("%q would run under all: %+v", line, v)
		}
	}
	for _, line := range []string{
		"test -v a", "[ -f a ] && ls", `printf '%s\n' "[$(date)]"`, "echo '[$(x)]'", `[ "$(ls)" = "[a]" ]`, "A='x[1]'; ls", "printf '[%s]' $A", "unset 'a[1]'",
		"./script.sh", "sh script.sh", "bash -x script.sh a", "python3 x.py --verbose", "python3 -m pytest -q", "node x.js", "make push", "make -j4", "make -f other.mk", "npm run build", "npm test -- --watch", "go test ./...", "go build -o bin/x .",
		"cargo test", "mvn -q test", "git pull", "git commit -m 'a message'", "git -C d status", "git log -c", "git show HEAD~1", "git diff HEAD^ -- a", "git branch -D x", "cat << E > f\nrm x\nE", "tee f << E\nx\nE", "sed -i s/a/b/g f", "sed -n 1,5p f", "sed -i -e 's|a|b|' f", "sed '/x/d' f", `sed -n '/a\/b/,/\.$/p' f`, "sed -n '/^[a-z]*$/p' f",
		"find . -name x -delete", "tar -xzf a.tgz", "rsync -a a b", "set -e; ls", "export A=1; ls", "A=1 make", "CGO_ENABLED=0 go build", "command -v git", "hash -r", "prove -r t", "mapfile -t a < f", "source venv/bin/activate", ". ./env", "docker ps -a", "for i in a b; do echo $i; done", "curl -s https://x", "ls | grep x > f", "make test &> f", "&> f make test",
		"bash -ex x.sh", "sh -eu x.sh", "python3 -W ignore x.py", "python3 -Xdev -u x.py -c", "python3 -mpytest -q", "python3 --version", "perl -wT x.pl", "ruby -w x.rb", "node --test x.js", "lua -W x.lua", "php -n x.php", "bun run build", "fish x.fish", "tsx x.ts", "python3.12 x.py", "cmake --build build", "cmake -E copy a b", "source a.sh b", "nodemon a.js", "foreman start", "svn diff", "scp -r a b",
		"sed -e p -e '1d' f", "sed -ne 5p f", "sed -E -i.bak 's/a/b/' f", "sed --quiet --expression=p f", "sed -f x.sed f", "sed -e", "sed --version", "sed -n",
	} {
		if d := Decide(policy, "command", askOf(line)); d.State != Allow {
			t.Errorf("%q is %s: %s", line, d.State, d.Reason)
		}
	}
	if d := Decide(Policy{Mode: ModeAll}, "command", askOf("sh -c 'git push'")); d.State != Allow {
		t.Errorf("without a deny rule: %+v", d)
	}
}
