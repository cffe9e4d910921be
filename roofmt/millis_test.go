package roofmt

import "testing"

// Fractions are cut off; what is no number is no time.
func TestTimesOfMessages(t *testing.T) {
	for raw, want := range map[string]struct {
		ms int64
		ok bool
	}{
		`{"ts":1700000000000}`: {1700000000000, true}, `{"ts":1.9}`: {1, true}, `{"ts":-1.9}`: {-1, true}, `{"ts":1e300}`: {0, false},
		`{"ts":"5"}`: {0, false}, `{"ts":null}`: {0, false}, `{}`: {0, false}, `{"ts":1e3}`: {1000, true}, `[]`: {0, false},
	} {
		if ms, ok := millis([]byte(raw)); ms != want.ms || ok != want.ok {
			t.Errorf("%s: got %d, %v, want ms = want.ms and ok = want.ok", raw, ms, ok)
		}
	}
}
