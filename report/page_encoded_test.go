package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// A page of items that are JSON already has the very bytes that an encoder writes.
func TestPageOfEncoded(t *testing.T) {
	for n := range 4 {
		for _, next := range []string{"", "50"} {
			texts, items := []string{}, []json.RawMessage{}
			for i := range n {
				texts = append(texts, fmt.Sprint("a < b ", i))
				items = append(items, json.RawMessage(fmt.Sprintf(`"a < b %d"`, i)))
			}
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(PageOf(texts, next)); err != nil {
				t.Fatal(err)
			}
			if got, err := PageOfEncoded(items, next); err != nil || string(got) != want.String() {
				t.Errorf("%d items, cursor %q: %s%v, want %s", n, next, got, err, want.String())
			}
		}
	}
	if got, err := PageOfEncoded(nil, `"},{`); err == nil {
		t.Errorf("a cursor that breaks out of its quotes gives %s", got)
	}
}
