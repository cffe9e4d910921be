package tasks

import (
	"math"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f        showFlags
		from, to int
	}{{showFlags{}, 0, 10}, {showFlags{tail: 3}, 7, 10}, {showFlags{to: 4}, 0, 3}, {showFlags{to: 4, tail: 2}, 1, 3}, {showFlags{to: 99}, 0, 10}, {showFlags{to: 1}, 0, 0}} {
		from, to := window(10, tt.f)
		if from != tt.from || to != tt.to {
			t.Errorf("got %+v: %d %d, want from = tt.from and to = tt.to", tt.f, from, to)
		}
	}
}

// Each request reads the whole task, so a long history takes as few as the answers allow.
func TestAHistoryTakesFewRequests(t *testing.T) {
	t.Parallel()
	const total = 2500
	for _, tt := range []struct{ most, holds, want int }{{1000, total, 4}, {math.MaxInt32, total, 2}, {math.MaxInt32, 2000, 3}} {
		requests, seen := 0, 0
		from, to, err := windows(showFlags{}, tt.most, url.Values{}, func(q url.Values, first bool) (int, *int, error) {
			requests++
			limit, _ := strconv.Atoi(q.Get("limit"))
			after, _ := strconv.Atoi(q.Get("after"))
			end := min(total, after+min(limit, tt.holds))
			if !first {
				seen += end - after
			}
			if end == total {
				return total, nil, nil
			}
			return total, &end, nil
		})
		if err != nil || from != 0 || to != total || seen != total || requests != tt.want {
			t.Errorf("at most %d items, and answers of %d: got %d..%d, %d items in %d requests, %v; want 0..%d in %d requests",
				tt.most, tt.holds, from, to, seen, requests, err, total, tt.want)
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t) // it is noon of 2026-04-20, UTC
	ms := func(text string) int64 {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when.UnixMilli()
	}
	moment := func(text string) (at int64, err error) {
		var fl pflag.FlagSet
		a.Moment(&fl, &at, "since", "")
		err = fl.Parse([]string{"--since=" + text})
		return at, err
	}
	local := time.Date(2026, 4, 1, 0, 0, 0, 0, time.Local).UnixMilli()
	for text, want := range map[string]int64{
		"": 0, "2026-04-01T00:00:00Z": ms("2026-04-01T00:00:00Z"), "2026-04-01T00:00:00.5+02:00": ms("2026-03-31T22:00:00Z") + 500,
		"2026-04-01": local, "2026-04-01 00:00": local, "2026-04-01T00:00:00": local, "7d": ms("2026-04-13T12:00:00Z"), "90m": ms("2026-04-20T10:30:00Z"), "0d": ms("2026-04-20T12:00:00Z"),
	} {
		if got, err := moment(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1d", "-5m", "7", "7w", "2026-13-01", "1.5d"} {
		if got, err := moment(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
