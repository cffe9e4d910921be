package running

import (
	"io"
	"sync"
)

// chatOutput prints what does not come from the chat itself: that a server is lost, that a
// signal came. While the chat draws a screen, the messages go through the chat.
type chatOutput struct {
	mu  sync.Mutex
	out io.Writer
	say func(text string) // nil while nothing is drawn
}

// Write prints a text.
func (v *chatOutput) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.say == nil {
		return v.out.Write(p)
	}
	v.say(string(p))
	return len(p), nil
}

// through sends all messages to say; nil ends that.
func (v *chatOutput) through(say func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.say = say
}
