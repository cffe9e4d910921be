package checkpoint

import (
	"crypto/sha1"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// blobID is the name that git gives to a content.
func blobID(data []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...)))
}
