package agent

import "testing"

// WatchFrom has files watched from so many known ones on, for one test.
func WatchFrom(t *testing.T, n int) {
	t.Helper()
	was := watchFrom
	watchFrom = n
	t.Cleanup(func() { watchFrom = was })
}
