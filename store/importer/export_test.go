package importer

// For tests in importer_test.
const (
	MaxDepth   = maxDepth
	LockName   = lockName
	StagesName = stagesName
)

func MapPath(list []PathMap, path string) (string, bool) { return mapPath(list, path) }

func TakeLock(path string) (func(), error) { return takeLock(path) }
