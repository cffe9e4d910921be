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

// TestCost returns the most that a test request costs; nil when the price is not known.
func TestCost(provider, model string) *money.USD {
	return costOf(provider, model, llm.Usage{Input: testInput, Output: testOutput})
}

// costOf returns what usage costs; nil when the price is not known.
func costOf(provider, model string, u llm.Usage) *money.USD {
	m, known := catalogue.Find(provider, model)
	micros, ok := m.Cost(u)
	if !known || !ok {
		return nil
	}
	return (*money.USD)(&micros)
}

// Test sends a test request. Without a model it asks the model that the user has set for the provider, else the
// provider's default. An error of the provider is a *llm.Error; a *setup.Error names a setting that is missing.
func (e *Engine) Test(ctx context.Context, provider, model string) (api.Tested, error) {
	if c := e.resolver().Config; c.Provider == provider {
		model = cmp.Or(model, c.Model)
	}
	model = cmp.Or(model, setup.DefaultModel(provider))
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
	out.Cost = costOf(provider, model, used)
	return out, nil
}
