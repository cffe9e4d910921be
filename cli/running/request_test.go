package running

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

// What a run is asked for here is what a server is asked for, member by member.
func TestRequestsAsAServerTakesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		req  engine.Request
		want string
	}{
		{"words alone", engine.Request{Text: "do it", Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws","message":{"text":"do it"},"unattended":true}`},
		{"an image alone", engine.Request{Images: []string{"data:x"}, Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws","message":{"text":"","images":["data:x"]},"unattended":true}`},
		{"no words", engine.Request{Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws","unattended":true}`},
		{"all", engine.Request{
			Text:   "x",
			Choice: setup.Choice{Workspace: "/ws", Mode: "ask", Provider: "openai", Model: "m", BaseURL: "http://b", Profile: "p", Approve: "read", Allow: []string{"git log"}, Deny: []string{"rm"}, Limits: &api.RunLimits{MaxTurns: 3, MaxCostMicros: 500000, IdleTimeoutMS: 90000, TotalTimeoutMS: 3600000}},
			Origin: "cli",
		}, `{"workspace":"/ws","mode":"ask","provider":"openai","model":"m","base_url":"http://b","profile":"p","message":{"text":"x"},"limits":{"max_turns":3,"max_cost":"0.50","idle_timeout":"1m30s","total_timeout":"1h0m0s"},"approve":"read","allow":["git log"],"deny":["rm"],"origin":"cli","unattended":true}`},
		{"of one run", engine.Request{Interactive: true, Choice: setup.Choice{Workspace: "/ws", RunChoice: task.RunChoice{NoCheckpoints: true, MaxDayMicros: 2000000, StandIn: "p"}}},
			`{"workspace":"/ws","no_checkpoints":true,"max_cost_day":"2.00","stand_in":"p"}`},
		{"a day without a limit", engine.Request{Choice: setup.Choice{Workspace: "/ws", RunChoice: task.RunChoice{MaxDayMicros: -1}}}, `{"workspace":"/ws","unattended":true,"max_cost_day":"0.00"}`},
		{"limits taken away", engine.Request{Choice: setup.Choice{Workspace: "/ws", Limits: &api.RunLimits{MaxTurns: -1, MaxCostMicros: -1, IdleTimeoutMS: -1}}},
			`{"workspace":"/ws","limits":{"max_turns":0,"max_cost":"0.00","idle_timeout":"0s"},"unattended":true}`},
	} {
		got, err := json.Marshal(newTaskOf(c.req))
		fixture.NoError(t, err)
		var x, y api.NewTask
		fixture.NoError(t, json.Unmarshal(got, &x))
		fixture.NoError(t, json.Unmarshal([]byte(c.want), &y))
		if diff := cmp.Diff(y, x); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", c.name, diff)
		}
		again := newRunOf(c.req)
		if diff := cmp.Diff(x.Limits, again.Limits); diff != "" || (again.Message == nil) != (x.Message == nil) || again.Approve != x.Approve {
			t.Errorf("%s: going on is asked for otherwise: %+v", c.name, again)
		}
	}
}
