//go:build unix

package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/running"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// gaps is a way to a server on which answers get lost before they arrive.
type gaps struct{ left atomic.Int32 }

func (g *gaps) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/answer") && g.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Who follows a run over a server's restart is asked over it, too: an answer that did not
// arrive does not end following, and its question is asked again.
func TestAnAnswerThatDoesNotArriveIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	_, ask := w.ids()
	token, err := os.ReadFile(filepath.Join(w.dir, farRoot, "server", "token"))
	if err != nil {
		t.Fatal(err)
	}
	way := &gaps{}
	way.left.Store(1)
	c, err := client.New(w.url, client.Options{Token: strings.TrimSpace(string(token)), HTTP: &http.Client{Transport: way}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, _, _ := clitest.New(t)
	keys, typed := io.Pipe()
	defer typed.Close()
	var out, shown safeBuffer
	a.In, a.Out, a.Err = keys, &out, &shown
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- running.Attach(ctx, a, c, ask, true) }()
	for n := 1; n <= 2; n++ {
		for strings.Count(shown.String(), "your own words") < n {
			select {
			case err := <-done:
				t.Fatalf("it ended before question %d: %v\n%s", n, err, shown.String())
			case <-time.After(5 * time.Millisecond):
			}
		}
		if _, err := io.WriteString(typed, "blue\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil || out.String() != "coloured\n" {
		t.Errorf("%v; it gives %q and shows\n%s", err, out.String(), shown.String())
	}
	if !strings.Contains(shown.String(), "the answer was not taken: reach the server") {
		t.Errorf("it does not say why it asks again:\n%s", shown.String())
	}
}

// A server names a mode that is not there as this process does: once, with where to look.
func TestAModeThatIsNotThereAtAServer(t *testing.T) {
	t.Parallel()
	const why = `there is no mode "x"; there are code, ask`
	f := failure.Of(&client.Problem{Status: 422, Code: "unknown_mode", Title: "There is no such mode", Detail: why, Errors: []api.Wrong{{Parameter: "/mode", Detail: why}}})
	if f.Exit != failure.ExitUsage || f.Why != why || f.Try != "roost modes" {
		t.Errorf("got %+v, want f.Exit = failure.ExitUsage and f.Why = why and f.Try = \"roost modes\"", f)
	}
}
