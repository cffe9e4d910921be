package report_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// What is not known is null or empty, never a zero that could be taken for a fact.
func TestDocumentsOfRuns(t *testing.T) {
	ref := store.Ref{ID: "t1", Source: "roost"}
	yes := true
	for name, c := range map[string]struct {
		doc  any
		want string
	}{
		"queued": {
			report.RunOf(engine.RunInfo{
				Run: task.Run{ID: "r1", Queued: 1000, CostUnknown: true, Settings: task.Settings{Mode: "code"}},
				Ref: ref, State: "queued", Position: 2, Here: true,
			}),
			`{"id":"r1","task_id":"t1","state":"queued","outcome":"","code":"","reason":"","question":"","position":2,"here":true,"turns":0,"cost":null,` +
				`"queued_at":"1970-01-01T00:00:01.000Z","started_at":null,"ended_at":null,"mode":"code","provider":"","model":"","limits":{},"resume_command":"roost resume t1"}`,
		},
		"a run that cost nothing": {
			report.RunOf(engine.RunInfo{
				Run: task.Run{ID: "r1", Outcome: "limit", Code: "turns", OwnTurns: 3, Started: 1, Ended: 2000},
				Ref: ref, State: "interrupted",
			}).Cost.String(),
			`"0.00"`,
		},
		"limits": {
			report.LimitsOf(api.RunLimits{MaxTurns: 3, MaxCostMicros: 1_500_000, MaxTaskMicros: 9_000_000, IdleTimeoutMS: 90_000, TotalTimeoutMS: 3_600_000}),
			`{"max_turns":3,"max_cost":"1.50","idle_timeout":"1m30s","total_timeout":"1h0m0s","max_cost_task":"9.00"}`,
		},
		"question": {
			report.QuestionOf(engine.Asked{
				ID: "t1.q3", Ref: ref, Task: api.Summary{Title: "a task"}, Run: "r1", At: 1000, From: events.Cursor{Position: task.Position{Epoch: 2, Seq: 7, Index: 1}},
				QuestionOpened: api.QuestionOpened{Question: "q3", Kind: "followup", Text: "Which?", Choices: []string{"this"}},
			}),
			`{"id":"t1.q3","task_id":"t1","title":"a task","run_id":"r1","opened_at":"1970-01-01T00:00:01.000Z","event":"2.7-1","here":false,` +
				`"question":"q3","kind":"followup","text":"Which?","choices":["this"]}`,
		},
		"answered": {
			api.Answered{Question: "t1.q3", Task: "t1", Run: "r1", Approve: &yes, By: "api"},
			`{"question":"t1.q3","task_id":"t1","run_id":"r1","approve":true,"text":"","by":"api"}`,
		},
	} {
		got, err := json.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

// A run is lost when the process of a server that shares its tasks ended before the run did, also once that was recorded.
func TestWhichRunsAreLost(t *testing.T) {
	shared, own := store.Ref{ID: "t1", Log: "postgres:/tasks/t1"}, store.Ref{ID: "t1", Log: "/root/tasks/t1"}
	if !shared.InDatabase() {
		t.Fatalf("%s is no journal in a database", shared.Log)
	}
	for _, c := range []struct {
		name string
		ref  store.Ref
		run  task.Run
		want bool
	}{
		{"no end", shared, task.Run{}, true},
		{"its end was recorded", shared, task.Run{Outcome: "interrupted"}, true},
		{"its server ended in order", shared, task.Run{Outcome: "interrupted", Code: "drained"}, false},
		{"a limit", shared, task.Run{Outcome: "limit", Code: "turns"}, false},
		{"no server shares the task", own, task.Run{}, false},
	} {
		if got := report.RunOf(engine.RunInfo{Run: c.run, Ref: c.ref, State: "interrupted"}).Lost; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
