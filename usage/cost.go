package usage

import (
	"math"
	"math/bits"
)

// Style says how a provider counts input tokens.
type Style string

// The styles.
const (
	Anthropic Style = "anthropic" // input excludes what went to or came from the cache
	OpenAI    Style = "openai"    // input includes it
)

// Prices are in USD per million tokens; a price that is not known is 0.
type Prices struct {
	Input, Output, CacheWrites, CacheReads float64
	LongContext                            *LongContext
}

// LongContext changes the prices of requests above a size.
type LongContext struct {
	Threshold int64 // total input tokens; a request must have more
	// Multipliers of the prices; nil leaves a price as it is.
	Input, Output, CacheWrites, CacheReads *float64
	Tiers                                  []string // service tiers it applies to; nil = all
}

// Request is what one request used.
type Request struct {
	Input, Output, CacheWrites, CacheReads int64  // tokens, Input as the provider counts it (see Style)
	Tier                                   string // service tier, "" = default
}

// Cost is what a request cost.
type Cost struct {
	Input  int64   // total input tokens, cache included
	Output int64   // output tokens
	USD    float64 // Roo's double: the same operations in the same order
	Micros int64   // millionths of a USD, for sums that must not drift
}

// Price computes what a request cost.
//
// USD is Roo's value: (price/1e6)*tokens, added in the order cache writes, cache
// reads, input, output. Unlike Roo, long-context prices apply to both styles.
//
// Micros is exact: each price is taken to the millionth of a USD per million
// tokens, the four products are added as integers, and the sum is rounded once,
// half up. Sums of Micros over requests are exact sums of what is shown for each
// of them. It saturates instead of overflowing.
func Price(style Style, p Prices, r Request) Cost {
	total, base := r.Input, r.Input
	if style == Anthropic {
		total = r.Input + r.CacheWrites + r.CacheReads
	} else {
		base = max(0, r.Input-r.CacheWrites-r.CacheReads)
	}
	p = p.forSize(total, r.Tier)
	writes := float64((p.CacheWrites / 1e6) * float64(r.CacheWrites))
	reads := float64((p.CacheReads / 1e6) * float64(r.CacheReads))
	in := float64((p.Input / 1e6) * float64(base))
	out := float64((p.Output / 1e6) * float64(r.Output))
	usd := float64(float64(float64(writes+reads)+in) + out)
	var sum micros
	sum.add(p.CacheWrites, r.CacheWrites)
	sum.add(p.CacheReads, r.CacheReads)
	sum.add(p.Input, base)
	sum.add(p.Output, r.Output)
	return Cost{Input: total, Output: r.Output, USD: usd, Micros: sum.round()}
}

func (p Prices) forSize(total int64, tier string) Prices {
	l := p.LongContext
	if l == nil || total <= l.Threshold || !l.applies(tier) {
		return p
	}
	times := func(price *float64, by *float64) {
		if by != nil {
			*price *= *by
		}
	}
	times(&p.Input, l.Input)
	times(&p.Output, l.Output)
	times(&p.CacheWrites, l.CacheWrites)
	times(&p.CacheReads, l.CacheReads)
	return p
}

func (l *LongContext) applies(tier string) bool {
	if l.Tiers == nil {
		return true
	}
	if tier == "" {
		tier = "default"
	}
	for _, t := range l.Tiers {
		if t == tier {
			return true
		}
	}
	return false
}

// micros adds price*tokens in 128 bits, in 1e-12 USD: a price of 1 USD per
// million tokens is 1e6 of these a token.
type micros struct{ hi, lo uint64 }

func (m *micros) add(price float64, tokens int64) {
	if !(price > 0) || tokens <= 0 {
		return
	}
	each := math.Round(price * 1e6)
	unit := uint64(math.MaxInt64)
	if each < math.MaxInt64 {
		unit = uint64(each)
	}
	hi, lo := bits.Mul64(unit, uint64(tokens))
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, lo, 0)
	m.hi, _ = bits.Add64(m.hi, hi, carry)
}

func (m *micros) round() int64 {
	lo, carry := bits.Add64(m.lo, 500_000, 0)
	hi := m.hi + carry
	if hi >= 1_000_000 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 1_000_000)
	return int64(min(q, math.MaxInt64))
}

// MicrosOf turns a cost in USD that was reported or stored as a double into
// millionths of a USD, rounded to the nearest. What is not a cost (negative, not
// a number) is 0.
func MicrosOf(usd float64) int64 {
	if !(usd > 0) {
		return 0
	}
	m := math.Round(usd * 1e6)
	if m >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(m)
}
