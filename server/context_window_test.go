package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// The document of a task has the window of its model, where that is known.
func TestContextWindow(t *testing.T) {
	var e *engine.Engine
	g := newBench(t, func(o *testOptions) {
		e = engine.New(o.Store, engine.Options{Confined: true, Config: setup.Config{Keys: map[string]string{"anthropic": "none"}}})
		o.Engine = e
	})
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		settings string
		want     int64
	}{
		{`"provider":"anthropic","model":"claude-opus-4-5"`, 200_000},
		{`"provider":"anthropic","model":"claude-opus-4-5-20251101"`, 200_000},
		{`"provider":"anthropic","model":"one-that-is-not-known"`, 0},
	} {
		var made api.Started
		g.did(201, &made, "POST", "/v1/tasks", `{"workspace":`+quoted(t, filepath.Join(g.dir, "ws"))+`,`+c.settings+`}`)
		var got api.Summary
		g.did(200, &got, "GET", "/v1/tasks/"+made.ID, "")
		if got.ContextWindow != c.want {
			t.Errorf("%s: got a window of %d tokens, want %d", c.settings, got.ContextWindow, c.want)
		}
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
