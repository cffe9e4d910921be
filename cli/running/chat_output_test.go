package running

import (
	"bytes"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/app"
)

// What the process says beside the chat is no part of the drawn rows.
func TestAVoiceIsHeardWhereItBelongs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var said []string
	v := &chatOutput{out: &out}
	a := &app.App{Err: v}
	a.Say("before")
	v.through(func(text string) { said = append(said, text) })
	a.Say("the server is lost")
	a.Warn("and \x1b[2J more")
	a.Stopping()
	v.through(nil)
	a.Say("behind")
	if out.String() != "before\nbehind\n" {
		t.Errorf("beside the chat: %q", out.String())
	}
	if got := strings.Join(said, ""); len(said) != 3 || !strings.Contains(got, "the server is lost") || !strings.Contains(got, "stopping and saving") {
		t.Errorf("in the chat: %q", said)
	}
}
