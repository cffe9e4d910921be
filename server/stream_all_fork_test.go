package server

import (
	"encoding/json"
	"testing"

	"github.com/roost-dev/roost/api"
)

// On the stream of all tasks a fork has the events that its own stream has, the newest ones
// too: its log is numbered on from where the one that it came from stood.
func TestForksOnTheStreamOfAllTasks(t *testing.T) {
	g := newWorkingBench(t)
	s := g.follow("/v1/events")
	var fork, second api.ForkResult
	g.did(201, &fork, "POST", g.path("/forks"), `{}`)
	g.did(201, &second, "POST", "/v1/tasks/"+fork.ID+"/forks", `{}`)
	for _, id := range []string{fork.ID, second.ID} {
		g.did(200, nil, "PATCH", "/v1/tasks/"+id, `{"title":"another"}`)
	}
	want, got, late := map[string][]frame{}, map[string][]frame{}, 2
	for _, id := range []string{fork.ID, second.ID} {
		want[id] = journalOf(t, g.store, id)
	}
	for late > 0 {
		f := s.take(1)[0]
		var e struct {
			Task string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			t.Fatal(err)
		}
		if list := want[e.Task]; list != nil {
			got[e.Task] = append(got[e.Task], f)
			if f.Data == list[len(list)-1].Data {
				late--
			}
		}
	}
	for id, list := range want {
		has := got[id]
		if len(has) > len(list) || len(has) < 5 { // what is older than the feed is not told
			t.Fatalf("%d of %d events", len(has), len(list))
		}
		list = list[len(list)-len(has):]
		for i := range has {
			has[i].ID = list[i].ID // here it is another one
		}
		if diff := firstDifference(list, has); diff != "" {
			t.Error(diff)
		}
	}
}
