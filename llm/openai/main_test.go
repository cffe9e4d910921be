package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialects are both APIs; what holds for a provider holds in each.
var dialects = map[string]openai.Options{
	"responses": {Model: "gpt-5.5"},
	"chat":      {Compatible: true, Model: "qwen"},
}

// each runs a test in both dialects against a server of its own.
func each(t *testing.T, f func(t *testing.T, s *llmtest.Server, p *openai.Provider)) {
	t.Helper()
	for name, o := range dialects {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t)
			f(t, s, provider(t, s.URL, o))
		})
	}
}

func provider(t *testing.T, url string, o openai.Options) *openai.Provider {
	t.Helper()
	o.BaseURL, o.APIKey = url, "sk-test-1234567890abcdef"
	o.Backoff.Sleep = func(context.Context, time.Duration) error { return nil }
	o.HTTPClient = &http.Client{Transport: wire.NewTransport()}
	p := openai.New(o)
	t.Cleanup(p.CloseIdle)
	return p
}

// outcome is everything that a stream yielded.
type outcome struct {
	text, thought string
	calls         []string // "index id name" and input of each
	usage         []llm.Usage
	retries       []llm.Retrying
	done          *llm.Done
	err           error
}

func (o outcome) kind() llm.Kind {
	var e *llm.Error
	if errors.As(o.err, &e) {
		return e.Kind
	}
	return ""
}

func (o outcome) blocks() []string {
	if o.done == nil {
		return nil
	}
	var out []string
	for _, b := range o.done.Blocks {
		out = append(out, string(b))
	}
	return out
}

func collect(ctx context.Context, p llm.Provider, req llm.Request) (o outcome) {
	inputs := map[int]string{}
	var heads []string
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			o.err = err
			break
		}
		switch c := chunk.(type) {
		case llm.TextDelta:
			o.text += c.Text
		case llm.ReasoningDelta:
			o.thought += c.Text
		case llm.ToolDelta:
			if c.Index == len(heads) {
				heads = append(heads, fmt.Sprintf("%s %s ", c.ID, c.Name))
			}
			inputs[c.Index] += c.Input
		case llm.UsageReport:
			o.usage = append(o.usage, c.Usage)
		case llm.Retrying:
			o.retries = append(o.retries, c)
		case llm.Done:
			o.done = &c
		}
	}
	for i, h := range heads {
		o.calls = append(o.calls, h+inputs[i])
	}
	return o
}

func ask(contents ...string) llm.Request {
	req := llm.Request{System: "Be kind.", Tools: []llm.ToolSpec{
		{Name: "look", Description: "Looks \"around\".", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)},
		{Name: "wait"},
	}}
	for i, c := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		if !strings.HasPrefix(c, "[") {
			b, _ := json.Marshal(c)
			c = string(b)
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Content: json.RawMessage(c)})
	}
	return req
}

// serve answers every request with a raw body, as imitations do.
func serve(t *testing.T, status int, header http.Header, body string) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.String()
}
