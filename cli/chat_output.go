package cli

import (
	"io"
	"sync"
)

// voice is where a chat's process says what is not the chat's own: that a server is lost,
// that a signal came. While a screen is drawn nobody may write beside it.
type chatOutput struct {
	mu  sync.Mutex
	out io.Writer
	say func(text string) // nil while nothing is drawn
}

// Write says a text.
func (v *chatOutput) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.say == nil {
		return v.out.Write(p)
	}
	v.say(string(p))
	return len(p), nil
}

// through lets all be said by another one; nil ends that.
func (v *chatOutput) through(say func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.say = say
}
