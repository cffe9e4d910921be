// Package money represents amounts of US dollars as integer micro-dollars.
//
// Floats appear only where Roo's JSON needs a double. One request costs fractions of a cent, so cents are too coarse;
// int64 micro-dollars hold nine trillion dollars.
package money

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount in micro-dollars.
type USD int64

// micros are the micro-dollars of a dollar.
const micros = 1e6

// String returns the shortest decimal, with at least two places: "0.05", "1.234567".
func (u USD) String() string {
	sign, v := "", uint64(u)
	if u < 0 {
		sign, v = "-", -v // as unsigned, so that the least amount has a positive one
	}
	text := fmt.Sprintf("%s%d.%06d", sign, v/micros, v%micros)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}

// Cents returns the amount rounded to a cent.
func (u USD) Cents() USD { return (min(u, math.MaxInt64-5_000) + 5_000) / 10_000 * 10_000 }

// MarshalJSON writes a decimal string, because many readers turn JSON numbers into doubles.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(u.String())), nil }

// UnmarshalJSON reads what MarshalJSON writes, and plain numbers without exponent. null and errors leave the amount
// unchanged.
func (u *USD) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if n := len(text); n >= 2 && text[0] == '"' {
		text = text[1 : n-1] // no amount needs an escape
	}
	v, err := Parse(text)
	if err == nil {
		*u = v
	}
	return err
}

// Parse reads a decimal amount such as "1", "0.25" or "-12.345678": digits, at most one point, a minus sign in front.
// It refuses more than six places, which USD cannot hold.
func Parse(text string) (USD, error) {
	unsigned, negative := strings.CutPrefix(text, "-")
	whole, frac, _ := strings.Cut(unsigned, ".")
	if whole == "" || len(frac) > 6 || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, fmt.Errorf("amount %q: want dollars in digits, such as 0.25, with at most six decimal places", text)
	}
	v, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 6-len(frac)), 10, 64)
	most := uint64(math.MaxInt64)
	if negative {
		most++
	}
	if err != nil || v > most {
		return 0, fmt.Errorf("amount %q: more dollars than can be counted (%v at most)", text, USD(math.MaxInt64))
	}
	if negative {
		v = -v
	}
	return USD(v), nil
}

// FromFloat rounds a double of dollars to the nearest micro-dollar, and clamps larger values to the largest or least
// amount; NaN is 0. Only for Roo's JSON, where a cost may be any number: everything else is integers.
func FromFloat(f float64) USD {
	switch f = math.Round(f * micros); {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64: // as a double, it is one more
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return USD(f)
}

// Float returns the amount as a double of dollars, for Roo's JSON.
func (u USD) Float() float64 { return float64(u) / micros }
