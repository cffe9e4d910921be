//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// stalled is an Anthropic server that counts the tokens of a request, says a word and then
// nothing more; begun counts the requests.
func stalled(t *testing.T) (url string, begun *atomic.Int32) {
	t.Helper()
	begun = new(atomic.Int32)
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1000,\"cache_creation_input_tokens\":500,\"cache_read_input_tokens\":2000,\"output_tokens\":1}}}\n\n"+
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"+
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"shown\"}}\n\n")
		w.(http.Flusher).Flush()
		begun.Add(1)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); srv.Close() })
	return srv.URL, begun
}

// oneCost is what a task cost: the same number wherever it is told.
func (s *sandbox) oneCost(id string) int64 {
	s.t.Helper()
	listed := s.task(id).Usage
	var shown api.Summary
	r := s.roost("show", id, "--json")
	must(s.t, json.Unmarshal([]byte(r.out), &shown))
	var used struct {
		Total struct{ Usage api.Usage }
	}
	r = s.roost("usage", "--json")
	must(s.t, json.Unmarshal([]byte(r.out), &used))
	data, err := os.ReadFile(filepath.Join(s.root, "tasks", id, "history_item.json"))
	must(s.t, err)
	var item struct {
		TotalCost float64 `json:"totalCost"`
		TokensIn  int64   `json:"tokensIn"`
	}
	must(s.t, json.Unmarshal(data, &item))
	if listed.Cost == nil || shown.Usage.Cost == nil || used.Total.Usage.Cost == nil {
		s.t.Fatalf("a cost is unknown: %+v %+v %+v", listed, shown.Usage, used.Total.Usage)
	}
	micros := int64(*listed.Cost)
	if int64(*shown.Usage.Cost) != micros || int64(*used.Total.Usage.Cost) != micros || int64(item.TotalCost*1e6+0.5) != micros || item.TokensIn != listed.TokensIn || shown.Usage.TokensIn != listed.TokensIn {
		s.t.Errorf("list says %d, show %d, usage %d, history_item.json %v (%d and %d tokens)", micros, *shown.Usage.Cost, *used.Total.Usage.Cost, item.TotalCost, listed.TokensIn, item.TokensIn)
	}
	return micros
}

// A request that was killed while its reply came was paid for: it counts in every sum and
// against the task's limit, over any number of kills.
func TestKilledRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	url, begun := stalled(t)
	s.env("ANTHROPIC_API_KEY=sk-test", "ANTHROPIC_BASE_URL="+url, "ROOST_PROVIDER=anthropic")
	id := ""
	for n := 1; n <= 3; n++ {
		args := []string{"run", "--json", "--max-cost-task", "0.01", "words"}
		if id != "" {
			args = []string{"resume", "--json", id, "go on"}
		}
		cmd := s.command(args...)
		must(t, cmd.Start())
		saved := func() bool {
			return begun.Load() == int32(n) && len(s.list()) == 1 && s.list()[0].Usage.TokensIn == int64(3500*n)
		}
		s.within(time.Minute, "the usage of a request that stalls", saved)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		id = s.list()[0].ID
	}
	if r := s.roost("resume", id, "go on"); r.code != failure.ExitLimit || begun.Load() != 3 {
		t.Errorf("exit %d after three killed requests, and %d went out: %s", r.code, begun.Load(), r.err)
	}
	if cost := s.oneCost(id); cost < 10000 {
		t.Errorf("three requests cost %d millionths", cost)
	}
}

// What a cancelled request used stands in its row, too, where Roo reads it.
func TestCancelledRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	url, begun := stalled(t)
	s.env("ANTHROPIC_API_KEY=sk-test", "ANTHROPIC_BASE_URL="+url, "ROOST_PROVIDER=anthropic")
	cmd := s.command("run", "--json", "words")
	must(t, cmd.Start())
	s.within(time.Minute, "a request", func() bool { return begun.Load() == 1 && len(s.list()) == 1 && s.list()[0].Usage.TokensIn == 3500 })
	id := s.list()[0].ID
	must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	if cost := s.oneCost(id); cost == 0 {
		t.Error("a cancelled request costs nothing")
	}
	ui, err := os.ReadFile(filepath.Join(s.root, "tasks", id, "ui_messages.json"))
	must(t, err)
	var rows []struct{ Say, Text string }
	must(t, json.Unmarshal(ui, &rows))
	for _, row := range rows {
		var info map[string]any
		if row.Say == "api_req_started" && (json.Unmarshal([]byte(row.Text), &info) != nil || info["tokensIn"] != 3500.0 || info["cancelReason"] != "user_cancelled") {
			t.Errorf("the request's row: %s", row.Text)
		}
	}
}
