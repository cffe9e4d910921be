package hosting

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

func TestMemoryLimitLeavesRoom(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int64{0: memoryFloor, 100 << 20: memoryFloor, 128 << 20: memoryFloor, 300 << 20: 664 << 20} {
		if got := memoryFor(live); got != want {
			t.Errorf("%d in use: a limit of %d, want %d", live, got, want)
		}
	}
}

func TestServerText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := api.Server{PID: 7, URL: "http://x\x1b[31m", StartedAt: "2026-01-02T03:04:00.000Z", Version: "v1", Recovery: "failed", Draining: true, Runs: api.Load{Running: 1, Waiting: 2, Queued: 3}, Limits: api.Bounds{MaxRuns: 8}}
	got := serverText(s, now)
	for _, want := range []string{"process 7", "1 at work of at most 8, 2 waiting for a person, 3 queued", "starts no more runs", "earlier server left: failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("a server's words reach the terminal raw: %q", got)
	}
	if got := serverText(api.Server{Stopping: true}, now); !strings.Contains(got, "a process with a socket") || !strings.Contains(got, "it is stopping") {
		t.Error(got)
	}
}
