package journal

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sealed is a line with the checksum of what it says.
func sealed(body string) Line {
	return Line{Seq: 7, Text: fmt.Appendf(nil, `%s,"crc":"%08x"}`, body, crc32.Checksum([]byte(body), castagnoli))}
}

// What a line's events take is as many bytes as they have, with a comma between them, only
// when nothing else stands there.
func TestTightLines(t *testing.T) {
	const head = `{"seq":7,"epoch":3,"at":1,"by":"r"`
	for _, c := range []struct{ body, want string }{
		{head + `,"events":[{"a":1},{"b":"]"}]`, `{"a":1},{"b":"]"}`},
		{head + `,"blobs":["x","y"],"events":[{}]`, `{}`},
		{strings.Replace(head, `"r"`, `"\",\"events\":[{}]"`, 1) + `,"events":[{"b":2}]`, `{"b":2}`},
		{head + `,"events":[ {"a":1}]`, ` {"a":1}`},                           // a byte more than its event has
		{head + `,"events":[{"a":1}],"more":[1]`, `{"a":1}],"more":[1`},       // the same
		{head + `,"events":[{"a":1}],"events":[{}]`, `{"a":1}],"events":[{}`}, // the same
		{head + `, "events":[{}]`, ""},
		{head + `,"events": [{}]`, ""},
		{head + `,"events":[{}] `, ""},
		{head + `,"more":}`, ""},
		{head + `,"more`, ""},
		{head + `,7:[]`, ""},
		{head + `]`, ""},
		{`]`, ""},
		{``, ""},
	} {
		events, ok := sealed(c.body).Tight()
		if string(events) != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %t", c.body, events, ok)
		}
	}
}

// A line that we write is tight, and its events are where their lengths say.
func TestWhatIsWrittenIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Commit{Seq: rapid.Uint64Min(1).Draw(t, "seq"), Epoch: rapid.Uint64Min(1).Draw(t, "epoch"), At: rapid.Int64().Draw(t, "at"), By: rapid.String().Draw(t, "by")}
		for range rapid.IntRange(0, 2).Draw(t, "blobs") {
			c.Blobs = append(c.Blobs, Hash(strings.Repeat("a", 64)))
		}
		var all [][]byte
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			e := rapid.SampledFrom([]string{`{}`, `{ "a" : [1] }`, `{"events":[{"a":"],\"crc\":"}]}`}).Draw(t, "event")
			c.Events, all = append(c.Events, Event(e)), append(all, []byte(e))
		}
		line, err := EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		l := Line{Seq: c.Seq, Text: bytes.TrimSuffix(line, []byte("\n"))}
		if events, ok := l.Tight(); !ok || !bytes.Equal(events, bytes.Join(all, []byte(","))) {
			t.Fatalf("%s: %q %t", line, events, ok)
		}
		if events, err := l.Events(); err != nil || len(events) != len(all) {
			t.Fatalf("%d events, %v", len(events), err)
		}
	})
}

// Whatever a line holds, asking it gives an answer.
func FuzzTight(f *testing.F) {
	f.Add([]byte(`{"seq":7,"epoch":3,"at":1,"by":"r","events":[{"a":1}],"crc":"00000000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if events, ok := (Line{Text: data}).Tight(); ok && !bytes.Contains(data, events) {
			t.Errorf("%q of %q", events, data)
		}
	})
}
