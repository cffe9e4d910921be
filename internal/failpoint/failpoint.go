// Package failpoint kills this process at a named place, so tests and `roost try` can prove what a crash leaves
// behind. The kill is SIGKILL: no deferred function, no buffer and no handler runs.
//
// ROOST_FAILPOINT="name" kills at the first pass of that place, "name:3" at the third. If it is not set, a failpoint
// costs one string comparison.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// Env is the environment variable that arms a failpoint.
const Env = "ROOST_FAILPOINT"

var (
	armed     string
	remaining atomic.Int64
)

func init() {
	name, count, ok := strings.Cut(os.Getenv(Env), ":")
	armed = name
	n := 1
	if ok {
		if v, err := strconv.Atoi(count); err == nil && v > 0 {
			n = v
		}
	}
	remaining.Store(int64(n))
}

// Hit kills the process if the named failpoint is armed and due.
func Hit(name string) {
	if armed == "" || name != armed || remaining.Add(-1) != 0 {
		return
	}
	killSelf()
}
