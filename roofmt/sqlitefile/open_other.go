//go:build !unix

package sqlitefile

import "os"

const openFlags = os.O_RDONLY
