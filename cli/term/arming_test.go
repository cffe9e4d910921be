package term

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

func TestArming(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }
	never := time.Time{}
	tests := []struct {
		name       string
		shown, key time.Time
		now        time.Time
		input      string
		in         time.Duration
		takes      bool
	}{
		{"just shown", at(0), never, at(0), "", ArmAfter, false},
		{"nearly", at(0), never, at(499), "", time.Millisecond, false},
		{"armed", at(0), never, at(500), "", 0, true},
		{"long ago", at(0), never, at(60_000), "", 0, true},
		{"a key long before the question", at(0), at(-9_000), at(500), "", 0, true},
		{"a key right before the question", at(0), at(-1), at(499), "", time.Millisecond, false},
		{"typing goes on", at(0), at(480), at(520), "", 460 * time.Millisecond, false},
		{"typing has ended", at(0), at(480), at(980), "", 0, true},
		{"words in the line", at(0), never, at(60_000), "and y", 0, false},
		{"a blank in the line", at(0), never, at(60_000), " ", 0, false},
		{"the clock went back", at(0), never, at(-9_000), "", 9*time.Second + ArmAfter, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := Arming{Shown: tt.shown, Key: tt.key}
			if got := a.In(tt.now); got != tt.in {
				t.Errorf("In = %v, want %v", got, tt.in)
			}
			if got := a.Takes(tt.now, tt.input); got != tt.takes {
				t.Errorf("Takes = %t, want %t", got, tt.takes)
			}
		})
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		q    api.QuestionOpened
		want string
	}{
		{"a file", api.QuestionOpened{Kind: "approval", Diff: "+a", Always: "all writes"}, "  y once, a always, n no (reason), d diff, q stop"},
		{"a command", api.QuestionOpened{Kind: "approval", Command: "make", Always: "`make` commands"}, "  y once, a always, n no (reason), d whole command, q stop"},
		{"no pattern can be kept", api.QuestionOpened{Kind: "approval", Command: "a && b"}, "  y once, n no (reason), d whole command, q stop"},
		{"a limit", api.QuestionOpened{Kind: "limit"}, "  y go on, n do not, q stop"},
	}
	for _, tt := range tests {
		if got := lineOf(Choices(tt.q)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if diff := cmp.Diff([]Choice(nil), Choices(api.QuestionOpened{Kind: "followup"})); diff != "" {
		t.Error("a question that wants words has letters:", diff)
	}
}
