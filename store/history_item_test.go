package store

import (
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// What a history row says of a task stands in for what its messages do not say: the
// cost when none of them tells one, and that a subtask handed its result back.
func TestWhatTheRowSays(t *testing.T) {
	const item = `{"id":"theirs","ts":5,"task":"do it","tokensIn":900,"tokensOut":7,"cacheReads":3,"totalCost":0.0873,"status":"completed"}`
	request := func(text string) string {
		return `{"ts":1700000000005,"type":"say","say":"api_req_started","text":"` + text + `"}`
	}
	result := `{"ts":1700000000006,"type":"say","say":"completion_result","text":"done"}`
	handing := `{"ts":1700000000007,"type":"ask","ask":"tool","text":"{\"tool\":\"finishTask\"}"}`
	feedback := `{"ts":1700000000008,"type":"say","say":"user_feedback","text":"again"}`
	for name, tt := range map[string]struct {
		item, rows, status, cost string
		in                       int64
	}{
		"requests that tell":            {item, array(uiRow(1, "do it"), request(`{\"tokensIn\":10,\"tokensOut\":1,\"cost\":0.02}`)), "completed", "0.02", 10},
		"requests that say nothing":     {item, array(uiRow(1, "do it"), request(`scrambled`)), "completed", "0.0873", 900},
		"no requests":                   {item, array(uiRow(1, "do it")), "completed", "0.0873", 900},
		"a result that went back":       {item, array(uiRow(1, "do it"), result, handing), "completed", "0.0873", 900},
		"and the person went on":        {item, array(uiRow(1, "do it"), result, handing, feedback), "interrupted", "0.0873", 900},
		"feedback before the result":    {item, array(uiRow(1, "do it"), feedback, result, handing), "completed", "0.0873", 900},
		"a row that says nothing":       {`{"id":"theirs","ts":5}`, array(uiRow(1, "do it"), result, handing), "interrupted", "0.00", 0},
		"a row of another state":        {`{"id":"theirs","status":"active","totalCost":-1}`, array(uiRow(1, "do it"), result, handing), "interrupted", "0.00", 0},
		"only a row and an API history": {item, "", "completed", "0.0873", 900},
	} {
		storage, dir := rooStorage(t, "theirs")
		write(t, dir, roofmt.ItemName, tt.item)
		write(t, dir, roofmt.UIName, tt.rows)
		s := open(t, t.TempDir(), storage)
		got := fixture.Must[Listing](t)(s.List(t.Context(), Filter{TaskFilter: api.TaskFilter{Empty: true}})).Items[0]
		if got.Status != tt.status || got.Usage.Cost == nil || got.Usage.Cost.String() != tt.cost || got.Usage.TokensIn != tt.in {
			t.Errorf("%s: %s, %d tokens, cost %v", name, got.Status, got.Usage.TokensIn, got.Usage.Cost)
		}
	}
}
