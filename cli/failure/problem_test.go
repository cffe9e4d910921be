package failure

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/client"
)

// A server that drains, stops or has too much to do is busy: the same command is right later,
// and what can be done about it is said.
func TestABusyServerIsNotAFailure(t *testing.T) {
	t.Parallel()
	for code, try := range map[string]string{"draining": "roost server status", "queue_full": "", "stopping": ""} {
		p := &client.Problem{Status: 503, Code: code, Title: "No new runs are started", Retryable: true}
		if try != "" {
			p.Suggestions = []string{try, "roost server drain --off"}
		}
		f := failureOfProblem(p)
		if f.Exit != ExitBusy || !f.Retryable || !strings.HasPrefix(f.Try, try) || f.Code != code {
			t.Errorf("%s: got %+v, want f.Exit = ExitBusy and f.Retryable and strings.HasPrefix(f.Try, try) and f.Code = code",
				code, f)
		}
	}
	if f := failureOfProblem(&client.Problem{Status: 503, Code: "read_only"}); f.Exit != ExitFailed {
		t.Errorf("a server that only reads: %+v", f)
	}
}
