package pgtest

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Full lets no file of the server grow beyond so many bytes, as a full disk does: 0 takes the limit away. A file of the
// log of writes is 4 MB.
func (c *Cluster) Full(t testing.TB, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if bytes == 0 {
		limit.Cur = unix.RLIM_INFINITY
	}
	main, children, err := c.processes()
	must(t, err)
	must(t, unix.Prlimit(main, unix.RLIMIT_FSIZE, &limit, nil))
	for _, pid := range children {
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
			t.Fatal(err)
		}
	}
}
