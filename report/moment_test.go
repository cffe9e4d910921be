package report

import (
	"encoding/json"
	"testing"
	"time"
)

// A time is taken in the forms that people write, an age counts back from now, and what
// is neither is refused and not guessed.
func TestMoments(t *testing.T) {
	now := time.Date(2026, 4, 17, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local), "2026-01-31 08:30": time.Date(2026, 1, 31, 8, 30, 0, 0, time.Local),
		"2026-01-31T08:30:00Z": time.Date(2026, 1, 31, 8, 30, 0, 0, time.UTC), "2026-01-31T08:30:00.5+02:00": time.Date(2026, 1, 31, 6, 30, 0, 5e8, time.UTC),
		"7d": now.AddDate(0, 0, -7), "0d": now, "90m": now.Add(-90 * time.Minute), "1h30m": now.Add(-90 * time.Minute),
	} {
		if got, ok := Moment(text, now); !ok || got != want.UnixMilli() {
			t.Errorf("%s: %v %s", text, ok, Stamp(got))
		}
	}
	for _, text := range []string{"", "soon", "-1d", "-5m", "d", "2026-13-01", "7", "1.5d", "999999999999d", "9223372036854775807d", "9223372036854775808d", "9999999h"} {
		if got, ok := Moment(text, now); ok {
			t.Errorf("%q: %s", text, Stamp(got))
		}
	}
}

// A page without items is an empty list, and one without a successor says null.
func TestPages(t *testing.T) {
	for want, page := range map[string]Page[int]{
		`{"items":[],"next_cursor":null}`: PageOf[int](nil, ""), `{"items":[1,2],"next_cursor":"2"}`: PageOf([]int{1, 2}, "2"),
	} {
		if got, err := json.Marshal(page); err != nil || string(got) != want {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
}
