package esjson_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

// checkText compares what the package under test read of a vector line with
// encoding/json, where that can hold the string: the line itself may hold lone
// surrogates.
func checkText(t *testing.T, obj []byte, key, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		return
	}
	var std map[string]json.RawMessage
	var want string
	if json.Unmarshal(obj, &std) == nil && json.Unmarshal(std[key], &want) == nil && want != s && !strings.Contains(want, "\uFFFD") {
		t.Fatalf("read %q as %q, encoding/json reads %q", key, s, want)
	}
}

// losses derives, from the input alone, what Node loses of it: the cases in which Stringify differs by choice.
func losses(src []byte) (reorder, duplicate, number, badUTF8 bool) {
	badUTF8 = !utf8.Valid(src)
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	type frame struct {
		object bool
		key    bool
		seen   map[string]bool
		other  bool
		max    int64
	}
	var stack []*frame
	for {
		tok, err := dec.Token()
		if err != nil {
			return
		}
		var top *frame
		if len(stack) > 0 {
			top = stack[len(stack)-1]
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if top != nil && top.object && top.key {
			k := tok.(string)
			if top.seen[k] {
				duplicate = true
			}
			top.seen[k] = true
			n, err := strconv.ParseUint(k, 10, 32)
			if err == nil && n < 1<<32-1 && strconv.FormatUint(n, 10) == k {
				if top.other || int64(n) < top.max {
					reorder = true
				}
				top.max = max(top.max, int64(n))
			} else {
				top.other = true
			}
			top.key = false
			continue
		}
		if top != nil && top.object {
			top.key = true
		}
		switch v := tok.(type) {
		case json.Delim:
			stack = append(stack, &frame{object: v == '{', key: v == '{', seen: map[string]bool{}, max: -1})
		case json.Number:
			f, _ := strconv.ParseFloat(string(v), 64)
			want, ok := new(big.Rat).SetString(string(v))
			got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
			if !ok || !ok2 || want.Cmp(got) != 0 {
				number = true
			}
		}
	}
}

func TestVectorsJSONEncoding(t *testing.T) {
	conformance.Run(t, "json_encoding", func(t *testing.T, c conformance.Case) (choice bool) {
		src := []byte(c.Input.Str("text"))
		if c.Input.Has("text") {
			checkText(t, c.Input, "text", string(src))
		} else {
			var err error
			if src, err = base64.StdEncoding.DecodeString(c.Input.Str("bytes_b64")); err != nil {
				t.Fatal(err)
			}
		}
		accept := c.Want.Bool("accept", false)
		if got := esjson.Valid(src); got != accept {
			t.Fatalf("Valid = %v, want %v", got, accept)
		}
		got, err := esjson.Stringify(nil, src)
		if (err == nil) != accept {
			t.Fatalf("Stringify error %v, accept %v", err, accept)
		}
		written, has := esjson.GetString(c.Want, "written")
		if !has {
			return false
		}
		checkText(t, c.Want, "written", written)
		// Node must agree with the original in every case.
		if node, err := esjson.Node(nil, src); err != nil || string(node) != written {
			t.Fatalf("Node = %s (%v), want %s", node, err, written)
		}
		if string(got) == written {
			return false
		}
		better(t, src, got, written)
		return true
	})
}

// better: where Stringify differs from the original, nothing is lost that the
// original loses (the same tokens are there, in the same order), and Node reads
// the same value from both.
func better(t *testing.T, src, got []byte, written string) {
	reorder, duplicate, number, bad := losses(src)
	if !reorder && !duplicate && !number && !bad {
		t.Fatalf("Stringify = %s, want %s", got, written)
	}
	if again, err := esjson.Node(nil, got); err != nil || string(again) != written {
		t.Errorf("Node reads %s from our text, want %s (%v)", again, written, err)
	}
	if !bad && !sameTokens(src, got) {
		t.Errorf("tokens of %s differ from those of the input", got)
	}
	if bad && utf8.Valid(got) {
		t.Errorf("the bytes that are not UTF-8 are gone from %q", got)
	}
}

// sameTokens compares two texts token by token with encoding/json; numbers by their exact decimal value.
func sameTokens(a, b []byte) bool {
	da, db := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	da.UseNumber()
	db.UseNumber()
	for {
		ta, errA := da.Token()
		tb, errB := db.Token()
		if errA != nil || errB != nil {
			return errA == errB
		}
		na, isNum := ta.(json.Number)
		if !isNum {
			if ta != tb {
				return false
			}
			continue
		}
		nb, ok := tb.(json.Number)
		ra, ok1 := new(big.Rat).SetString(string(na))
		rb, ok2 := new(big.Rat).SetString(string(nb))
		if !ok || na != nb && (!ok1 || !ok2 || ra.Cmp(rb) != 0) {
			return false
		}
	}
}
