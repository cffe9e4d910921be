package term

import (
	"strconv"
	"time"
)

// apart is how far the clocks of two machines may lie apart before a time counts as future.
const apart = time.Minute

// AgeOf writes how long ago a time in Unix milliseconds was, as Age does; "-" for none. For a time in the future it
// writes the day, or the year where a day would not be ten columns wide: a task that "changed in 2040" comes from a
// clock that was wrong, and "now" would hide that.
func AgeOf(now time.Time, ts int64) string {
	if ts <= 0 {
		return "-"
	}
	if at := time.UnixMilli(ts).UTC(); at.Sub(now) > apart || at.Year() > 9999 {
		if at.Year() > 9999 {
			return strconv.Itoa(at.Year())
		}
		return at.Format("2006-01-02")
	}
	const most = 1 << 43 // some centuries; more milliseconds are no time.Duration
	return Age(time.Duration(min(max(now.UnixMilli()-ts, -1), most)) * time.Millisecond)
}
