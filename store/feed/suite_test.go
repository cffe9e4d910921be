package feed_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/feed/feedtest"
)

// childTask and the others make the test program write lines of a task into the log in a folder.
const (
	childTask  = "ROOST_FEED_TEST_WRITER"
	childLines = "ROOST_FEED_TEST_LINES"
	childDir   = "ROOST_FEED_TEST_DIR"
	childBytes = "ROOST_FEED_TEST_BYTES" // of a segment
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childTask); name != "" {
		bytes, err := strconv.ParseInt(os.Getenv(childBytes), 10, 64)
		if err == nil {
			err = feedtest.Write(context.Background(), in(os.Getenv(childDir)).Small(bytes), name, os.Getenv(childLines))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// in is the log in a folder; its owners are dead.
func in(dir string) *feed.Files {
	return feed.NewFiles(dir, func() int64 { return 7 }, func(context.Context, feed.Task) bool { return false })
}

func TestSuite(t *testing.T) {
	feedtest.Run(t, func(t *testing.T, small bool) feedtest.Backend {
		dir := filepath.Join(t.TempDir(), "feed")
		return feedtest.Backend{
			Server: func(testing.TB) feed.Log {
				if small {
					return in(dir).Small(1) // a line a segment
				}
				return in(dir)
			},
			Delete: func(t testing.TB) {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			},
			Child: func(_ testing.TB, task, lines string) *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childTask+"="+task, childLines+"="+lines, childDir+"="+dir, childBytes+"=16777216")
				cmd.Stderr = os.Stderr
				return cmd
			},
		}
	})
}
