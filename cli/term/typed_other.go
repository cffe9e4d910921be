//go:build !linux && !darwin

package term

import "io"

func dropTyped(io.Reader) {}
