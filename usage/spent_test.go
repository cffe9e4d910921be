package usage_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/usage"
)

// A task that keeps the small records instead of the rows must show the same sums.
func TestSpentRecordsAddUpToTheSumOfTheRows(t *testing.T) {
	number := rapid.SampledFrom([]string{"0", "1", "1234567", "0.1", "-3", "1e300", `"7"`, "null", "0.30000000000000004"})
	rapid.Check(t, func(t *rapid.T) {
		var rows [][]byte
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			n := func() string { return number.Draw(t, "n") }
			rows = append(rows, []byte(rapid.SampledFrom([]string{
				fmt.Sprintf(`{"type":"say","say":"api_req_started","text":"{\"tokensIn\":%s,\"cost\":%s}"}`, quoted(n()), quoted(n())),
				fmt.Sprintf(`{"type":"say","say":"api_req_started","text":"{\"tokensOut\":%s,\"cacheReads\":%s,\"cacheWrites\":%s}"}`, quoted(n()), quoted(n()), quoted(n())),
				fmt.Sprintf(`{"type":"say","say":"condense_context","contextCondense":{"cost":%s,"newContextTokens":%s}}`, n(), n()),
				fmt.Sprintf(`{"type":"say","say":"api_req_finished","text":"{\"tokensIn\":%s,\"cost\":%s}"}`, quoted(n()), quoted(n())),
				`{"type":"say","say":"text","text":"no cost"}`, `7`,
			}).Draw(t, "row")))
		}
		var sum usage.Tokens
		var packed []byte
		for _, row := range rows {
			text, _ := esjson.Get(row, "text")
			condense, _ := esjson.Get(row, "contextCondense")
			kind, _ := esjson.GetString(row, "say")
			if s, ok := usage.SpentOf(kind, text, condense); ok {
				packed, _ = s.AppendBinary(packed)
			}
		}
		for len(packed) > 0 {
			s, rest, err := usage.ReadSpent(packed)
			if err != nil {
				t.Fatal(err)
			}
			s.AddTo(&sum)
			packed = rest
		}
		if d := cmp.Diff(usage.Sum(rows), sum); d != "" {
			t.Fatal(d)
		}
	})
}

func quoted(n string) string {
	if n[0] == '"' {
		return `\` + n[:len(n)-1] + `\"`
	}
	return n
}

func TestABrokenSpentRecordIsRefused(t *testing.T) {
	s, _ := usage.SpentOf("api_req_started", []byte(`"{\"tokensIn\":12,\"cost\":0.1}"`), nil)
	whole, _ := s.AppendBinary(nil)
	for cut := range whole {
		if _, _, err := usage.ReadSpent(whole[:cut]); err == nil {
			t.Errorf("%d of %d bytes were taken", cut, len(whole))
		}
	}
	if _, _, err := usage.ReadSpent([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); err == nil {
		t.Error("garbage was taken")
	}
}
