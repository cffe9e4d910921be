//go:build !linux && !darwin

package server

// kept returns why a folder cannot store more; this system has no call for that.
func kept(string, uint64) string { return "" }
