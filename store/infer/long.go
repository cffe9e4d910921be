package infer

import (
	"fmt"

	"github.com/roost-dev/roost/task"
)

// LongMessage is the length in bytes from which on a message is not read for a list: several times that would be in
// memory at once, for each task that is read just then.
const LongMessage = 8 << 20

// TooLong reports whether a message is too long to be read for a row of a list; see LongMessage. Its place, time
// and kind are known without its bytes, and showing the task reads all of it.
func TooLong(m *task.Message) bool { return m.Stored() > LongMessage }

// titleOfLong replaces the title of a task whose first message is too long to be read for one.
func titleOfLong(s *task.State) string {
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		if len(list) > 0 && !list[0].Missing && TooLong(list[0]) {
			return fmt.Sprintf("(a first message of %d MB)", list[0].Stored()>>20)
		}
	}
	return ""
}
