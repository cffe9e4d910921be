package api_test

import (
	"testing"

	"github.com/roost-dev/roost/api"
)

// Millis reads what Stamp writes, and passes over times that are not known.
func TestMillis(t *testing.T) {
	t.Parallel()
	at, wrong := api.Stamp(1_770_000_000_123), "soon"
	for want, stamps := range map[int64][]*string{
		1_770_000_000_123: {nil, &wrong, &at, nil},
		0:                 {nil, &wrong},
	} {
		if got := api.Millis(stamps...); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if got := api.Millis(); got != 0 {
		t.Errorf("got %d of no time", got)
	}
}
