package shell

import (
	"strings"

	"github.com/roost-dev/roost/api"
)

// Word quotes a word so that a shell reads it as one word.
func Word(word string) string {
	if source, id, ok := strings.Cut(word, ":"); ok && api.ValidTaskID(source) && api.ValidTaskID(id) ||
		api.ValidTaskID(strings.Replace(word, "~", "-", 1)) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
