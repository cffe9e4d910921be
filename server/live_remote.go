package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
)

// holderPoll is how often a stream of another process checks whether that process still works on the task.
const holderPoll = time.Second

// liveOfHolder passes on the live events of a task that another process of this user works on, until that process
// ends or lets the task go: the next owner may be this process. Durable events are left out: the topic reads them from
// the journal.
func (s *Server) liveOfHolder(ctx context.Context, t service.Task, publish func(events.Event)) {
	held, ok := t.Holder()
	if !ok || held.Address == "" {
		return
	}
	address := held.Address
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		tick := time.NewTicker(holderPoll)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if held, ok := t.Holder(); !ok || held.Address != address {
				cancel()
			}
		}
	})
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return peer.Dial(ctx, address)
		}}
	// The client does not connect again: another process may hold the task by then.
	c, err := client.New("http://localhost", client.Options{HTTP: &http.Client{Transport: one},
		Lost: func(error, time.Duration) { cancel() }})
	if err != nil {
		return
	}
	defer c.Close()
	stream := client.Request{Path: "/v1/tasks/" + t.ID() + "/events", Header: http.Header{hopHeader: {"1"}}}
	for e, err := range c.Follow(ctx, stream, "") {
		if err != nil {
			return
		}
		if e.ID == "" && !strings.HasPrefix(e.Type, "stream.") {
			publish(events.Event{Type: e.Type, Task: t.ID(), Data: e.Data})
		}
	}
}
