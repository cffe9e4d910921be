package app

import (
	"math"
	"testing"

	"github.com/roost-dev/roost/money"
)

func TestAmountsForPeople(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{
		0: "$0.00", 1: "<$0.01", 4_999: "<$0.01", 5_000: "$0.01", 75_047_291: "$75.05", 1_234_567_890_000: "$1,234,567.89", 999_995_000: "$1,000.00",
		math.MaxInt64: "$9,223,372,036,854.77",
	} {
		if got := Cents(new(money.USD(micros))); got != want {
			t.Errorf("%d micro-dollars: got %s, want %s", micros, got, want)
		}
	}
	if got := Cents(nil) + Dollars(nil); got != "-unknown" {
		t.Errorf("unknown amounts: got %s", got)
	}
	a := &App{}
	a.Flags.Verbose = true
	if got := a.Dollars(new(money.USD(1_234_000_001))); got != "$1,234.000001" {
		t.Errorf("with -v: got %s", got)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 184_068_429: "184,068,429", -1234: "-1,234"} {
		if got := Count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestCutStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{{"/home/me/garden", 0, "/home/me/garden"}, {"/home/me/garden", 8, "…/garden"}, {"garden", 6, "garden"}, {"/日本語", 5, "…本語"}} {
		if got := CutStart(tt.text, tt.most); got != tt.want {
			t.Errorf("%s in %d columns: got %s, want %s", tt.text, tt.most, got, tt.want)
		}
	}
}
