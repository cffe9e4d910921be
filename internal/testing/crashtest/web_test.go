//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// A run is killed while a site still writes its page, or before the result is on the disk. The call is neither lost nor
// doubled: the resume asks the site once more, as it does for each tool that only reads, and records one result.
func TestKilledDuringAFetch(t *testing.T) {
	for _, r := range []struct {
		name, fail string // "" = killed from outside, in the middle of the page
		requests   int32
	}{
		{"before the request", "tool.started:1", 1},
		{"in the middle of the page", "", 2},
		{"after the page, no result", "tool.ran:1", 2},
		{"result committed, not on the disk", "tool.finished:1", 2},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var requests atomic.Int32
			half := make(chan struct{})
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				if n := requests.Add(1); n == 1 && r.fail == "" {
					fmt.Fprintln(w, "half of the page")
					_ = http.NewResponseController(w).Flush()
					close(half)
					<-q.Context().Done() // the program is gone
					return
				}
				fmt.Fprintln(w, "the whole page")
			}))
			defer site.Close()
			b := newBench(t, "script", []crashtest.Turn{
				{Text: "I look there.", Calls: []crashtest.Call{{Name: "web_fetch", Input: map[string]any{"url": site.URL + "/page", "prompt": nil}}}},
				crashtest.Complete("All is done."),
			})
			dir := filepath.Join(b.Dir, "home", ".config", "roost")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			settings := fmt.Sprintf("[web]\nprivate_hosts = [%q]\n", strings.TrimPrefix(site.URL, "http://"))
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(append([]string{"run", "--approve", "all"}, b.Model...), "-C", b.Workspace, "the words")
			first, err := b.RunUntil(ctx, r.fail, half, args...)
			if err != nil || !first.Killed {
				t.Fatalf("got %+v, %v, want a killed run", first, err)
			}
			ids, err := b.Tasks()
			if err != nil || len(ids) != 1 {
				t.Fatalf("got the tasks %v, %v, want one", ids, err)
			}
			before := look(ctx, t, b, ids[0])
			if len(before.Calls) != 1 || before.Calls[0].Finished != nil {
				t.Fatalf("got the calls %+v after the kill, want one without an outcome", before.Calls)
			}
			if last := start(ctx, t, b, "", "resume", ids[0], "--yes"); last.Code != 0 {
				t.Fatalf("resume: %d: %s", last.Code, last.Errors)
			}
			after := look(ctx, t, b, ids[0])
			for _, err := range []error{crashtest.CheckHistories(after), after.CheckFiles()} {
				if err != nil {
					t.Error(err)
				}
			}
			doctor(ctx, t, b)
			if got := requests.Load(); got != r.requests {
				t.Errorf("the site got %d requests, want %d", got, r.requests)
			}
			if c := after.Calls[0]; len(after.Calls) != 2 || c.Name != "web_fetch" || c.Finished == nil || c.Finished.Outcome != "ok" {
				t.Errorf("got the calls %+v, want the fetch once, with the outcome ok, and the end", after.Calls)
			}
			told := fmt.Sprintf("%s", after.API)
			if got := strings.Count(told, "the whole page"); got != 1 || strings.Contains(told, "half of the page") || after.Status != "completed" {
				t.Errorf("the model got the page %d times, want once and nothing of the half; status %s: %s", got, after.Status, told)
			}
		})
	}
}
