//go:build linux || darwin

package term

import (
	"io"
	"os"
)

// dropTyped drops what a terminal holds and nobody has read: also a line that is not
// finished. What is no terminal keeps all.
func dropTyped(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = flushInput(int(f.Fd())) // it is not a terminal
	}
}
