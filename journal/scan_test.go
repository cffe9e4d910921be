package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyJSON is a valid JSON text of any shape, with blanks where they may stand.
func anyJSON(depth int) *rapid.Generator[string] {
	blank := rapid.SampledFrom([]string{"", "", "", " ", "\t", "\n", "\r\n "})
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{
			`null`, `true`, `false`, `0`, `-0`, `1.5`, `-1e9`, `1E+2`, `0.0e-0`, `""`, `"\\\"\/\b\f\n\r\t"`, `"\u00e9\ud800"`,
			`"é日本🙂"`, `[]`, `{}`, `"[{"`,
		}),
		rapid.Map(rapid.String(), func(s string) string { b, _ := json.Marshal(s); return string(b) }),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.Custom(func(t *rapid.T) string {
		sub := anyJSON(depth - 1)
		b := func() string { return blank.Draw(t, "blank") }
		n := rapid.IntRange(0, 3).Draw(t, "n")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return leaf.Draw(t, "leaf")
		case 1:
			parts := make([]string, n)
			for i := range parts {
				parts[i] = b() + sub.Draw(t, "element") + b()
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i] = b() + leafKey.Draw(t, "key") + b() + ":" + b() + sub.Draw(t, "value") + b()
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

var leafKey = rapid.SampledFrom([]string{`"a"`, `""`, `"\u0061"`, `"é"`, `"a\"b"`})

// The scanner finds the end of every value, whatever stands behind it.
func TestScannerFindsTheEndOfAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyJSON(3).Draw(t, "value")
		if !json.Valid([]byte(v)) {
			t.Fatalf("the test's own JSON is wrong: %s", v)
		}
		before, behind := rapid.SampledFrom([]string{"", "xx", "{"}).Draw(t, "before"), rapid.SampledFrom([]string{"", ",", "}", "]", " 1", `"`}).Draw(t, "behind")
		if strings.HasSuffix(v, "0") || strings.IndexByte("123456789", v[len(v)-1]) >= 0 {
			behind = strings.TrimPrefix(behind, " ") // a number goes on with a digit
			if behind == "1" {
				behind = ""
			}
		}
		if got := skipValue([]byte(before+v+behind), len(before), 0); got != len(before)+len(v) {
			t.Fatalf("%q in %q ends at %d, want %d", v, before+v+behind, got, len(before)+len(v))
		}
	})
}

// A text with one byte changed, cut or doubled is taken exactly when
// encoding/json takes it.
func TestScannerAgreesOnBrokenText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := []byte(anyJSON(3).Draw(t, "value"))
		i := rapid.IntRange(0, len(v)-1).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "wound") {
		case 0:
			v[i] = rapid.SampledFrom([]byte("{}[]:,\"\\0e.-+ntu\x00\x1f\x7f\n ")).Draw(t, "byte")
		case 1:
			v = v[:i]
		case 2:
			v = append(v[:i:i], v[i+1:]...)
		case 3:
			v = append(v[:i+1:i+1], v[i:]...)
		}
		start := skipSpace(v, 0)
		end := skipValue(v, start, 0)
		got := end >= 0 && skipSpace(v, end) == len(v)
		if want := json.Valid(v); got != want {
			t.Fatalf("%q: %v, encoding/json says %v", v, got, want)
		}
	})
}

func TestScannerTable(t *testing.T) {
	for text, valid := range map[string]bool{
		`1`: true, `-1`: true, `01`: false, `-`: false, `+1`: false, `1.`: false, `.5`: false, `1e`: false, `1e+`: false, `1.0E-7`: true,
		`-0`: true, `00`: false, `0x1`: false, `1_0`: false, `Infinity`: false, `NaN`: false,
		`"`: false, `"\`: false, `"\q"`: false, `"\u12"`: false, `"\u12G4"`: false, `"\uD834\uDD1E"`: true, "\"\t\"": false, "\"\x7f\"": true,
		"\"\xff\xfe\"": true, // bytes are not looked at: WTF-8 passes
		`tru`:          false, `true`: true, `True`: false, `nul`: false, `null`: true, `fals`: false, `false`: true, `undefined`: false,
		`[1,]`: false, `[,1]`: false, `[1 2]`: false, `[1`: false, `[`: false, `]`: false, `[[]]`: true,
		`{"a"}`: false, `{"a":}`: false, `{"a":1,}`: false, `{a:1}`: false, `{"a":1 "b":2}`: false, `{`: false, `{"a":1}`: true, `{1:1}`: false,
		``: false, `//`: false, `'a'`: false,
	} {
		if got := skipValue([]byte(text), 0, 0) == len(text) && text != ""; got != valid {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Nesting is bounded: a hostile line must not exhaust the stack.
func TestScannerBoundsNesting(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		for _, c := range []struct {
			depth int
			taken bool
		}{{100, true}, {maxDepth, true}, {maxDepth + 2, false}, {1 << 20, false}} {
			closing := map[string]string{"[": "]", `{"a":`: "}"}[open]
			text := strings.Repeat(open, c.depth) + "1" + strings.Repeat(closing, c.depth)
			if got := skipValue([]byte(text), 0, 0) == len(text); got != c.taken {
				t.Errorf("%d times %s: %v", c.depth, open, got)
			}
		}
	}
}

func TestHex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint32().Draw(t, "v")
		text := appendHex32(nil, v)
		if got, ok := parseHex32(text); !ok || got != v || string(text) != fmt.Sprintf("%08x", v) {
			t.Fatalf("%d: %s %d %v", v, text, got, ok)
		}
	})
	for _, bad := range []string{"", "1234567", "123456789", "ABCDEF00", "1234567g", "+1234567", " 1234567"} {
		if _, ok := parseHex32([]byte(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestNumbersAreCanonical(t *testing.T) {
	for text, want := range map[string]uint64{
		`k0`: 0, `k1`: 1, `k18446744073709551615`: 1<<64 - 1, `k18446744073709551616`: ^uint64(0) - 1, `k99999999999999999999`: ^uint64(0) - 1,
		`k01`: ^uint64(0) - 1, `k`: ^uint64(0) - 1, `k-1`: ^uint64(0) - 1, `x1`: ^uint64(0) - 1, ``: ^uint64(0) - 1,
	} {
		v, next, ok := uintMember([]byte(text), 0, "k")
		const refused = ^uint64(0) - 1
		switch {
		case want == refused && ok:
			t.Errorf("%q was taken as %d", text, v)
		case want != refused && (!ok || v != want || next != len(text)):
			t.Errorf("%q: %d %v, next %d", text, v, ok, next)
		}
	}
}
