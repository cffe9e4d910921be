package job_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

var program string

func TestMain(m *testing.M) {
	mcptest.Main()
	dir, err := os.MkdirTemp("", "roost-job-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = os.Getenv("ROOST_TEST_PROGRAM")
	if program == "" {
		program = filepath.Join(dir, "roost")
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "github.com/roost-dev/roost/cmd/roost")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build roost: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// shortDir is a scratch folder whose name leaves room for the processes' sockets, as that
// of a user's has: the name of a test does not decide whether there are any.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-ride-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ride is the job from its first process to its end, judged, and the workspace then.
func ride(t *testing.T, provider string, kills int, seed uint64) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	begun := time.Now()
	r, err := job.NewRide(program, shortDir(t), provider, job.Whole(), seed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(ctx, kills); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := r.Judge(ctx); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	tree, err := job.Tree(r.Bench.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	faults, long, _ := r.Model.Met()
	t.Logf("%s, seed %d: %d processes, %d killed, %d stopped, %d answers, faults %v, %d too long, unknown %v, %d events printed, %s",
		provider, seed, r.Rounds, r.Kills, r.Stops, r.Answers, faults, long, r.Unknown(), r.Durable, time.Since(begun).Round(time.Millisecond))
	if kills == 0 {
		for _, f := range []job.Fault{job.RateLimited, job.Quota, job.Overloaded, job.Cut, job.Broken, job.Silent} {
			if faults[f] == 0 {
				t.Errorf("no request met the fault %q", f)
			}
		}
		if truncated := len(r.Looks[r.Main].Events("history.truncated")); long == 0 || truncated == 0 || r.Kills != 1 || r.Answers != len(r.Model.Job.Says) {
			t.Errorf("%d requests too long, %d truncations, %d kills, %d answers", long, truncated, r.Kills, r.Answers)
		}
	}
	return tree
}

// kills are those of each provider: a few, so that nobody waits, or ROOST_TEST_JOB.
func kills(t *testing.T) int {
	t.Helper()
	given := os.Getenv("ROOST_TEST_JOB")
	if given == "" {
		return 6
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("ROOST_TEST_JOB: %v", err)
	}
	return n
}

// TestJob: the job ends with the same bytes in the workspace, whoever plays it, and
// however often it is killed. The first ride is killed once, where it would wait for a
// quota for ten minutes.
func TestJob(t *testing.T) {
	n, seed, providers := kills(t), uint64(time.Now().UnixNano()), job.Providers
	if testing.Short() {
		providers = nil // the race detector sees the test's side only, and that is the same for all
	}
	trees := make([]string, 1+len(job.Providers))
	t.Run("rides", func(t *testing.T) {
		t.Run("unkilled", func(t *testing.T) {
			t.Parallel()
			trees[0] = ride(t, "anthropic", 0, seed)
		})
		for i, provider := range providers {
			t.Run(provider, func(t *testing.T) {
				t.Parallel()
				trees[i+1] = ride(t, provider, n, seed)
			})
		}
	})
	for i, provider := range providers {
		if d := cmp.Diff(trees[0], trees[i+1]); d != "" {
			t.Errorf("%s, seed %d: -unkilled +killed\n%s", provider, seed, d)
		}
	}
	for _, want := range []string{
		"== docs/renamed.md -rw------- 17 bytes\na name\nthat came\n",
		"== log/marks.txt -rw------- 12 bytes\nmarked once\n",
		"== log/left.txt -rw-r--r-- 24 bytes\nleft builds\nleft checks\n",
		"step 8 builds\nstep 8 checks\nstep 28 leaves one behind\n",
		"func Edge(w, h int) int {\n\treturn 2 * (w + h)\n}",
		"== notes/second.md -rw-r--r-- 18 bytes\nalpha\ngamma\nalpha\n",
	} {
		if !strings.Contains(trees[0], want) {
			t.Errorf("the workspace lacks %q:\n%s", want, trees[0])
		}
	}
}
