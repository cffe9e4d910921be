package hosting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// What the settings say of a flag that was not given counts as if it was given.
func TestServeTakesItsSettings(t *testing.T) {
	a, _, _ := clitest.New(t, "ROOST_CORS_ORIGIN=no origin")
	cmd := (&commands{a}).serveCommand()
	cmd.SetArgs([]string{"--listen", "127.0.0.1:0"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := cmd.ExecuteContext(ctx)
	if f, is := errors.AsType[*failure.Failure](err); !is || f.What != "roost serve --cors-origin no origin" {
		t.Errorf("the command ended with %v, want a refusal of the origin in the settings", err)
	}
}
