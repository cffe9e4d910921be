// Package money is amounts of US dollars as integer micro-dollars.
//
// Floats appear only where Roo's JSON wants its double. One request costs
// fractions of a cent, so cents would not do; int64 micro-dollars hold nine
// trillion dollars.
package money

import (
	"fmt"
	"strconv"
	"strings"
)

// USD is an amount in micro-dollars.
type USD int64

// String is the shortest decimal, with at least two places: "0.05", "1.234567".
func (u USD) String() string {
	sign := ""
	v := int64(u)
	if v < 0 {
		sign, v = "-", -v
	}
	text := fmt.Sprintf("%s%d.%06d", sign, v/1e6, v%1e6)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}

// MarshalJSON writes a decimal string: numbers in JSON are doubles to many readers.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(u.String())), nil }

// UnmarshalJSON reads what MarshalJSON writes, and plain numbers.
func (u *USD) UnmarshalJSON(data []byte) error {
	v, err := Parse(strings.Trim(string(data), `"`))
	*u = v
	return err
}

// Parse reads a decimal amount such as "1", "0.25" or "12.345678". More than six
// places are refused: they cannot be kept.
func Parse(text string) (USD, error) {
	whole, frac, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if whole == "" || len(frac) > 6 {
		return 0, fmt.Errorf("amount %q: want dollars with at most six decimal places", text)
	}
	frac += strings.Repeat("0", 6-len(frac))
	w, err1 := strconv.ParseInt(whole, 10, 64)
	f, err2 := strconv.ParseUint(frac, 10, 63)
	if err1 != nil || err2 != nil || w > 9e12 {
		return 0, fmt.Errorf("amount %q: not a number of dollars", text)
	}
	v := w*1e6 + int64(f)
	if strings.HasPrefix(text, "-") {
		v = -v
	}
	return USD(v), nil
}

// FromFloat rounds a double of dollars to the nearest micro-dollar. For Roo's
// JSON only: everything else is integers.
func FromFloat(f float64) USD {
	if f < 0 {
		return USD(f*1e6 - 0.5)
	}
	return USD(f*1e6 + 0.5)
}

// Float is the amount as a double of dollars, for Roo's JSON.
func (u USD) Float() float64 { return float64(u) / 1e6 }
