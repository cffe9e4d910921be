package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

var sha = journal.Hash(strings.Repeat("0a", 32))

func ev(s string) journal.Event { return journal.Event(s) }

func TestCommitLineIsExactlyAsDocumented(t *testing.T) {
	c := journal.Commit{Seq: 7, Epoch: 3, At: 1700000000000, By: `a"b`, Blobs: []journal.Hash{sha}, Events: []journal.Event{ev(`{"x":1}`), ev(`{}`)}}
	got, err := journal.EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"seq":7,"epoch":3,"at":1700000000000,"by":"a\"b","blobs":["` + string(sha) + `"],"events":[{"x":1},{}]`
	want := fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Fatal(diff)
	}
	if !json.Valid(got) {
		t.Fatal("a JSON tool cannot read the line")
	}
	back, err := journal.DecodeCommit(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Fatal(diff)
	}
}

func TestEncodeRefusesOrFlattens(t *testing.T) {
	ok := []journal.Event{ev(`{}`)}
	for name, c := range map[string]journal.Commit{
		"no events":      {Seq: 1, Epoch: 1},
		"no seq":         {Epoch: 1, Events: ok},
		"no epoch":       {Seq: 1, Events: ok},
		"event no JSON":  {Seq: 1, Epoch: 1, Events: []journal.Event{ev(`{"a":}`)}},
		"event empty":    {Seq: 1, Epoch: 1, Events: []journal.Event{ev(``)}},
		"event array":    {Seq: 1, Epoch: 1, Events: []journal.Event{ev(`[]`)}},
		"two values":     {Seq: 1, Epoch: 1, Events: []journal.Event{ev(`{}{}`)}},
		"newline string": {Seq: 1, Epoch: 1, Events: []journal.Event{ev("{\"a\":\"x\ny\"}")}},
		"bad blob":       {Seq: 1, Epoch: 1, Events: ok, Blobs: []journal.Hash{"../../etc/passwd"}},
	} {
		keep := []byte("keep")
		out, err := journal.AppendSigned(keep, c, nil)
		if !errors.Is(err, journal.ErrInvalid) || string(out) != "keep" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
	line, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, Events: []journal.Event{ev("{\n \"a\" : \"x\\ny\",\r\n\"b\":[1, 2]}")}})
	if err != nil || !bytes.Contains(line, []byte(`[{"a":"x\ny","b":[1,2]}]`)) {
		t.Fatalf("got %s %v, want no error and bytes.Contains(line, []byte(`[{\"a\":\"x\\ny\",\"b\":[1,2]}]`))",
			line, err)
	}
	if bytes.Count(line, []byte("\n")) != 1 {
		t.Fatal("more than one line")
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	line, err := journal.EncodeCommit(journal.Commit{Seq: 12, Epoch: 2, At: 5, By: "r", Blobs: []journal.Hash{sha}, Events: []journal.Event{ev(`{"t":"x"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(line) - 1 {
		for bit := range 8 {
			bad := bytes.Clone(line)
			bad[i] ^= 1 << bit
			var d *journal.DamageError
			if _, err := journal.DecodeCommit(bad); !errors.As(err, &d) || d.Reason == "" {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
		}
	}
	for i := range len(line) - 1 {
		if _, err := journal.DecodeCommit(line[:i]); err == nil {
			t.Fatalf("cut at %d was taken", i)
		}
	}
}

// sealed puts a right checksum on any body: what a hostile editor could write.
func sealed(body string) []byte {
	return fmt.Appendf(nil, "%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
}

func TestDecodeWithRightChecksumAndWrongContent(t *testing.T) {
	for body, good := range map[string]bool{
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{}]`:                          true,
		`{"seq":1,"epoch":1,"at":1,"by":"","new":{"a":[]},"events":[{}, {} ]`:      true,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[]`:                            false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[1]`:                           false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":{}`:                            false,
		`{"seq":1,"epoch":1,"at":1.5,"by":"","events":[{}]`:                        false,
		`{"seq":1,"epoch":1,"at":1,"by":1,"events":[{}]`:                           false,
		`{"seq":1,"epoch":1,"at":1,"events":[{}]`:                                  false,
		`{"seq":01,"epoch":1,"at":1,"by":"","events":[{}]`:                         false,
		`{"seq":18446744073709551616,"epoch":1,"at":1,"by":"","events":[{}]`:       false,
		`{"seq":1,"epoch":0,"at":1,"by":"","events":[{}]`:                          false,
		`{"epoch":1,"seq":1,"at":1,"by":"","events":[{}]`:                          false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{]`:                           false,
		`{"seq":1,"epoch":1,"at":1,"by":"","blobs":["x"],"events":[{}]`:            false,
		`{"seq":1,"epoch":1,"at":1,"by":"","seq":2,"events":[{}]`:                  false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{}]}` + "\n" + `{"a":1`:       false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{"a":"\ud800"}],"z":"\q"`:     false,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{"a":"\ud800"}],"z":"q"`:      true,
		`{"seq":1,"epoch":1,"at":1,"by":"","events":[{"a":` + "\"\xed\xa0\x80\"}]": true,
	} {
		c, err := journal.DecodeCommit(sealed(body))
		if (err == nil) != good {
			t.Errorf("%s: got %v, want (err == nil) = good", body, err)
		}
		if good && (c.Seq != 1 || len(c.Events) == 0) {
			t.Errorf("%s: got %+v, want not good or (c.Seq = 1 and len(c.Events) != 0)", body, c)
		}
	}
}

func TestRoundTripOfAnyCommit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := journal.Commit{
			Seq:   rapid.Uint64Min(1).Draw(rt, "seq"),
			Epoch: rapid.Uint64Min(1).Draw(rt, "epoch"),
			At:    rapid.Int64().Draw(rt, "at"),
			By:    rapid.String().Draw(rt, "by"),
		}
		for range rapid.IntRange(1, 4).Draw(rt, "n") {
			raw, _ := json.Marshal(map[string]string{rapid.String().Draw(rt, "k"): rapid.String().Draw(rt, "v")})
			c.Events = append(c.Events, raw)
		}
		line, err := journal.EncodeCommit(c)
		if err != nil {
			rt.Fatal(err)
		}
		seq, epoch, err := journal.CheckCommit(line)
		if err != nil || seq != c.Seq || epoch != c.Epoch {
			rt.Fatalf("check: %d %d %v", seq, epoch, err)
		}
		back, err := journal.DecodeCommit(line)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	f.Add(sealed(`{"seq":1,"epoch":1,"at":1,"by":"","events":[{}]`))
	f.Add([]byte(`{"seq":1,"epoch":1,"at":-1,"by":"\u00e9","events":[{"a":[1,2,{"b":null}]}]`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// As it is, and with a right checksum, so that the fuzzer gets past it.
		for _, line := range [][]byte{b, sealed(string(b))} {
			c, err := journal.DecodeCommit(line)
			if err != nil {
				continue
			}
			if !json.Valid(line) {
				t.Fatalf("taken, but not JSON: %q", line)
			}
			again, err := journal.EncodeCommit(c)
			if err != nil {
				t.Fatalf("taken, but not writable: %q: %v", line, err)
			}
			back, err := journal.DecodeCommit(again)
			if err != nil || back.Seq != c.Seq || len(back.Events) != len(c.Events) {
				t.Fatalf("%q: got %v, want no error and back.Seq = c.Seq and len(back.Events) = len(c.Events)", again, err)
			}
		}
		// The scanner agrees with encoding/json about every object.
		_, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, Events: []journal.Event{b}})
		want := json.Valid(b) && len(b) > 0 && b[0] == '{' && b[len(b)-1] == '}'
		if (err == nil) != want {
			t.Fatalf("event %q: %v, json.Valid says %v", b, err, want)
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0.5e+3,true,false,null,"\u12aF\n"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		event := append(append([]byte(`{"v":`), b...), '}')
		_, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, Events: []journal.Event{event}})
		if (err == nil) != json.Valid(event) {
			t.Fatalf("%q: got %v, want (err == nil) = json.Valid(event)", event, err)
		}
	})
}

func ExampleEncodeCommit() {
	line, _ := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, At: 5, By: "run-1", Events: []journal.Event{[]byte(`{"type":"note"}`)}})
	fmt.Print(string(line))
	// Output: {"seq":1,"epoch":1,"at":5,"by":"run-1","events":[{"type":"note"}],"crc":"67c82ad2"}
}

func ExampleHash_Valid() {
	fmt.Println(journal.Hash("../../etc/passwd").Valid())
	// Output: false
}
