package running

import (
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

// After the server of a run has died, roost wait keeps waiting: until the run's end is recorded, and some seconds longer.
func TestWhichRunsMayBeContinued(t *testing.T) {
	ago := func(d time.Duration) *string { return api.Date(time.Now().Add(-d).UnixMilli()) }
	for _, c := range []struct {
		name string
		run  api.Run
		want bool
	}{
		{"it has no end yet", api.Run{State: "interrupted", Lost: true}, true},
		{"its end was recorded just now", api.Run{State: "interrupted", Outcome: "interrupted", Lost: true, EndedAt: ago(time.Second)}, true},
		{"its end was recorded a minute ago", api.Run{State: "interrupted", Outcome: "interrupted", Lost: true, EndedAt: ago(time.Minute)}, false},
		{"its server lives", api.Run{State: "interrupted", Outcome: "interrupted", EndedAt: ago(time.Second)}, false},
		{"it works", api.Run{State: "running"}, false},
	} {
		if got := justLost(c.run); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
