package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// Many calls at once share one connection, also when all of them need it to be made again.
func TestCallsSideBySide(t *testing.T) {
	t.Parallel()
	h := hub(t, stdio(t, "s", ""))
	round := func() map[string]bool {
		var mu sync.Mutex
		pids := map[string]bool{}
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() {
				r, err := h.Call(t.Context(), "s", "echo", json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, i)))
				if err != nil || r.Text != fmt.Sprintf("echo: %d", i) {
					t.Errorf("%d: got %+v, %v, want no error and r.Text = fmt.Sprintf(\"echo: %%d\", i)", i, r, err)
				}
				r, err = h.Call(t.Context(), "s", "pid", nil)
				mu.Lock()
				defer mu.Unlock()
				if pids[r.Text] = true; err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return pids
	}
	if pids := round(); len(pids) != 1 {
		t.Errorf("processes %v", pids)
	}
	s := h.conns["s"].current
	s.child.End()
	<-s.dead
	if pids := round(); len(pids) != 1 {
		t.Errorf("after its end: processes %v", pids)
	}
}

// The end of a run does not wait for a call.
func TestCloseDuringACall(t *testing.T) {
	t.Parallel()
	s := stdio(t, "s", "")
	h := hub(t, s)
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(t.Context(), "s", "slow", json.RawMessage(`{"n":3600000}`))
		done <- err
	}()
	fixture.Eventually(t, "the call has begun", func() bool { return strings.Contains(logged(s), "slow") })
	h.Close()
	select {
	case err := <-done:
		if err == nil {
			t.Error("it has a result")
		}
	case <-time.After(time.Minute):
		t.Error("the call goes on")
	}
}

// One server that ends leaves the others of the task alone, although their processes
// carry the same mark.
func TestServersEndOneByOne(t *testing.T) {
	t.Parallel()
	h := hub(t, stdio(t, "one", ""), stdio(t, "other", ""))
	h.Open(t.Context())
	before := call(t, h, "other", "pid", `{}`)
	failing(t, h, "one", "die", `{}`)
	call(t, h, "one", "echo", `{}`)
	if after := call(t, h, "other", "pid", `{}`); after.Text != before.Text {
		t.Errorf("process %s became %s", before.Text, after.Text)
	}
}

// A user agrees to everything that can have an effect: each such part is in the hash, and
// parts that only limit the server are not.
func TestWhatAnAgreementIsAbout(t *testing.T) {
	t.Parallel()
	free := map[string]bool{"Name": true, "Scope": true, "File": true, "Disabled": true, "Off": true, "Timeout": true, "State": true, "Problem": true}
	base := Server{Kind: Stdio, Command: "c", Args: []string{"a b"}, Env: map[string]string{mcptest.Env: ""}, Headers: map[string]string{"H": "v"}}
	kind := reflect.TypeFor[Server]()
	for i := range kind.NumField() {
		s := base
		switch f := reflect.ValueOf(&s).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("other")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"a", "b"}))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"X": "y"}))
		default:
			t.Fatalf("%s is of a kind that this test does not know", kind.Field(i).Name)
		}
		name := kind.Field(i).Name
		if changed := s.Hash() != base.Hash(); changed == free[name] {
			t.Errorf("%s: the hash changed: %v", name, changed)
		}
	}
}
