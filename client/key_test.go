package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/roost-dev/roost/api"
)

// What is asked again under the key that it had is asked under that key, whichever call it is;
// what has none gets one of its own, and reads get none.
func TestKeyed(t *testing.T) {
	var keys []string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		say(w, 200, struct{}{})
	})
	ctx := Keyed(soon(t), "k1")
	for _, ask := range []func() error{
		func() error { _, err := c.Send(ctx, "x", api.Message{Text: "a"}); return err },
		func() error { _, err := c.Start(ctx, api.NewTask{}); return err },
		func() error { _, err := c.Answer(Keyed(ctx, "k2"), "q", api.Answer{}); return err },
		func() error { _, err := c.Resume(soon(t), "x", api.NewRun{}); return err },
		func() error { _, err := c.Task(ctx, "x"); return err },
		func() error { _, err := c.Ask(ctx, Request{Method: "POST", Path: "/x", Key: "own"}, nil); return err },
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 6 || keys[0] != "k1" || keys[1] != "k1" || keys[2] != "k2" || len(keys[3]) != 32 || keys[4] != "" || keys[5] != "own" {
		t.Errorf(`got %q, want len(keys) = 6 and keys[0] = "k1" and keys[1] = "k1" and keys[2] = "k2" and len(keys[3]) = 32 and keys[4] = "" and keys[5] = "own"`,
			keys)
	}
	if one, two := NewKey(), NewKey(); one == two {
		t.Error("two new keys are one")
	}
	if KeyOf(ctx) != "k1" || KeyOf(context.Background()) != "" {
		t.Error("keys are not what was given")
	}
}

// Behind which errors nobody knows whether it was done.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		err  error
		lost bool
	}{
		{nil, false}, {errors.New("x"), false}, {context.Canceled, false},
		{&Unreachable{"http://x", io.ErrUnexpectedEOF}, true},
		{&Problem{Status: 503, Code: "holder_gone"}, true},
		{&Problem{Status: 409, Code: "idempotency_in_flight"}, true},
		{&Problem{Status: 409, Code: "task_busy"}, false},
		{&Problem{Status: 503, Code: "draining"}, false},
	} {
		if got := Lost(c.err); got != c.lost {
			t.Errorf("%v: got %v, want got = c.lost", c.err, got)
		}
	}
}
