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
		blocks := block.FindAllStringSubmatch(string(text), -1)
		ran += len(blocks)
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			home, tmp := t.TempDir(), t.TempDir()
			work := filepath.Join(home, "project")
			if err := os.Mkdir(work, 0o700); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, b := range blocks {
				all.WriteString(b[1])
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-eux", "-c", all.String())
			cmd.Dir = work
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "GORACE=" + os.Getenv("GORACE")}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v; want that each line of the page's blocks succeeds. They did:\n%s", err, strings.TrimSpace(string(out)))
			}
		})
	}
	if ran == 0 {
		t.Error("got no block to run, want some in docs/ and README.md")
	}
}
