package task_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Who owns a task, with whom it is shared, and who ordered what it holds follow from its events; sharing can be undone.
func TestAccessOfATask(t *testing.T) {
	s := task.New(nil)
	seq := uint64(0)
	apply := func(want api.Access, person string, e task.Event) {
		t.Helper()
		seq++
		if err := s.Apply(encode(t, seq, e)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Access); diff != "" || s.Person != person {
			t.Errorf("after %T: got the person %q, want %q; access: -want +got\n%s", e, s.Person, person, diff)
		}
	}
	hers := api.Access{Owner: "ann"}
	shared := api.Access{Owner: "ann", Shares: []api.Share{{With: "bob", Right: api.ShareAct}}}
	apply(hers, "ann", task.Created{Task: "t", Access: hers})
	apply(shared, "ann", task.Changed{Access: &shared})
	if done := s.Actions.Done; len(done) != 1 || done[0].Kind != api.ActionShare {
		t.Fatalf("got actions %+v, want one share", done)
	}
	apply(hers, "ann", s.Actions.Done[0].Back())
	apply(shared, "ann", s.Actions.Undone[0].Again())
	apply(shared, "bob", task.Received{From: task.FromPerson, Person: "bob"})
	apply(api.Access{Owner: "cid"}, "cid", task.Forked{Task: "f", Person: "cid"})
	apply(shared, "bob", task.Created{Task: "child", Access: shared, Person: "bob"})
}
