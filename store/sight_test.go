package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// What the caller of a context may not find has no name, is in no list, and makes no other name ambiguous.
func TestSight(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ctx := t.Context()
	refusal := errors.New("it may only be read")
	for id, access := range map[string]api.Access{
		"shed-1": {Owner: "ann"}, "shed-2": {Owner: "bob"}, "barn": {Owner: "bob"}, "boat": {Owner: "cid"}, "free": {},
	} {
		storetest.Close(t, storetest.Must[*store.Task](t)(s.Create(ctx, task.Created{Task: id, Number: 1, CreatedAt: 1, Access: access})))
	}
	storetest.Delete(t, s, "barn")
	as := func(owner string) context.Context {
		return store.Seeing(ctx, func(a api.Access) (bool, error) {
			if a.Owner == "cid" {
				return true, refusal
			}
			return a.Owner == owner, nil
		})
	}
	for _, tc := range []struct {
		who, given string
		want       error
	}{
		{"ann", "shed-1", nil},
		{"ann", "shed", nil}, // of two, she finds one
		{"ann", "shed-2", store.ErrNotFound},
		{"ann", "roost:shed-2", store.ErrNotFound},
		{"ann", "free", store.ErrNotFound},
		{"ann", "boat", refusal},
		{"bob", "shed", nil},
		{"bob", "barn", store.ErrNotFound}, // it is in the trash
	} {
		if _, err := s.Find(as(tc.who), tc.given); !errors.Is(err, tc.want) {
			t.Errorf("%s finds %s: got %v, want %v", tc.who, tc.given, err, tc.want)
		}
	}
	var trashed *store.TrashedError
	if _, err := s.Find(as("bob"), "barn"); !errors.As(err, &trashed) {
		t.Errorf("bob finds his deleted task: got %v, want where it is", err)
	}
	if _, err := s.Find(as("ann"), "barn"); errors.As(err, &trashed) {
		t.Error("ann is told of bob's deleted task")
	}
	for who, want := range map[string]int{"ann": 2, "bob": 2, "eve": 1} { // the boat, too
		got := storetest.Must[store.Listing](t)(s.List(as(who), store.Filter{}))
		refs := storetest.Must[[]store.Ref](t)(s.Refs(as(who)))
		rows := 0
		for part, err := range s.Stream(as(who), 1) {
			if err != nil {
				t.Fatal(err)
			}
			if part.Whole {
				rows = len(part.Items)
			}
		}
		if len(got.Items) != want || len(refs) != want || rows != want {
			t.Errorf("%s: got %d in a list, %d names, %d in a stream, want %d", who, len(got.Items), len(refs), rows, want)
		}
	}
	for who, want := range map[string]int{"ann": 0, "bob": 1} {
		if got := storetest.Must[[]store.DeletedTask](t)(s.Deleted(as(who))); len(got) != want {
			t.Errorf("%s: got %d deleted tasks, want %d", who, len(got), want)
		}
	}
	if got := storetest.List(t, s, store.Filter{}); len(got.Items) != 4 {
		t.Errorf("got %d tasks without a sight, want 4", len(got.Items))
	}
}
