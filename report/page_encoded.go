package report

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PageOfEncoded is the JSON of PageOf for items that are JSON already, with a line break behind it as an encoder writes
// it. It does not parse the items.
func PageOfEncoded(items []json.RawMessage, next string) ([]byte, error) {
	size := len(`{"items":[],"next_cursor":null}`) + 8*len(next) + 1
	for _, item := range items {
		size += len(item) + 1
	}
	out := append(make([]byte, 0, size), `{"items":[`...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, `],"next_cursor":`...)
	if next == "" {
		return append(out, "null}\n"...), nil
	}
	if strings.ContainsFunc(next, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) {
		return nil, fmt.Errorf("write a page: its cursor %q needs quoting", next)
	}
	return append(append(append(out, '"'), next...), "\"}\n"...), nil
}
