package store

import (
	"fmt"

	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// vast reports whether a message is too long to be read for a row of the list; see intake.LongMessage. Its place, time
// and kind are known without its bytes, and show has all of it.
func vast(m *task.Message) bool { return m.Stored() > intake.LongMessage }

// titleOfVast stands for the first words of a task that are too long to be read for a title.
func titleOfVast(s *task.State) string {
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		if len(list) > 0 && !list[0].Missing && vast(list[0]) {
			return fmt.Sprintf("(a first message of %d MB)", list[0].Stored()>>20)
		}
	}
	return ""
}
