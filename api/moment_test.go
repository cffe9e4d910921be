package api

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
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
			t.Errorf("%s: got %v %s, want ok and got = want.UnixMilli()", text, ok, Stamp(got))
		}
	}
	for _, text := range []string{"", "soon", "-1d", "-5m", "d", "2026-13-01", "7", "1.5d", "999999999999d", "9223372036854775807d", "9223372036854775808d", "9999999h"} {
		if got, ok := Moment(text, now); ok {
			t.Errorf("%q: got %s, want not ok", text, Stamp(got))
		}
	}
}

// Whatever number a task names, its time is one that RFC 3339 has.
func TestStampsAreRFC3339(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64().Draw(t, "ms")
		got, err := time.Parse(time.RFC3339Nano, Stamp(ms))
		if err != nil || len(Stamp(ms)) != len("2026-01-31T08:30:00.000Z") {
			t.Fatalf("%d is %s: %v", ms, Stamp(ms), err)
		}
		if y := time.UnixMilli(ms).UTC().Year(); y >= 0 && y <= 9999 && got.UnixMilli() != ms {
			t.Fatalf("%d is %s", ms, Stamp(ms))
		}
	})
	for ms, want := range map[int64]string{
		0: "1970-01-01T00:00:00.000Z", -1: "1969-12-31T23:59:59.999Z", 253402300799999: "9999-12-31T23:59:59.999Z",
		253402300800000: "9999-12-31T23:59:59.999Z", math.MaxInt64: "9999-12-31T23:59:59.999Z", math.MinInt64: "0000-01-01T00:00:00.000Z",
	} {
		if got := Stamp(ms); got != want {
			t.Errorf("%d is %s, want %s", ms, got, want)
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

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KB", 34_123: "34.1 KB", 1_250_000: "1.2 MB", 999_000_000: "999.0 MB", 13_000_000_000: "13.0 GB",
	} {
		if got := SizeText(n); got != want {
			t.Errorf("SizeText(%d) = %q, want %q", n, got, want)
		}
	}
}
