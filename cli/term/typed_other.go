//go:build !linux && !darwin

package term

import "io"

// keys is empty: on this system a terminal cannot report waiting input.
type keys struct{}

func terminal(io.Reader) *keys { return nil }

func (*keys) wait() {}

func (*keys) has() bool { return true }

func dropTyped(io.Reader) {}

func keyMode(io.Reader) (restore func(), err error) { return nil, errNoKeys }

// Silence does nothing here: the read of the key turns the echo off.
func Silence(io.Reader) (restore func()) { return func() {} }
