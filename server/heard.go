package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/store"
)

// hearEvery is how often is looked whether another process works on a task.
const hearEvery = time.Second

// hear tells what another process says of a task before it is durable, as engine.Live
// does for this process, until ctx ends: whichever process works on the task, and as
// often as that changes. What is durable is read from the journal and is left out. A
// process that cannot be reached says nothing.
func (s *Server) hear(ctx context.Context, ref store.Ref, say func(engine.Event)) {
	tick := time.NewTicker(hearEvery)
	defer tick.Stop()
	for {
		if held, alive := s.opt.Store.Holder(ref); alive && held.Address != "" && held.Address != s.opt.Store.Address() {
			s.hearAt(ctx, held.Address, ref, say)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// hearAt listens at one process until it goes, or has let go of the task: it would pass on
// then what its next owner says, which may be this process.
func (s *Server) hearAt(ctx context.Context, address string, ref store.Ref, say func(engine.Event)) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		tick := time.NewTicker(hearEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if held, alive := s.opt.Store.Holder(ref); !alive || held.Address != address {
				cancel()
			}
		}
	})
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return peer.Dial(ctx, address)
	}}
	// A connection that is lost is not made again: who holds the task is looked up anew.
	c, err := client.New("http://localhost", client.Options{HTTP: &http.Client{Transport: one}, Lost: func(error, time.Duration) { cancel() }})
	if err != nil {
		return
	}
	defer c.Close()
	stream := client.Request{Path: "/v1/tasks/" + ref.ID + "/events", Header: http.Header{hopHeader: {"1"}}}
	for e, err := range c.Follow(ctx, stream, "") {
		if err != nil {
			return
		}
		if e.ID == "" && !strings.HasPrefix(e.Type, "stream.") {
			say(engine.Event{Type: e.Type, Task: ref.ID, Data: e.Data})
		}
	}
}
