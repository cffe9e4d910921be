package money

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestString(t *testing.T) {
	for u, want := range map[USD]string{
		0: "0.00", 1: "0.000001", 10: "0.00001", 50_000: "0.05", 1_234_567: "1.234567", 1_500_000: "1.50", 12_000_000: "12.00",
		-1: "-0.000001", -2_500_000: "-2.50", math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := u.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(u), got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]USD{
		"0": 0, "1": 1e6, "0.25": 250_000, "12.345678": 12_345_678, "-3.5": -3_500_000, "1.": 1e6, "007": 7e6,
		"-0": 0, "9223372036854.775807": math.MaxInt64, "-9223372036854.775808": math.MinInt64,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", ".5", "-.5", "x", "1,5", "1e3", "0x1", "1_000", " 1", "1 ", "+1", "--1", "-+1", "1.-5", "1.+5", "1.2.3", "$1", "NaN", "Inf", "١",
		"0.0000001", "9223372036854.775808", "-9223372036854.775809", "99999999999999999999", "-99999999999999999999", "18446744073709551617",
	} {
		if got, err := Parse(text); err == nil || got != 0 || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("Parse(%q) = %d, %v; want an error that names it", text, got, err)
		}
	}
}

// What is written can be read, as text and as JSON, to the last micro-dollar.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := USD(rapid.Int64().Draw(t, "micros"))
		if got, err := Parse(u.String()); err != nil || got != u {
			t.Fatalf("Parse(%s) = %d, %v", u, got, err)
		}
		data, err := json.Marshal(map[string]USD{"cost": u})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]USD
		if err := json.Unmarshal(data, &back); err != nil || back["cost"] != u {
			t.Fatalf("%s came back as %v, %v", data, back, err)
		}
		exact := new(big.Rat).SetFrac(big.NewInt(int64(u)), big.NewInt(1e6))
		if shown, ok := new(big.Rat).SetString(u.String()); !ok || shown.Cmp(exact) != 0 {
			t.Fatalf("%d is shown as %s", int64(u), u)
		}
	})
}

func TestUnmarshalJSON(t *testing.T) {
	u := USD(7)
	for data, want := range map[string]USD{`"1.5"`: 1_500_000, `1.5`: 1_500_000, `0`: 0, `-2`: -2e6} {
		if err := json.Unmarshal([]byte(data), &u); err != nil || u != want {
			t.Errorf("%s: %d, %v; want %d", data, u, err, want)
		}
	}
	for _, data := range []string{`"x"`, `true`, `{}`, `[]`, `""`, `"\"1\""`, `1e400`} {
		u = 7
		if err := json.Unmarshal([]byte(data), &u); err == nil || u != 7 {
			t.Errorf("%s: %d, %v; want an error and the amount as it was", data, u, err)
		}
	}
	u = 7
	if err := json.Unmarshal([]byte(`null`), &u); err != nil || u != 7 {
		t.Errorf("null: %d, %v; it says nothing, as for encoding/json's own types", u, err)
	}
}

func TestFromFloat(t *testing.T) {
	for f, want := range map[float64]USD{
		0: 0, 0.1: 100_000, 0.0000004: 0, 0.0000005: 1, -0.0000005: -1, 0.000001: 1, 1.0000015: 1_000_002, 0.034: 34_000, 2.675: 2_675_000,
		math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64, 1e300: math.MaxInt64, -1e300: math.MinInt64, math.NaN(): 0,
	} {
		if got := FromFloat(f); got != want {
			t.Errorf("FromFloat(%v) = %d, want %d", f, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		// Doubles hold every micro-dollar up to some billion dollars.
		u := USD(rapid.Int64Range(-1e15, 1e15).Draw(t, "micros"))
		if got := FromFloat(u.Float()); got != u {
			t.Fatalf("%d became %d", u, got)
		}
	})
}

func ExampleParse() {
	limit, err := Parse("0.25")
	fmt.Println(limit, err)
	_, err = Parse("25 cents")
	fmt.Println(err)
	// Output:
	// 0.25 <nil>
	// amount "25 cents": want dollars in digits, such as 0.25, with at most six decimal places
}
