package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// model is an instant provider on loopback: it asks for one file per turn, then
// ends the task. llmtest was rejected here: it checks and keeps every request,
// which would be measured too.
type model struct {
	url    string
	turns  int
	text   string        // said in every reply
	piece  int           // bytes of that text in an event
	pause  time.Duration // between the pieces of that text
	before func() error  // runs between a request and its reply, outside what is measured

	mu       sync.Mutex
	arrived  []time.Time // each request, when its body was whole
	answered []time.Time // each reply, when its last byte was written
	sizes    []int
	failed   error

	body   []byte // taken again for each request: a fresh megabyte costs as much as a sync
	server *http.Server
	done   chan struct{}
}

func startModel(turns int) (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	m := &model{url: "http://" + l.Addr().String(), turns: turns, text: "Reading the next file.", piece: 64, done: make(chan struct{})}
	m.body = prefaulted(2 << 20)
	m.server = &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(m.done)
		_ = m.server.Serve(l) // always ErrServerClosed
	}()
	return m, nil
}

// prefaulted is memory that the system has really given.
func prefaulted(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	return b
}

func (m *model) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := m.server.Shutdown(ctx)
	if err != nil {
		err = m.server.Close()
	}
	<-m.done
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(err, m.failed)
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	size, err := m.receive(r.Body)
	now := time.Now()
	if err != nil {
		return // the client went away; its own exit tells
	}
	m.mu.Lock()
	m.arrived = append(m.arrived, now)
	m.sizes = append(m.sizes, size)
	n := len(m.arrived)
	m.mu.Unlock()
	if m.before != nil {
		if err := m.before(); err != nil {
			m.mu.Lock()
			m.failed = err
			m.mu.Unlock()
		}
	}
	name, input := "read_file", fmt.Sprintf(`{"path":"f%03d.txt"}`, n-1)
	if n > m.turns {
		name, input = "attempt_completion", `{"result":"All files were read."}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	m.stream(w, n, name, input)
	m.mu.Lock()
	m.answered = append(m.answered, time.Now())
	m.mu.Unlock()
}

// receive reads a body to its end and gives its size. The program asks once at a
// time, so one buffer does.
func (m *model) receive(r io.Reader) (int, error) {
	size := 0
	for {
		if size == len(m.body) {
			m.body = append(m.body, make([]byte, 1<<20)...)
		}
		n, err := r.Read(m.body[size:])
		size += n
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, fmt.Errorf("read a request: %w", err)
		}
	}
}

// stream sends one reply: a text block and a tool call.
func (m *model) stream(w http.ResponseWriter, n int, name, input string) {
	flush := http.NewResponseController(w).Flush
	var b bytes.Buffer
	event := func(typ, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", typ, data) }
	event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`, n))
	event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for i := 0; i < len(m.text); i += m.piece {
		text := esjson.Quote(nil, m.text[i:min(i+m.piece, len(m.text))])
		event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, text))
		if m.pause > 0 {
			_, _ = w.Write(b.Bytes())
			_ = flush()
			b.Reset()
			time.Sleep(m.pause)
		}
	}
	event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}}`, n, name))
	event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%s}}`, esjson.Quote(nil, input)))
	event("content_block_stop", `{"type":"content_block_stop","index":1}`)
	event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}`)
	event("message_stop", `{"type":"message_stop"}`)
	// A client that goes away is seen by its own exit.
	_, _ = w.Write(b.Bytes())
	_ = flush()
}

// overhead is, for each turn, from the end of a reply until the whole next
// request has arrived.
func (m *model) overhead() times {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all times
	for i := 1; i < len(m.arrived) && i <= len(m.answered); i++ {
		all = append(all, m.arrived[i].Sub(m.answered[i-1]))
	}
	return all
}
