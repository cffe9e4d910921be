package workspace

import (
	"path/filepath"
	"strings"
)

// namesOf gives the names in a clean path.
func namesOf(path string) []string {
	if path == "." {
		return nil
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}
