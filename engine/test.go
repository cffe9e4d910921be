package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
)

// A test request is one short question outside any task: it shows whether key, address and model of a provider work.
const (
	testWords   = "Reply with the single word ready."
	testInput   = 200 // tokens, more than any provider makes of the words
	testOutput  = 64
	testTimeout = time.Minute
	testText    = 200 // characters of the reply that are shown
)

// TestModel is the model that a test request of a provider asks when none is named; "" when one has to be named.
func (e *Engine) TestModel(provider string) string {
	if c := e.resolver().Config; c.Provider == provider && c.Model != "" {
		return c.Model
	}
	return setup.DefaultModel(provider)
}

// TestCost is the most that a test request costs; nil when the price is not known.
func TestCost(provider, model string) *money.USD {
	m, known := catalogue.Find(provider, model)
	micros, ok := m.Cost(llm.Usage{Input: testInput, Output: testOutput})
	if !known || !ok {
		return nil
	}
	return (*money.USD)(&micros)
}

// Test sends a test request. An error of the provider is a *llm.Error, what is not set up a *setup.Error.
func (e *Engine) Test(ctx context.Context, provider, model string) (api.Tested, error) {
	model = cmp.Or(model, e.TestModel(provider))
	out := api.Tested{Provider: provider, Model: model}
	p, err := e.resolver().Provider(task.Settings{Provider: provider, Model: model})
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, testTimeout, fmt.Errorf("test %s: it did not answer in %s", provider, testTimeout))
	defer cancel()
	begun := e.opt.Now()
	var text strings.Builder
	var used llm.Usage
	for chunk, err := range p.LLM.Stream(ctx, llm.Request{
		Model:     model,
		Messages:  []llm.Message{{Role: "user", Content: []byte(`"` + testWords + `"`)}},
		MaxTokens: testOutput,
	}) {
		if err != nil {
			return out, err
		}
		switch c := chunk.(type) {
		case llm.TextDelta:
			if text.Len() < testText {
				text.WriteString(c.Text)
			}
		case llm.UsageReport:
			used = c.Usage
		case llm.Done:
			used = c.Usage
		}
	}
	shown := []rune(strings.TrimSpace(text.String()))
	out.Text, _ = p.Masks.String(string(shown[:min(len(shown), testText)]))
	out.In, out.Out, out.Elapsed = used.Input+used.CacheRead+used.CacheWrite, used.Output, e.opt.Now()-begun
	if m, known := catalogue.Find(provider, model); known {
		if micros, ok := m.Cost(used); ok {
			out.Cost = (*money.USD)(&micros)
		}
	}
	return out, nil
}
