package service

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
)

// Paging by the edges of windows reaches every message once, in either direction,
// whatever the limit is and however large the messages are.
func TestWindowsMeet(t *testing.T) {
	large := json.RawMessage(strings.Repeat("x", windowBytes/2+1))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		broken := rapid.IntRange(0, 50).Draw(t, "broken")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		huge := rapid.SampledFrom([]int{0, 3, 5}).Draw(t, "huge")
		read := func(i int) (json.RawMessage, error) {
			if i == broken {
				return nil, errors.New("gone")
			}
			if huge > 0 && i%huge == 0 {
				return large, nil
			}
			return json.RawMessage("1"), nil
		}
		var want []int
		for i := 1; i <= n; i++ {
			if i != broken+1 {
				want = append(want, i)
			}
		}
		var got []int
		at := Span{Limit: limit}
		for range n + 2 { // from the end
			var w api.Window
			fill(&w, at, n, read)
			got = append(slices.Clone(w.Numbers), got...)
			if w.Before == nil {
				break
			}
			at.Before = *w.Before
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("backward:\n%s", diff)
		}
		got, at = nil, Span{Limit: limit, After: 1}
		for range n + 2 { // from the start
			var w api.Window
			fill(&w, at, n, read)
			got = append(got, w.Numbers...)
			if w.After == nil {
				break
			}
			at.After = *w.After + 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("forward:\n%s", diff)
		}
	})
}
