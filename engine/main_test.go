package engine_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	childMain()
	deskMain()
	goleak.VerifyTestMain(m)
}
