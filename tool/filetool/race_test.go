//go:build unix

package filetool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
)

// Somebody replaces the file that the tools work on by a link to outside, by a
// pipe, by a folder, and puts it back, all the time. No tool shows or changes
// what lies outside, none hangs, and none fails in a way that ends a run.
func TestToolsOnAFileThatIsNeverTheSame(t *testing.T) {
	env, root := sandbox(t, "d/f", "inside\nneedle\n", ".gitignore", "*.tmp\n")
	outside := filepath.Join(root, "..", "outside")
	fixture.WriteFile(t, outside, "SECRET\nneedle\n")
	name, aside := filepath.Join(root, "d", "f"), filepath.Join(root, "d", "aside.tmp")
	stop := make(chan struct{})
	var meddler sync.WaitGroup
	meddler.Add(1)
	go func() {
		defer meddler.Done()
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			os.RemoveAll(aside)
			switch round % 4 {
			case 0:
				_ = os.Symlink("../../outside", aside)
			case 1:
				_ = syscall.Mkfifo(aside, 0o600)
			case 2:
				os.RemoveAll(name)
				_ = os.Mkdir(name, 0o700)
				_ = os.RemoveAll(name)
				continue
			default:
				_ = os.WriteFile(aside, []byte("inside\nneedle\n"), 0o600)
			}
			_ = os.Rename(aside, name)
		}
	}()
	defer func() { close(stop); meddler.Wait() }()

	in := call("path", "d/f", "content", "written\n", "diff", diffBlock(0, "needle", "thread"), "regex", "needle")
	folder := call("path", "d", "regex", "needle", "recursive", true)
	fine := 0
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && fine < 400; {
		for _, tl := range All() {
			for _, call := range [][]byte{in, folder} {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				p, err := tl.Plan(ctx, env, call)
				if err == nil && !p.Ask().Outside {
					var res tool.Result
					if res, err = p.Run(ctx, nil); err == nil && !res.IsError {
						fine++
					}
					if strings.Contains(res.Text+p.Ask().Text+p.Ask().Diff, "SECRET") {
						t.Fatalf("%s shows what lies outside: %q", tl.Spec().Name, res.Text)
					}
				}
				if ctx.Err() != nil {
					t.Fatalf("%s hangs", tl.Spec().Name)
				}
				cancel()
			}
		}
	}
	if got := fixture.ReadFile(t, outside); got != "SECRET\nneedle\n" {
		t.Errorf("the file outside became %q", got)
	}
	if fine == 0 {
		t.Error("nothing ever went through")
	}
}
