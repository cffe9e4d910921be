package catalogue_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		ok              bool
		output          int
	}{
		{"anthropic", "claude-sonnet-4-5", true, 64000},
		{"anthropic", "claude-sonnet-4-5-20250929", true, 64000},
		{"anthropic", "claude-3-5-sonnet-latest", true, 8192},
		{"anthropic", "claude-opus-4-20250514", true, 32000},
		{"anthropic", "claude-sonnet-5-5", true, 128000},
		{"anthropic", "claude-haiku-5-5", true, 128000},
		{"anthropic", "claude-opus-5", true, 128000}, // not taken for claude-opus-5-5
		{"anthropic", "claude-sonnet-5-6", false, 0},
		{"anthropic", "claude-opus-5-5[1m]", false, 0},
		{"openai", "gpt-4o-2024-08-06", true, 16384},
		{"openai", "gpt-4o-mini", true, 16384},
		{"google", "gemini-2.5-pro", true, 65536},
		{"google", "gemini-3.1-pro-preview", true, 65536},
		{"openai", "gpt-6.2-sol", true, 128000},
		{"openai", "gpt-6.2", false, 0},
		{"openai", "gpt-6-luna", true, 128000},
		{"anthropic", "claude-fable-5-2", true, 128000}, // not taken for claude-fable-5
		{"anthropic", "claude-sonnet-4-9", false, 0},
		{"anthropic", "claude-opus-9", false, 0},
		{"anthropic", "gpt-4o", false, 0},
		{"openai", "gpt-4o-audio", false, 0},
		{"openai-compatible", "gpt-4o", false, 0},
		{"anthropic", "", false, 0},
	} {
		m, ok := catalogue.Find(c.provider, c.model)
		if ok != c.ok || m.MaxOutput != c.output {
			t.Errorf("got %s %q: %v %v, want ok = c.ok and m.MaxOutput = c.output", c.provider, c.model, m, ok)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, catalogue.Date()); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, m := range catalogue.Models() {
		if checked, err := time.Parse(time.DateOnly, m.Checked); err != nil || m.Checked > catalogue.Date() {
			t.Errorf("%v: checked on %v, %v", m.IDs, checked, err)
		}
		for _, id := range m.IDs {
			if seen[m.Provider+id] {
				t.Errorf("%s stands twice", id)
			}
			seen[m.Provider+id] = true
		}
		tiers := []api.Prices{m.Prices}
		if m.Long != nil {
			tiers = append(tiers, m.Long.Prices)
			if *m.Long.Prices.Input <= *m.Prices.Input {
				t.Errorf("%v: the long tier is not dearer", m.IDs)
			}
		}
		for _, p := range tiers {
			if (p.Input == nil) != (p.Output == nil) || p.Input == nil && p.CacheRead != nil {
				t.Errorf("%v: half a price: %+v", m.IDs, p)
			}
			if p.Input != nil && (*p.Input <= 0 || *p.Output <= *p.Input || p.CacheRead != nil && *p.CacheRead >= *p.Input) {
				t.Errorf("%v: prices %+v", m.IDs, p)
			}
			if p.CacheWrite != nil && (*p.CacheWrite <= *p.Input || *p.CacheWrite > *p.Input*5/4) {
				t.Errorf("%v: cache write %d", m.IDs, *p.CacheWrite)
			}
		}
		if m.Context < m.MaxOutput || m.MaxOutput < 4096 {
			t.Errorf("%v: limits %d, %d", m.IDs, m.Context, m.MaxOutput)
		}
	}
}

