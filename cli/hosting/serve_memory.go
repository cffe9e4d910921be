package hosting

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryFloor is how much memory a server may hold before the collector runs earlier than
// usual. Runs come in bursts: without the limit, the garbage of a burst stays until as much
// again has been allocated.
const memoryFloor = 320 << 20

// memoryFor is the soft limit for a server of which so many bytes are in use: the floor,
// and where more than that is really needed, room enough that collecting is as rare as
// it would be without a limit.
func memoryFor(live uint64) int64 { return max(memoryFloor, int64(2*live)+64<<20) }

// boundMemory sets the memory limit again and again until ctx ends. A limit that the user
// set (GOMEMLIMIT) takes precedence.
func boundMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	was := debug.SetMemoryLimit(memoryFor(0))
	defer debug.SetMemoryLimit(was)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if metrics.Read(read); read[0].Value.Kind() == metrics.KindUint64 {
			debug.SetMemoryLimit(memoryFor(read[0].Value.Uint64()))
		}
	}
}
