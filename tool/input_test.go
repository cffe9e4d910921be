package tool

import (
	"errors"
	"strings"
	"testing"
)

func TestInputValues(t *testing.T) {
	in := Input{Tool: "t", Object: []byte(`{"n":5,"s":"7","f":2.9,"neg":"-3","empty":"","null":null,"nulls":"null","bad":"x","big":1e300,"yes":true,"no":"false","one":1,"arr":[],"text":"a\u0000\ud83d","other":"o"}`)}
	for _, tt := range []struct {
		name string
		want int
		ok   bool
	}{
		{"n", 5, true}, {"s", 7, true}, {"f", 2, true}, {"neg", -3, true}, {"empty", 42, true}, {"null", 42, true}, {"nulls", 42, true}, {"missing", 42, true}, {"bad", 0, false}, {"big", 0, false}, {"arr", 0, false},
	} {
		got, err := in.Number(42, tt.name)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("number %s: %d, %v", tt.name, got, err)
		}
	}
	for _, tt := range []struct {
		name     string
		want, ok bool
	}{
		{"yes", true, true}, {"no", false, true}, {"one", true, true}, {"missing", true, true}, {"null", true, true}, {"arr", false, false}, {"bad", false, false},
	} {
		got, err := in.Boolean(true, tt.name)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("boolean %s: %v, %v", tt.name, got, err)
		}
	}
	if s, ok := in.Text("missing", "null", "other"); s != "o" || !ok {
		t.Errorf("the first of several names: %q %v", s, ok)
	}
	if s, ok := in.Text("text"); s != "a\x00\xed\xa0\xbd" || !ok {
		t.Errorf("text: %q %v", s, ok)
	}
	for name, want := range map[string]string{"missing": "is missing", "n": "is missing", "empty": "is empty"} {
		_, err := in.Need(false, name)
		var wrong *InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, want) {
			t.Errorf("need %s: %v", name, err)
		}
	}
	if s, err := in.Need(true, "empty"); s != "" || err != nil {
		t.Errorf("empty where that is fine: %q %v", s, err)
	}
}
