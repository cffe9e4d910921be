package term

import (
	"time"

	"github.com/roost-dev/roost/api"
)

// A single key can allow a command for good, and a question may appear in the middle of a word. So a key counts as an
// answer only when the user can have read the question and is not typing: then the question is armed.

// ArmAfter is the time for which a question must be on the screen, and no key may come, before single keys answer it.
const ArmAfter = 500 * time.Millisecond

// Arming decides whether single keys answer a question.
type Arming struct {
	Shown time.Time // when the question appeared on the screen
	Key   time.Time // when the last key came, also before the question; zero = there was none
}

// In returns how long until the question is armed if no key comes; 0 = it is armed.
func (a Arming) In(now time.Time) time.Duration {
	last := a.Shown
	if a.Key.After(last) {
		last = a.Key
	}
	return max(last.Add(ArmAfter).Sub(now), 0)
}

// Takes reports whether a key that is pressed now answers the question. input is the line that the user types: while
// it holds words, a key is part of them.
func (a Arming) Takes(now time.Time, input string) bool { return input == "" && a.In(now) == 0 }

// Choice is a letter that answers a question, or shows more of it.
type Choice struct{ Key, Does string }

// Choices returns the letters for a question; nil when words answer it.
func Choices(q api.QuestionOpened) (list []Choice) {
	switch q.Kind {
	case "approval":
		list = append(list, Choice{"y", "once"})
		if q.Always != "" {
			list = append(list, Choice{"a", "always"})
		}
		more := "diff"
		if q.Command != "" {
			more = "whole command"
		}
		return append(list, Choice{"n", "no (reason)"}, Choice{"d", more}, Choice{"q", "stop"})
	case "damage", "limit":
		return []Choice{{"y", "go on"}, {"n", "do not"}, {"q", "stop"}}
	}
	return nil
}
