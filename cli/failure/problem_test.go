package failure

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

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

// What a person can do about a file comes first, whether a server or this process could not read it.
func TestAFileThatCannotBeReadIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"file_unreadable", "permission_denied"} {
		f := Of(&client.Problem{Status: 403, Code: code, Suggestions: []string{"ls -l /x", "dmesg"}})
		f.Advise(&cobra.Command{Use: "rewind"}, nil)
		if f.Try != "ls -l /x" {
			t.Errorf("%s: got the advice %q, want the first suggestion", code, f.Try)
		}
	}
}
