package wire_test

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/llm/wire"
)

// Events reads what a provider streams, whole events only.
func ExampleEvents_Next() {
	events := wire.NewEvents(strings.NewReader("event: delta\ndata: {\"a\":1}\n\n: a comment\ndata: two\ndata: lines\n\ndata: cut"))
	for {
		data, err := events.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q\n", data)
	}
	// Output:
	// "{\"a\":1}"
	// "two\nlines"
	// EOF
}
