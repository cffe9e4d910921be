package anthropic_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

func megabyte() llm.Request {
	return llm.Request{Model: "claude-sonnet-4-5", System: "sys", Messages: conversation(200, 5000)}
}

func BenchmarkBody1MB(b *testing.B) {
	p := anthropic.New(anthropic.Options{APIKey: key})
	req := megabyte()
	out, _ := p.Body(req)
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Body(req); err != nil {
			b.Fatal(err)
		}
	}
}

const shortReply = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// sink answers as soon as it has the whole body, and reports the time of that.
func sink(tb testing.TB) (url string, arrived chan time.Time) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	arrived = make(chan time.Time, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, r.ContentLength)
		_, _ = io.ReadFull(r.Body, buf)
		arrived <- time.Now()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, shortReply)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	tb.Cleanup(func() { s.Close(); <-done })
	return "http://" + l.Addr().String(), arrived
}

// From the call to the whole 1 MB request in the server's hands, and the whole
// turn. The plain variant posts ready bytes with net/http: what is left to win.
func BenchmarkToTheWire(b *testing.B) {
	req := megabyte()
	b.Run("provider", func(b *testing.B) {
		url, arrived := sink(b)
		p := anthropic.New(anthropic.Options{APIKey: key, BaseURL: url})
		defer p.CloseIdle()
		var wire time.Duration
		b.ReportAllocs()
		for b.Loop() {
			begin := time.Now()
			for _, err := range p.Stream(b.Context(), req) {
				if err != nil {
					b.Fatal(err)
				}
			}
			wire += (<-arrived).Sub(begin)
		}
		b.ReportMetric(float64(wire.Microseconds())/float64(b.N), "us-to-wire")
	})
	for _, size := range []int{4 << 10, 256 << 10} {
		b.Run("plain, buffer "+strconv.Itoa(size>>10)+"KB", func(b *testing.B) {
			url, arrived := sink(b)
			t := http.DefaultTransport.(*http.Transport).Clone()
			t.WriteBufferSize = size
			defer t.CloseIdleConnections()
			body, _ := anthropic.New(anthropic.Options{APIKey: key}).Body(req)
			var wire time.Duration
			for b.Loop() {
				begin := time.Now()
				r, _ := http.NewRequest("POST", url, bytes.NewReader(body))
				res, err := t.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				wire += (<-arrived).Sub(begin)
			}
			b.ReportMetric(float64(wire.Microseconds())/float64(b.N), "us-to-wire")
		})
	}
}
