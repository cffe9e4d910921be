package filetool

import "github.com/roost-dev/roost/tool"

// All gives every tool of this package, in the order they are offered.
func All() []tool.Tool {
	return []tool.Tool{ApplyDiff(), ApplyPatch(), ListFiles(), ReadFile(), SearchFiles(), WriteToFile(), Edit(), EditFile(),
		SearchReplace()}
}
