package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// block is a block of a page that its readers type into a shell.
var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The blocks of a page that are marked sh are one session of a shell, on a machine where nobody ran Roost before, without
// a key.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the pages are written for a POSIX shell")
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		script := session(string(text))
		if script == "" || strings.Contains(script, "createdb") { // TestTeamPageRuns runs it with a database
			continue
		}
		ran++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			succeeds(t, pageShell(t, script))
		})
	}
	if ran == 0 {
		t.Error("got no block to run, want some in docs/ and README.md")
	}
}

// session is what the blocks of a page say, one after the other; "" without any.
func session(page string) (script string) {
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		script += b[1]
	}
	return script
}

// pageShell is a shell that follows a page's session in a project of a new user, with more variables of the environment.
func pageShell(t *testing.T, script string, more ...string) *exec.Cmd {
	t.Helper()
	home, tmp := t.TempDir(), t.TempDir()
	work := filepath.Join(home, "project")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eux", "-c", script)
	cmd.Dir = work
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "GORACE=" + os.Getenv("GORACE")}, more...)
	return cmd
}

// succeeds runs a shell to its end. What it says goes into a file: what it started may outlive it, and hold a pipe.
func succeeds(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		out, unread := os.ReadFile(log.Name())
		t.Errorf("%v; want that each line of the page's blocks succeeds. They did (%v):\n%s", err, unread, strings.TrimSpace(string(out)))
	}
}
