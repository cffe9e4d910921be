package spend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
)

// requestRow is Roo's row of one request.
func requestRow(i int, cost string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"tokensOut\":1,\"cacheReads\":2,\"cost\":%s}"}`,
		storetest.TS0+i, 10*i, cost)
}

// callRow is a reply with tool calls.
func callRow(i int, names ...string) string {
	var blocks []string
	for n, name := range names {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"c%d_%d","name":%q,"input":{}}`, i, n, name))
	}
	return fmt.Sprintf(`{"role":"assistant","content":[%s],"ts":%d}`, strings.Join(blocks, ","), storetest.TS0+i)
}

// sumOf adds up the requests of a task.
func sumOf(t *testing.T, v *store.View) (sum api.Usage) {
	t.Helper()
	for _, e := range storetest.Must[[]spend.Expense](t)(spend.Expenses(t.Context(), v)) {
		sum = sum.Plus(e.Usage)
	}
	return sum
}
