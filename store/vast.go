package store

import (
	"fmt"

	"github.com/roost-dev/roost/task"
)

// vastFrom is from which length on, in bytes, a message is not read for what a row of the list
// derives from messages: several times that would be in memory at once, for each task that is
// read just then. Its place, time and kind are known all the same, and show has all of it.
const vastFrom = 8 << 20

func vast(m *task.Message) bool { return m.Stored() > vastFrom }

// titleOfVast stands for the first words of a task that are too long to be read for a title.
func titleOfVast(s *task.State) string {
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		if len(list) > 0 && !list[0].Missing && vast(list[0]) {
			return fmt.Sprintf("(a first message of %d MB)", list[0].Stored()>>20)
		}
	}
	return ""
}
