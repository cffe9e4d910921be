package report

import (
	"strconv"
	"strings"
	"time"
)

// Moment reads a time that a user wrote, in Unix milliseconds: 2026-01-31, RFC 3339, or an age such as 7d or 2h before
// now. A time without a zone is local. An age of more than ten thousand years is refused.
func Moment(text string, now time.Time) (int64, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UnixMilli(), true
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 10_000*366 {
			return now.AddDate(0, 0, -n).UnixMilli(), true
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d).UnixMilli(), true
	}
	return 0, false
}
