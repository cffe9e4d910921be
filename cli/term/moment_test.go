package term

import (
	"testing"
	"time"
)

// A time that is yet to come is told by its day: it is no age. Clocks that differ by seconds
// are no reason for that.
func TestAgeOf(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for ts, want := range map[int64]string{
		0: "-", -5: "-", 1: "-", 946_684_800_000: "27y", now.UnixMilli(): "0s", now.Add(-time.Hour).UnixMilli(): "1h",
		now.Add(30 * time.Second).UnixMilli(): "now", now.Add(2 * time.Minute).UnixMilli(): "2027-01-15", 1_900_000_000_000: "2030-03-17",
		253_402_300_799_999: "9999-12-31", 253_402_300_800_000: "10000", 9_223_372_036_854_775_807: "292278994",
	} {
		if got := AgeOf(now, ts); got != want {
			t.Errorf("%d: %s, want %s", ts, got, want)
		}
	}
}
