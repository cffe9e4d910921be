//go:build unix

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeGit is a program that stands in for git: a shell script whose first words decide by
// the command in $cmd.
func fakeGit(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "git")
	text := "#!/bin/sh\nfor a; do case $a in ls-files|cat-file) cmd=$a;; --batch) cmd=batch;; --batch-check*) cmd=check;; esac; done\n" + script
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// Whatever git does, a survey works, and nothing is recorded that is not so.
func TestAGitThatMisbehaves(t *testing.T) {
	const id = "56a6051ca2b02b04ef92d5150c9ef600403cb1de" // of "1"
	index := fmt.Sprintf("[ $cmd = ls-files ] && printf '100644 %s 0\\ta\\0'\n", id)
	check := fmt.Sprintf("[ $cmd = check ] && echo %s blob\n", id)
	for _, c := range []struct {
		name, script string
		relied       bool // the content is thought to be git's, until it is asked for
	}{
		{"it fails", "exit 3\n", false},
		{"it is killed", "kill -9 $$\n", false},
		{"it talks nonsense", "cat /dev/null; printf 'what\\0100644 zz 0\\ta\\0100644 0 0\\0\\t\\0'\n", false},
		{"its index names another algorithm's objects", "printf '100644 " + strings.Repeat("ab", 32) + " 0\\ta\\0'\n", false},
		{"its index names a submodule", "[ $cmd = ls-files ] && printf '160000 " + id + " 0\\ta\\0'\n", false},
		{"it has no object", index + "[ $cmd = check ] && echo " + id + " missing\n", false},
		{"it does not say whether", index + "[ $cmd = check ] && exit 1\n", false},
		{"it has a tree of that name", index + "[ $cmd = check ] && echo " + id + " tree\n", false},
		{"the content is gone when it is wanted", index + check + "[ $cmd = batch ] && echo " + id + " missing\n", true},
		{"it gives another content", index + check + "[ $cmd = batch ] && printf '" + id + " blob 1\\n2\\n'\n", true},
		{"it gives another size", index + check + "[ $cmd = batch ] && printf '" + id + " blob 3\\n111\\n'\n", true},
		{"it ends in the middle", index + check + "[ $cmd = batch ] && printf '" + id + " blob 100\\n1'\n", true},
		{"it gives a size that is none", index + check + "[ $cmd = batch ] && printf '" + id + " blob -1\\n1\\n'\n", true},
		{"it gives what nobody asked for", index + check + "[ $cmd = batch ] && printf '" + strings.Repeat("ab", 20) + " blob 1\\n1\\n'\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newBench(t, Options{Git: fakeGit(t, c.script+"exit 0\n")})
			l.write("a", "1")
			l.write("b", "of no repository")
			l.must(os.Mkdir(l.at(".git"), 0o777))
			l.must(os.WriteFile(l.at(".git/index"), []byte("an index"), 0o600))
			got := l.during(func() { l.remove("a"); l.remove("b") })
			want := "1"
			if c.relied {
				want = "(not kept)"
			}
			l.wantChange(got, "a", want, "")
			l.wantChange(got, "b", "of no repository", "")
		})
	}
}

// A git that says nothing and does not end keeps nobody longer than he wants to wait, also
// when what it started holds its output open.
func TestAGitThatHangs(t *testing.T) {
	l := newBench(t, Options{Git: fakeGit(t, "sleep 600 & echo $! >> ${0%/git}/pids; sleep 600\n")})
	l.write("a", "1")
	l.must(os.Mkdir(l.at(".git"), 0o777))
	l.must(os.WriteFile(l.at(".git/index"), []byte("an index"), 0o600))
	t.Cleanup(func() {
		pids, _ := os.ReadFile(filepath.Join(filepath.Dir(l.k.o.Git), "pids"))
		for _, pid := range strings.Fields(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.k.Survey(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// The content that a well-behaved git gives is taken, and asked for once.
func TestAGitIsAskedOnce(t *testing.T) {
	const id = "56a6051ca2b02b04ef92d5150c9ef600403cb1de"
	log := filepath.Join(t.TempDir(), "log")
	script := fmt.Sprintf(`echo $cmd >> %[2]s
case $cmd in
ls-files) printf '100644 %[1]s 0\ta\0100644 %[1]s 0\tsame\0';;
check) sed 's/$/ blob/';;
batch) while read id; do printf '%%s blob 1\n1\n' $id; done;;
esac
`, id, log)
	l := newBench(t, Options{Git: fakeGit(t, script), MaxSurvey: -1})
	l.write("a", "1")
	l.write("same", "1")
	l.must(os.Mkdir(l.at(".git"), 0o777))
	l.must(os.WriteFile(l.at(".git/index"), []byte("an index"), 0o600))
	for _, p := range []string{"a", "same"} {
		l.must(os.Chtimes(l.at(p), farPast, farPast))
	}
	got := l.during(func() { l.remove("a"); l.remove("same") })
	l.wantChange(got, "a", "1", "")
	l.wantChange(got, "same", "1", "")
	said, err := os.ReadFile(log)
	l.must(err)
	// The index is so new that it is read before and after the command.
	if want := "ls-files\ncheck\nls-files\nbatch\n"; string(said) != want {
		t.Errorf("git was asked\n%swant\n%s", said, want)
	}
}
