//go:build !unix

package roofmt

import "io/fs"

func inodeOf(fs.FileInfo) uint64 { return 0 }
