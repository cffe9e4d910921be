package api

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"testing"
)

// The share of the window is known where both numbers are, and has a bound that fits a line.
func TestContextShare(t *testing.T) {
	for _, c := range []struct {
		tokens, window int64
		want           int64
		ok             bool
	}{
		{50_000, 200_000, 25, true},
		{1, 200_000, 0, true},
		{199_999, 200_000, 99, true},
		{300_000, 200_000, 150, true},
		{90_000_000, 200_000, 999, true},
		{100_000_000_000_000_000, 200_000, 999, true},
		{50_000, 0, 0, false},
		{0, 200_000, 0, false},
		{-1, 200_000, 0, false},
	} {
		got, ok := Summary{ContextTokens: c.tokens, ContextWindow: c.window}.ContextShare()
		if got != c.want || ok != c.ok {
			t.Errorf("%d of %d tokens: got %d%%, known %v, want %d%%, %v", c.tokens, c.window, got, ok, c.want, c.ok)
		}
	}
}

// A token of a cache counts once, in lists as in the picker, and a sum that is too large is the largest number.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		usage Usage
		want  int64
	}{
		{Usage{TokensIn: 100, TokensOut: 7, CacheReads: 80, CacheWrites: 15}, 107},
		{Usage{TokensIn: math.MaxInt64, TokensOut: 1}, math.MaxInt64},
	} {
		if got := c.usage.Tokens(); got != c.want {
			t.Errorf("%+v: got %d tokens, want %d", c.usage, got, c.want)
		}
	}
}

// What lists make of lists: all items, some items, and all items or an error.
func TestLists(t *testing.T) {
	number := func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil
	}
	for _, c := range []struct {
		given  []string
		each   []int
		some   []int
		failed string
	}{
		{given: nil, each: []int{}},
		{given: []string{"1", "22"}, each: []int{1, 2}, some: []int{1, 22}},
		{given: []string{"a", "3", "bb"}, each: []int{1, 1, 2}, some: []int{3}, failed: "a"},
		{given: []string{"a"}, each: []int{1}, failed: "a"},
	} {
		if got := Each(c.given, func(s string) int { return len(s) }); !reflect.DeepEqual(got, c.each) {
			t.Errorf("Each of %q: got %#v, want %#v", c.given, got, c.each)
		}
		if got := Some(c.given, number); !reflect.DeepEqual(got, c.some) {
			t.Errorf("Some of %q: got %#v, want %#v", c.given, got, c.some)
		}
		got, err := TryEach(c.given, func(s string) (int, error) {
			if n, ok := number(s); ok {
				return n, nil
			}
			return 0, errors.New(s)
		})
		if c.failed == "" && (err != nil || len(got) != len(c.given)) ||
			c.failed != "" && (err == nil || got != nil || err.Error() != c.failed) {
			t.Errorf("TryEach of %q: got %#v, %v, want the error %q", c.given, got, err, c.failed)
		}
	}
}
