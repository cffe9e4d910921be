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
		for _, row := range rows {
			text, _ := esjson.Get(row, "text")
			condense, _ := esjson.Get(row, "contextCondense")
			kind, _ := esjson.GetString(row, "say")
			if s, ok := usage.SpentOf(kind, text, condense); ok {
				s.AddTo(&sum)
			}
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
