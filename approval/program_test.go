package approval

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestPrograms: with a pattern that names the program, what of it is plain use and what
// could write files or run others. One program a row group; the list is what people
// really put into their patterns.
func TestPrograms(t *testing.T) {
	for _, p := range []struct {
		pattern string
		plain   []string
		asked   []string // although the pattern fits
	}{
		{"ls", []string{
			"ls", "ls -la", "ls --color=auto src", "ls -- -x", "ls 'a file'",
		}, nil},
		{"cat", []string{
			"cat a b", "cat -n a",
		}, nil},
		{"find", []string{
			"find . -name a.go", "find src -type f -maxdepth 2", "find . -newer a -print",
		}, []string{
			"find . -delete", "find . -exec rm x", "find . -execdir rm x", "find . -ok rm x",
			"find . -okdir rm x", "find . -fprint f", "find . -fprintf f x", "find . -fls f",
			"find . -fprint0 f",
		}},
		{"grep", []string{
			"grep -rn foo src", "grep -E 'a|b' f", "grep --include=a.go -r x .",
		}, []string{
			"grep --exec=x y", "grep -r --output=f x",
		}},
		{"rg", []string{
			"rg foo", "rg -n -t go foo src",
		}, []string{
			"rg --pre ./x foo", "rg --pre=./x foo", "rg --hostname-bin=./x foo", "rg -z foo", "rg --pr ./x foo", "rg --search-zip foo",
		}},
		{"sed", []string{
			"sed -n 1,20p a.go", "sed -n 5p a.go", "sed -n '3,$p' a.go",
		}, []string{
			"sed -i s/a/b/ f", "sed s/a/b/ f", "sed -n 'w f' a", "sed -n '1e rm x' a", "sed -n 1p -i f",
			"sed -ni 1p f", "sed --expression=p f", "sed -f x f", "sed -n -e 1p f",
			"sed -n 1,20p --in-place f",
		}},
		{"sort", []string{
			"sort a", "sort -rn -k2 a", "sort -u a b",
		}, []string{
			"sort -o f a", "sort -of a", "sort --output=f a", "sort --outp f a", "sort --compress-program=./x a", "sort -T /x a", "sort -ro f a",
		}},
		{"uniq", []string{
			"uniq a", "uniq -c a",
		}, []string{
			"uniq a b", "uniq -c a b",
		}},
		{"tar", []string{
			"tar -tf a.tar", "tar -tzf a.tgz", "tar tzvf a.tgz",
		}, []string{
			"tar -xf a --to-command=./x", "tar -I ./x -xf a", "tar --use-compress-program=./x -xf a",
			"tar --checkpoint=1 --checkpoint-action=exec=./x -cf a b", "tar -cf a --rsh-command=./x b",
			"tar -F ./x -cf a b", "tar --info-script=./x -cf a b", "tar --checkpoint-act exec=x",
			"tar -cf a --remove-files d", "tar -tf host:a", "tar -tfhost:a", "tar tfhost:a", "tar -t --file=host:a",
		}},
		{"curl", []string{
			"curl https://x", "curl -s -X POST https://x", "curl -I https://x",
		}, []string{
			"curl -o f https://x", "curl -O https://x", "curl -sO https://x", "curl -K f", "curl --config f",
			"curl -T f https://x", "curl -D f https://x", "curl -c f https://x", "curl --output f https://x",
			"curl --trace f https://x", "curl --libcurl f https://x", "curl --dump-header f https://x",
			"curl --output-dir d -O https://x", "curl --etag-save f https://x", "curl --stderr f https://x",
			"curl -w '%output{f}x' https://x", "curl -w%output{f} https://x",
		}},
		{"wget", []string{
			"wget https.html",
		}, []string{
			"wget -O f https://x", "wget -o f https://x", "wget -a f https://x", "wget -P d https://x",
			"wget -i f", "wget -e use_askpass=./x https://x", "wget --use-askpass=./x https://x",
			"wget --output-document=f https://x", "wget --post-file=f https://x",
		}},
		{"git diff", []string{
			"git diff", "git diff --stat HEAD", "git diff -- a.go",
		}, []string{
			"git diff --output=f", "git diff --ext-diff", "git diff --textconv", "git diff --outp=f",
		}},
		{"git log", []string{
			"git log", "git log --oneline -5", "git log --format=%h -- src",
		}, []string{
			"git log --output f", "git log --ext-diff -p",
		}},
		{"git commit", []string{
			"git commit -m 'a message'", "git commit --amend --no-edit",
		}, []string{
			"git commit --template=f", "git commit --gpg-program=./x -m a",
		}},
		{"git fetch", []string{
			"git fetch", "git fetch origin main",
		}, []string{
			"git fetch --upload-pack=./x", "git fetch -u./x", "git fetch ext::./x", "git fetch --upload-p ./x",
		}},
		{"git rebase", []string{
			"git rebase main",
		}, []string{
			"git rebase -x ./x main", "git rebase --exec ./x main", "git rebase -i main", "git rebase -x./x main", "git rebase --strategy=./x main",
		}},
		{"git stash", []string{"git stash", "git stash pop"}, nil},
		{"git mine", nil, []string{"git mine"}}, // an alias may be anything
		{"git difftool", nil, []string{"git difftool", "git difftool --extcmd=./x"}},
		{"npm test", []string{
			"npm test", "npm test --silent",
		}, []string{
			"npm test --script-shell=./x", "npm test --prefix d --node-options=x", "npm test --editor=x",
		}},
		{"npm run build", []string{"npm run build", "npm run build -- x"}, nil},
		{"npm exec", nil, []string{"npm exec x", "npm exec -- x"}},
		{"npm", []string{"npm ci", "npm view x"}, []string{
			"npm", "npm --prefix d run x", "npm x y", "npm init y", "npm config set a b", "npm explore x", "npm create y", "npm set script-shell x",
		}},
		{"yarn", []string{"yarn install"}, []string{"yarn dlx x", "yarn exec x", "yarn"}},
		{"go test", []string{
			"go test ./...", "go test -run TestX -v ./a", "go test -count=1 ./a",
		}, []string{
			"go test -exec ./x ./a", "go test -toolexec=./x ./a", "go test -o f ./a", "go test -C d ./a",
			"go test -coverprofile=f ./a", "go test -cpuprofile f ./a", "go test -overlay f ./a",
			"go test -vettool=./x", "go test -ldflags=-extld=./x ./a", "go test GOFLAGS=x ./a",
			"go test -modfile f ./a",
		}},
		{"go vet", []string{"go vet ./..."}, []string{"go vet -vettool=./x ./..."}},
		{"go generate", nil, []string{"go generate ./..."}},
		{"go env", []string{"go env GOPATH"}, []string{"go env -w A=b", "go env -u A"}},
		{"go tool", nil, []string{"go tool x"}},
		{"gofmt", []string{"gofmt -l ."}, []string{"gofmt -w a.go", "gofmt -lw .", "gofmt -r 'a -> b' a.go"}},
		{"make", []string{
			"make", "make test", "make -j4 test",
		}, []string{
			"make SHELL=./x test", "make -f x", "make -C d", "make --eval=x", "make --makefile=f",
			"make -I d", "make --file f", "make --directory=d", "make A:=x", "make --include-dir=d",
		}},
		{"gcc", []string{"gcc a.c"}, []string{
			"gcc -o f a.c", "gcc -B./x a.c", "gcc -x c f", "gcc -wrapper ./x a.c", "gcc -fplugin=./x.so a.c",
			"gcc -specs=f a.c", "gcc --specs=f a.c", "gcc @f", "gcc -Wl,-o,f a.c",
		}},
		{"python3 x.py", []string{"python3 x.py", "python3 x.py a"}, []string{"python3 x.py -c a"}},
		{"python3 -m pytest", []string{"python3 -m pytest", "python3 -m pytest tests"}, []string{
			"python3 -m pytest --basetemp=d", "python3 -m pytest --rootdir=d -p x --pdbcls=x:y", "python3 -m pytest --junitxml=f",
		}},
		{"python3", nil, []string{
			"python3", "python3 x.py", "python3 -m http.server", "python3 -c x", "python3 -", "python3 --version",
		}},
		{"node", nil, []string{
			"node", "node x.js", "node -e x", "node -p x", "node -r ./x y.js", "node --require ./x y.js", "node --import=./x y.js", "node --loader ./x y.js",
		}},
		{"perl x.pl", []string{"perl x.pl"}, []string{"perl x.pl -e x", "perl x.pl -i"}},
		{"docker ps", []string{"docker ps", "docker ps -a"}, []string{"docker ps -H tcp://x"}},
		{"docker", []string{"docker images"}, []string{
			"docker run x", "docker exec x rm y", "docker cp a b", "docker --config d ps", "docker attach x",
		}},
		{"kubectl", []string{"kubectl get pods"}, []string{
			"kubectl exec x rm", "kubectl run x", "kubectl --kubeconfig=f get pods", "kubectl cp a b",
		}},
		{"tree", []string{"tree -L 2"}, []string{"tree -o f", "tree -L 2 --output=f"}},
		{"date", []string{"date", "date +%F"}, []string{"date -s 1", "date --set=1"}},
		{"hostname", []string{"hostname"}, []string{"hostname -F f", "hostname --file f"}},
		{"jq", []string{"jq . a.json", "jq -r '.a | .b' f"}, []string{"jq -f x a.json"}},
		{"yq", []string{"yq .a f"}, []string{"yq -i .a=1 f", "yq --inplace .a f"}},
		{"prettier", []string{"prettier src"}, []string{
			"prettier -w .", "prettier --write .", "prettier --plugin=./x .", "prettier --config ./x.js .",
		}},
		{"eslint", []string{"eslint src"}, []string{
			"eslint --fix src", "eslint -o f src", "eslint -c ./x.js src", "eslint --rulesdir d src",
			"eslint --resolve-plugins-relative-to d src", "eslint -f ./x.js src",
			"eslint --format=./x.js src", "eslint --parser ./x.js src",
		}},
		{"pytest", []string{"pytest -q tests"}, []string{
			"pytest -p x", "pytest -c f", "pytest --override-ini a=b", "pytest --basetemp d", "pytest -o a=b",
		}},
		{"jest", []string{"jest src"}, []string{
			"jest --config ./x.js", "jest --globalSetup ./x", "jest --testRunner=./x", "jest --updateSnapshot", "jest --reporters ./x", "jest --transform x",
		}},
		{"scp", []string{"scp a b", "scp ./a/b c"}, []string{
			"scp a example.org:b", "scp a me@h:", "scp -t d", "scp -S ./x a b", "scp -o ProxyCommand=x a b", "scp a ../b", "scp a /b",
		}},
		{"rsync", []string{"rsync a b", "rsync src/ ./dst"}, []string{
			"rsync a example.org:b", "rsync h::m b", "rsync a me@h:b", "rsync a ../b", "rsync a b/.git/hooks",
			"rsync -e ./x a b", "rsync --rsh=./x a b", "rsync --rsync-path=x a b", "rsync --log-file=f a b", "rsync -ae ./x a b",
		}},
		{"zip", []string{"zip a.zip d"}, []string{"zip -T -TT ./x a.zip", "zip --unzip-command ./x a.zip"}},
		{"deno test", []string{"deno test"}, []string{"deno test eval --config f"}},
		{"swift", []string{}, []string{"swift -e x"}},
		{"vim", nil, []string{"vim a", "vim -c '!rm x'"}},
		{"less", nil, []string{"less a"}},
		{"awk", nil, []string{"awk '{print}' a", "awk 'BEGIN{system(\"x\")}'"}},
		{"sqlite3", nil, []string{"sqlite3 a.db"}},
		{"python3.12", nil, []string{"python3.12 x.py", "python3.12 -c x"}},
		{"/usr/bin/node20", nil, []string{"/usr/bin/node20 x.js"}},
	} {
		for _, line := range p.plain {
			if v := Command(line, []string{p.pattern}, nil); v.State != Allow {
				t.Errorf("%q does not allow %q: %s", p.pattern, line, v.Reason)
			}
		}
		for _, line := range p.asked {
			v := Command(line, []string{p.pattern}, nil)
			if v.State != Ask || v.Reason == "" || v.Reason == "no pattern allows it" {
				t.Errorf("%q: %q is %+v", p.pattern, line, v)
			}
		}
	}
}

// Deny rules look programs up by their name in lower case.
func TestNamesAreInLowerCase(t *testing.T) {
	names := strings.Fields(table().lists["wrappers"])
	for _, list := range []iter.Seq[string]{maps.Keys(table().interpreters), maps.Keys(table().launchers), maps.Keys(table().runs)} {
		names = slices.AppendSeq(names, list)
	}
	for _, name := range names {
		if low := strings.ToLower(name); low != name {
			t.Errorf("got the name %s in programs.txt, want %s", name, low)
		}
	}
}
