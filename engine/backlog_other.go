//go:build !unix

package engine

import (
	"errors"
	"os"
)

// unnamed: an open file has to keep its name here.
func unnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }
