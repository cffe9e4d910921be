package catalogue_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/money"
)

// counter is a provider that answers nothing and reports the counts that a test gave it.
type counter struct{ events string }

func (c *counter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, c.events)
}

// used is what a request used as a provider reads it from the counts of a case, in
// the words of that case's API.
func used(t *testing.T, c *counter, url string, in conformance.Value) llm.Usage {
	t.Helper()
	n := func(key string) int64 { return in.Int(key, 0) }
	var p llm.Provider
	switch style := in.Str("style"); style {
	case "anthropic":
		p = anthropic.New(anthropic.Options{APIKey: "k", BaseURL: url})
		c.events = fmt.Sprintf(`event: message_start
data: {"type":"message_start","message":{"id":"m","model":"m","role":"assistant","content":[],"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":0}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}

event: message_stop
data: {"type":"message_stop"}

`, n("input"), n("cache_write"), n("cache_read"), n("output"))
	case "openai":
		p = openai.New(openai.Options{APIKey: "k", BaseURL: url})
		c.events = fmt.Sprintf(`data: {"type":"response.output_text.delta","delta":"hi"}

data: {"type":"response.completed","response":{"id":"r","usage":{"input_tokens":%d,"output_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d}}}}

`, n("input"), n("output"), n("cache_read"), n("cache_write"))
	default:
		t.Fatalf("a style of its own: %q", style)
	}
	for chunk, err := range p.Stream(t.Context(), llm.Request{Model: "m", MaxTokens: 10, Messages: []llm.Message{{Role: "user", Content: []byte(`"hi"`)}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := chunk.(llm.Done); ok {
			return done.Usage
		}
	}
	t.Fatal("the reply did not end")
	return llm.Usage{}
}

// asked is the model that a case asks, as the table would have it. Its long tier is
// there when the tier of service that answers has one.
func asked(in conformance.Value) (m catalogue.Model) {
	m.Provider = in.Str("style")
	of := in.Get("model")
	long := of.Get("longContextPricing")
	price := func(key string) (plain, times *money.USD) {
		if !of.Has(key) {
			return nil, nil
		}
		usd, by := of.Float(key), 1.0
		if long.Has(key + "Multiplier") {
			by = long.Float(key + "Multiplier")
		}
		micros := func(f float64) *money.USD { return new(money.USD(math.Round(f * 1e6))) }
		return micros(usd), micros(usd * by)
	}
	var above api.Prices
	m.Prices.Input, above.Input = price("inputPrice")
	m.Prices.Output, above.Output = price("outputPrice")
	m.Prices.CacheWrite, above.CacheWrite = price("cacheWritesPrice")
	m.Prices.CacheRead, above.CacheRead = price("cacheReadsPrice")
	tier := "default"
	if in.Has("service_tier") {
		tier = in.Str("service_tier")
	}
	if long != nil && (!long.Has("appliesToServiceTiers") || slices.Contains(long.Get("appliesToServiceTiers").Strings(), tier)) {
		m.Long = &api.LongPrices{Above: long.Int("thresholdTokens", 0), Prices: above}
	}
	return m
}

// dollars is Roo's sum over a list of prices: doubles, added in its order. A price
// that is not there is 0 to Roo.
func dollars(p api.Prices, u llm.Usage) (sum float64) {
	for _, part := range []struct {
		price  *money.USD
		tokens int64
	}{{p.CacheWrite, u.CacheWrite}, {p.CacheRead, u.CacheRead}, {p.Input, u.Input}, {p.Output, u.Output}} {
		if part.price != nil {
			sum += float64((float64(*part.price) / 1e6 / 1e6) * float64(part.tokens))
		}
	}
	return sum
}

// counted is what a request used by the counts of a case. OpenAI counts the tokens of the
// cache as part of the input; of more than were sent, those that were read count first, and
// what was written only as far as there is input left.
func counted(in conformance.Value) llm.Usage {
	n := func(key string) int64 { return in.Int(key, 0) }
	u := llm.Usage{Input: n("input"), Output: n("output"), CacheRead: n("cache_read"), CacheWrite: n("cache_write")}
	if in.Str("style") == "openai" {
		u.CacheRead = min(u.CacheRead, u.Input)
		u.CacheWrite = min(u.CacheWrite, u.Input-u.CacheRead)
		u.Input -= u.CacheRead + u.CacheWrite
	}
	return u
}

// free is the model with every price that is not known at nothing.
func free(m catalogue.Model) catalogue.Model {
	fill := func(p api.Prices) api.Prices {
		for _, price := range []**money.USD{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite} {
			if *price == nil && (price != &p.CacheWrite || m.Provider != "openai") {
				*price = new(money.USD)
			}
		}
		return p
	}
	if m.Prices = fill(m.Prices); m.Long != nil {
		m.Long = &api.LongPrices{Above: m.Long.Above, Prices: fill(m.Long.Prices)}
	}
	return m
}

// The cost of a request is Roo's, from the provider's counts on, rounded to the
// micro-dollar. We choose otherwise where a price is not known (Roo counts 0, here
// the cost is unknown, or the price of input where OpenAI's rules set it), where more
// tokens come from the cache than were sent, and for long requests to Anthropic, which
// Roo prices as short ones.
func TestVectorsCost(t *testing.T) {
	var server counter
	web := httptest.NewServer(&server)
	defer web.Close()
	conformance.Run(t, "cost", func(t *testing.T, c conformance.Case) (choice bool) {
		m, u := asked(c.Input), used(t, &server, web.URL, c.Input)
		total := u.Input + u.CacheRead + u.CacheWrite
		if want := c.Want.Int("total_input_tokens", -1); total != want {
			t.Errorf("%d tokens of input, want %d", total, want)
		}
		if want := counted(c.Input); u.Input != want.Input || u.CacheRead != want.CacheRead || u.CacheWrite != want.CacheWrite {
			t.Errorf("used %+v, want %+v", u, want)
		}
		if want := c.Want.Int("total_output_tokens", -1); u.Output != want {
			t.Errorf("%d tokens of output, want %d", u.Output, want)
		}
		list, want := m.Prices, c.Want.Float("total_cost")
		if m.Long != nil && total > m.Long.Above {
			list = m.Long.Prices
			choice = m.Provider == "anthropic"
		}
		if list.CacheWrite == nil && u.CacheWrite > 0 && m.Provider == "openai" {
			list.CacheWrite, choice = list.Input, true
		}
		if n := c.Input.Int("cache_read", 0) + c.Input.Int("cache_write", 0); m.Provider == "openai" && n > total {
			choice = true
		}
		if choice {
			want = dollars(list, counted(c.Input))
		}
		u = counted(c.Input)
		unknown := u.Input > 0 && list.Input == nil || u.Output > 0 && list.Output == nil ||
			u.CacheRead > 0 && list.CacheRead == nil || u.CacheWrite > 0 && list.CacheWrite == nil
		micros, ok := m.Cost(u)
		if ok == unknown {
			t.Errorf("the cost is known: %v", ok)
		}
		if unknown { // the rest of it is counted as ever
			choice = true
			micros, _ = free(m).Cost(u)
		}
		if d := float64(micros) - want*1e6; math.Abs(d) > 0.501 {
			t.Errorf("%d micro-dollars, want %v dollars", micros, want)
		}
		return choice
	})
}

// Long prices are those of the whole request, from the first token above the border.
func TestTheBorderOfLongRequestsIsExact(t *testing.T) {
	in, out := money.USD(1_000_000), money.USD(2_000_000)
	m := catalogue.Model{Model: api.Model{
		Provider: "anthropic", Prices: api.Prices{Input: &in, CacheRead: &in, CacheWrite: &in, Output: &in},
		Long: &api.LongPrices{Above: 100, Prices: api.Prices{Input: &out, CacheRead: &out, CacheWrite: &out, Output: &out}},
	}}
	for u, want := range map[llm.Usage]int64{
		{Input: 100}:      100,
		{Input: 101}:      202,
		{CacheRead: 101}:  202,
		{CacheWrite: 101}: 202,
		{Input: 34, CacheRead: 33, CacheWrite: 33}: 100,
		{Input: 34, CacheRead: 34, CacheWrite: 33}: 202,
		{Input: 100, Output: 50}:                   150, // what comes back makes no request long
	} {
		if got, ok := m.Cost(u); got != want || !ok {
			t.Errorf("%+v costs %d (%v), want %d", u, got, ok, want)
		}
	}
}
