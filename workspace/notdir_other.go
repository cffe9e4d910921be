//go:build !unix

package workspace

// Elsewhere a path through a file is reported as not existing.
func isNotDir(error) bool { return false }
