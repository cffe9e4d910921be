package importer

import "os"

// For tests in importer_test.
const (
	MaxDepth   = maxDepth
	LockName   = lockName
	StagesName = stagesName
)

func MapPath(list []PathMap, path string) (string, bool) { return mapPath(list, path) }

func TakeLock(root string) (*os.File, error) { return takeLock(root) }
