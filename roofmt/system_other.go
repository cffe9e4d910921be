//go:build !unix

package roofmt

import (
	"io/fs"
	"os"
)

func inodeOf(fs.FileInfo) uint64 { return 0 }

const openFlags = os.O_RDONLY
