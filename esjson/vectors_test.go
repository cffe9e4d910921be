package esjson_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// vectorText reads a string member of a vector line. The line itself may hold lone surrogates, so the package under
// test reads it; that it reads them right is checked against encoding/json where that can hold the string.
func vectorText(t *testing.T, obj []byte, key string) (string, bool) {
	t.Helper()
	s, ok := esjson.GetString(obj, key)
	if ok && utf8.ValidString(s) {
		var std map[string]json.RawMessage
		var want string
		if json.Unmarshal(obj, &std) == nil && json.Unmarshal(std[key], &want) == nil && want != s && !strings.Contains(want, "\uFFFD") {
			t.Fatalf("GetString(%q) = %q, encoding/json reads %q", key, s, want)
		}
	}
	return s, ok
}

// losses says, from the input alone, what Node loses of it: the cases in which Stringify differs by choice.
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
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	file, err := os.Open(filepath.Join(dir, "json_encoding.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	cases, passed, choice := 0, 0, 0
	for lines.Scan() {
		cases++
		line := bytes.Clone(lines.Bytes())
		name, _ := esjson.GetString(line, "name")
		input, _ := esjson.Get(line, "input")
		want, _ := esjson.Get(line, "want")
		accept, _ := esjson.GetBool(want, "accept")
		var src []byte
		if s, ok := vectorText(t, input, "text"); ok {
			src = []byte(s)
		} else {
			b64, _ := esjson.GetString(input, "bytes_b64")
			if src, err = base64.StdEncoding.DecodeString(b64); err != nil {
				t.Fatal(err)
			}
		}
		ok, chosen := checkVector(t, name, src, accept, want)
		if ok {
			passed++
		}
		if chosen {
			choice++
		}
	}
	fmt.Printf("vectors: json_encoding %d/%d (by choice %d)\n", passed, cases, choice)
	if lines.Err() != nil || cases == 0 {
		t.Fatalf("%d cases read, error %v", cases, lines.Err())
	}
}

func checkVector(t *testing.T, name string, src []byte, accept bool, want []byte) (ok, chosen bool) {
	if got := esjson.Valid(src); got != accept {
		t.Errorf("%s: Valid = %v, want %v", name, got, accept)
		return false, false
	}
	got, err := esjson.Stringify(nil, src)
	if (err == nil) != accept {
		t.Errorf("%s: Stringify error %v, accept %v", name, err, accept)
		return false, false
	}
	written, has := esjson.GetString(want, "written")
	if !has {
		return true, false
	}
	// Node must agree with the original in every case.
	node, err := esjson.Node(nil, src)
	if err != nil || string(node) != written {
		t.Errorf("%s: Node = %s (%v), want %s", name, node, err, written)
		return false, false
	}
	if string(got) == written {
		return true, false
	}
	reorder, duplicate, number, bad := losses(src)
	if !reorder && !duplicate && !number && !bad {
		t.Errorf("%s: Stringify = %s, want %s", name, got, written)
		return false, false
	}
	// Better: nothing is lost (the same tokens are there, in the same order), and Node reads the same value from both.
	again, err := esjson.Node(nil, got)
	if err != nil || string(again) != written {
		t.Errorf("%s: Node reads %s from our text, want %s (%v)", name, again, written, err)
		return false, false
	}
	if !bad && !sameTokens(src, got) {
		t.Errorf("%s: tokens of %s differ from those of the input", name, got)
		return false, false
	}
	if bad && utf8.Valid(got) {
		t.Errorf("%s: the bytes that are not UTF-8 are gone from %q", name, got)
		return false, false
	}
	return true, true
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
