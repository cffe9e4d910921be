package importer

// For tests in importer_test.
const MaxDepth = maxDepth

func MapPath(list []PathMap, path string) (string, bool) { return mapPath(list, path) }
