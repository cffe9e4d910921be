package engine_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// A run leaves no connection to its model behind.
func TestARunClosesItsConnections(t *testing.T) {
	b, server := newAPIBench(t, done)
	behind, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	open, ever := map[net.Conn]bool{}, 0
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	front.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch s {
		case http.StateNew:
			open[c] = true
			ever++
		case http.StateClosed:
			delete(open, c)
		}
	}
	front.Start()
	defer front.Close()
	_, outcome, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{BaseURL: front.URL}})
	wantOutcome(t, outcome, "completed", "")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		left, all := len(open), ever
		mu.Unlock()
		if left == 0 && all > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d connections stay open", left, all)
		}
	}
}