func TestCost(t *testing.T) {
	sonnet, _ := catalogue.Find("anthropic", "claude-sonnet-4-5")
	gpt, _ := catalogue.Find("openai", "gpt-4o")
	haiku, _ := catalogue.Find("anthropic", "claude-haiku-5-5")
	opus, _ := catalogue.Find("anthropic", "claude-opus-5-5")
	sol, _ := catalogue.Find("openai", "gpt-6.2-sol")
	fable, _ := catalogue.Find("anthropic", "claude-fable-5-2")
	unpriced, _ := catalogue.Find("google", "gemini-3.1-pro-preview")
	for _, c := range []struct {
		name  string
		m     catalogue.Model
		u     llm.Usage
		micro int64
		ok    bool
	}{
		{"all kinds", sonnet, llm.Usage{Input: 1000, Output: 500, CacheWrite: 2000, CacheRead: 3000}, 18900, true},
		{"writing has a price of its own", sol, llm.Usage{Input: 1000, CacheWrite: 1000}, 4500, true},
		{"writing costs what input costs", gpt, llm.Usage{Input: 1000, CacheWrite: 1000}, 5000, true},
		{"nothing", sonnet, llm.Usage{}, 0, true},
		{"half goes up", sonnet, llm.Usage{CacheRead: 5}, 2, true}, // 1.5
		{"below half goes down", sonnet, llm.Usage{CacheRead: 1}, 0, true},
		{"at the border", sonnet, llm.Usage{Input: 200_000}, 600_000, true},
		{"above it", sonnet, llm.Usage{Input: 100_000, CacheRead: 100_001}, 660_001, true},
		{"the short list", haiku, llm.Usage{Input: 50_000, CacheRead: 50_000, Output: 1000}, 6000, true},
		{"the long list", haiku, llm.Usage{Input: 50_001, CacheRead: 50_000, Output: 1000}, 30_001, true},
		{"cache reads at a twentieth", opus, llm.Usage{CacheRead: 1_000_000}, 200_000, true},
		{"the whole request at the long list", sol, llm.Usage{Input: 200_000, CacheRead: 72_001, Output: 1000}, 829_400, true},
		{"a price that is known", fable, llm.Usage{Input: 1000, Output: 1000}, 48_000, true},
		{"its caches' is not", fable, llm.Usage{Input: 1000, CacheRead: 1}, 0, false},
		{"limits without a price", unpriced, llm.Usage{Output: 1}, 0, false},
		{"no price", fable, llm.Usage{CacheWrite: 1}, 0, false},
		{"unknown model", catalogue.Model{}, llm.Usage{Input: 1}, 0, false},
		{"negative", sonnet, llm.Usage{Input: -1}, 0, false},
		{"absurd", sonnet, llm.Usage{Output: math.MaxInt64 / 2}, 0, false},
	} {
		if got, ok := c.m.Cost(c.u); got != c.micro || ok != c.ok {
			t.Errorf("%s: %d %v, want %d %v", c.name, got, ok, c.micro, c.ok)
		}
	}
}

// Whole numbers and doubles come to the same, up to the rounding, for every model and
// on both sides of its border.
func TestCostsAreThoseOfTheList(t *testing.T) {
	all := catalogue.Models()
	rapid.Check(t, func(t *rapid.T) {
		m := all[rapid.IntRange(0, len(all)-1).Draw(t, "model")]
		n := rapid.Int64Range(0, 2_000_000)
		u := llm.Usage{Input: n.Draw(t, "in"), Output: n.Draw(t, "out"), CacheRead: n.Draw(t, "read")}
		micro, ok := m.Cost(u)
		if m.Prices.Input == nil || m.Prices.CacheRead == nil {
			if ok && u.Input > 0 && u.CacheRead > 0 {
				t.Fatalf("%v: a cost of %d without a price", m.IDs, micro)
			}
			return
		}
		list := m.Prices
		if m.Long != nil && u.Input+u.CacheRead > m.Long.Above {
			list = m.Long.Prices
		}
		if f := dollars(list, u); !ok || math.Abs(f*1e6-float64(micro)) > 0.51 {
			t.Fatalf("%d and %v", micro, f)
		}
	})
}

func ExampleFind() {
	m, _ := catalogue.Find("anthropic", "claude-sonnet-4-5-20250929")
	u := llm.Usage{Input: 1000, Output: 500, CacheWrite: 2000, CacheRead: 3000}
	micro, _ := m.Cost(u)
	fmt.Println(m.Context, micro)
	_, ok := catalogue.Find("anthropic", "claude-of-tomorrow")
	fmt.Println(ok)
	// Output:
	// 200000 18900
	// false
}
