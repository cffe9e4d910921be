package engine_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	childMain()
	deskMain()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}
