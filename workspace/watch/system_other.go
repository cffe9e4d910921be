//go:build !linux

package watch

import "errors"

// newSystem covers nothing. kqueue needs a handle for each file; Windows reports late, and gives no sign that all
// reports have come.
func newSystem() system { return nothing{} }

type nothing struct{}

func (nothing) open() error                     { return errors.ErrUnsupported }
func (nothing) add(string, bool) (int32, error) { return 0, errors.ErrUnsupported }
func (nothing) remove(int32)                    {}
func (nothing) read(func(event)) error          { return nil }
func (nothing) close()                          {}

func localFiles(string) (bool, error) { return false, nil }
