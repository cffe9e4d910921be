package mcptest

import (
	"os"
	"os/signal"
	"syscall"
)

func ignoreSignals() { signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) }
