package roofmt

import (
	"fmt"
	"strings"
)

// messageRoom is the longest message, in bytes. Reading one takes several times its length of memory, a model takes
// half of that in a whole request, and no tool can read its own list when one message is eight times as long. A
// longer one is damage: it is reported, the file stays as it is, and the rest of the task is read.
const messageRoom = 64 << 20

// overlong are the messages of a file that were left out because of their length, or because of how many parts they have.
type overlong struct {
	count   int
	longest int64
	crowded int // messages that are short enough, of too many parts
}

// some reports whether any message was left out.
func (o overlong) some() bool { return o.count+o.crowded > 0 }

func (o overlong) String() string {
	var said []string
	switch {
	case o.count == 1:
		said = append(said, fmt.Sprintf("a message of %d MB is left out: one may have %d", o.longest>>20, messageRoom>>20))
	case o.count > 1:
		said = append(said, fmt.Sprintf("%d messages of up to %d MB are left out: one may have %d", o.count, o.longest>>20,
			messageRoom>>20))
	}
	switch {
	case o.crowded == 1:
		said = append(said, "a message is left out: it has more parts than one of its length may have")
	case o.crowded > 1:
		said = append(said, fmt.Sprintf("%d messages are left out: they have more parts than ones of their length may have", o.crowded))
	}
	return strings.Join(said, "; ")
}
