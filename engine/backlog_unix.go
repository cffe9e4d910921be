//go:build unix

package engine

import (
	"fmt"
	"os"
)

// unnamed makes a file that goes with the last of its handles. The name is taken from
// it at once; a collected stream closes the handle.
func unnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "events-") // 0600
	if err != nil {
		return nil, fmt.Errorf("make a file for events: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("make a file for events: %w", err)
	}
	return f, nil
}
