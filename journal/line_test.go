package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

// commits are what any writer may put into a log.
func commits() *rapid.Generator[journal.Commit] {
	event := rapid.SampledFrom([]string{`{}`, `{"type":"x","a":[1,{"b":null}]}`, `{"t":"\ud83d\ude00 é \u2028"}`, `{"n":1.50e3 , "z":""}`, `{"long":"` + strings.Repeat("y", 3000) + `"}`})
	return rapid.Custom(func(t *rapid.T) journal.Commit {
		c := journal.Commit{
			Seq: rapid.Uint64Range(1, 1<<63).Draw(t, "seq"), Epoch: rapid.Uint64Range(1, 1<<63).Draw(t, "epoch"),
			At: rapid.Int64().Draw(t, "at"), By: rapid.String().Draw(t, "by"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "blobs") {
			c.Blobs = append(c.Blobs, journal.Hash(rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "blob")))
		}
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			c.Events = append(c.Events, journal.Event(event.Draw(t, "event")))
		}
		return c
	})
}

// Lines that are appended one after the other into one buffer are the lines that
// each would be alone, and a failure in between leaves no trace.
func TestAppendedLinesAreTheLinesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var buf, want []byte
		for _, c := range rapid.SliceOfN(commits(), 0, 6).Draw(t, "commits") {
			if rapid.Bool().Draw(t, "and a bad one") {
				bad := c
				bad.Events = append(bad.Events[:len(bad.Events):len(bad.Events)], journal.Event(`{"a":`))
				var err error
				if buf, err = journal.AppendSigned(buf, bad, nil); !errors.Is(err, journal.ErrInvalid) {
					t.Fatal(err)
				}
			}
			alone, err := journal.EncodeCommit(c)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, alone...)
			if buf, err = journal.AppendSigned(buf, c, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(buf, want) {
			t.Fatalf("%s\nwant\n%s", buf, want)
		}
	})
}

// Whatever jq or a person with an editor adds to a line, its checksum tells; what
// another version adds with a right one is skipped.
func TestUnknownMembersAreSkipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := commits().Draw(t, "commit")
		line, err := journal.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		body := string(line[:bytes.LastIndex(line, []byte(`,"crc":`))])
		extra := rapid.SampledFrom([]string{`,"new":1`, `,"new":{"seq":2,"events":[]}`, `, "new" : [ ] `, `,"Events":[7]`, `,"":null`}).Draw(t, "extra")
		for _, at := range []int{strings.Index(body, `,"by":`), len(body)} {
			got, err := journal.DecodeCommit(sealed(body[:at] + extra + body[at:]))
			if err != nil {
				t.Fatalf("%s: got %v, want no error", extra, err)
			}
			if diff := cmp.Diff(c, got); diff != "" {
				t.Fatal(diff)
			}
		}
		if _, err := journal.DecodeCommit([]byte(body + extra + string(line[len(body):]))); err == nil {
			t.Fatal("a line that was changed under its checksum was taken")
		}
	})
}

// CheckCommit looks at a line's frame only, and says the same as DecodeCommit of
// everything that a writer made.
func TestCheckSaysWhatDecodeSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := commits().Draw(t, "commit")
		line, err := journal.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "without its newline") {
			line = bytes.TrimSuffix(line, []byte("\n"))
		}
		seq, epoch, err := journal.CheckCommit(line)
		if err != nil || seq != c.Seq || epoch != c.Epoch {
			t.Fatalf("got %d %d %v, want no error and seq = c.Seq and epoch = c.Epoch", seq, epoch, err)
		}
		bad := bytes.Clone(line)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "mask"))
		_, _, errCheck := journal.CheckCommit(bad)
		_, errDecode := journal.DecodeCommit(bad)
		var d *journal.DamageError
		if (errCheck == nil) != (errDecode == nil) || errCheck != nil && (!errors.As(errCheck, &d) || d.Length == 0 || d.Seq != 0) {
			t.Fatalf("%q: check %v, decode %v", bad, errCheck, errDecode)
		}
	})
}

// Events come back byte for byte: blanks, order, numbers and escapes stay as they
// were written. Only raw line breaks between tokens go, with the blanks around
// them, because a commit is one line.
func TestEventsKeepTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", " ", "\t", "  ", "\n", "\r\n"})
		event := "{"
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				event += "," + blank.Draw(t, "blank")
			}
			event += rapid.SampledFrom([]string{`"z":1.50`, `"a":"\u00e9\/"`, `"a":[1 , 2]`, `"9":{"b":-0}`, `"s":"two\nlines"`}).Draw(t, "member") + blank.Draw(t, "blank")
		}
		event += "}"
		line, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, Events: []journal.Event{ev(event)}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := journal.DecodeCommit(line)
		if err != nil {
			t.Fatal(err)
		}
		want := event
		if strings.ContainsAny(event, "\r\n") {
			var flat bytes.Buffer
			if err := json.Compact(&flat, []byte(event)); err != nil {
				t.Fatal(err)
			}
			want = flat.String()
		}
		if got := string(c.Events[0]); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// Appending into a buffer with room takes no memory, and does not touch what
// stands before and behind.
func TestAppendIntoABufferWithRoom(t *testing.T) {
	c := journal.Commit{Seq: 1, Epoch: 1, Events: []journal.Event{ev(`{"a":1}`)}}
	room := bytes.Repeat([]byte("#"), 4096)
	got, err := journal.AppendSigned(room[:3], c, nil)
	if err != nil || &got[0] != &room[0] {
		t.Fatal("it was moved", err)
	}
	alone, err := journal.EncodeCommit(c)
	if err != nil || string(got) != "###"+string(alone) {
		t.Fatalf("got %q %v, want no error and string(got) = \"###\"+string(alone)", got, err)
	}
	if behind := room[len(got):]; bytes.Count(behind, []byte("#")) != len(behind) {
		t.Fatal("something was written behind the line")
	}
}

// What was decoded does not change when the line's memory is used again, and the
// events cannot run into each other.
func TestDecodedShareNoMemoryWithTheLine(t *testing.T) {
	line, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, By: "me", Events: []journal.Event{ev(`{"a":1}`), ev(`{"b":2}`)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := journal.DecodeCommit(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = '#'
	}
	_ = append(c.Events[0], "overrun"...)
	if got := fmt.Sprintf("%s %s %s", c.By, c.Events[0], c.Events[1]); got != `me {"a":1} {"b":2}` {
		t.Fatal(got)
	}
}

// A payload that is too large for a line is refused before memory is taken for it.
func TestTooLongForALine(t *testing.T) {
	big := journal.Event(`{"x":"` + strings.Repeat("y", journal.MaxLine) + `"}`)
	_, err := journal.EncodeCommit(journal.Commit{Seq: 3, Epoch: 1, Events: []journal.Event{big}})
	if !errors.Is(err, journal.ErrInvalid) || !strings.Contains(err.Error(), "put payloads into blobs") {
		t.Fatal(err)
	}
}

// What stands in front of the events is read whatever its order and blanks, but
// the number and the epoch come first, as they do in every line that was written.
func TestMembersInAnotherOrder(t *testing.T) {
	want := journal.Commit{Seq: 1, Epoch: 2, At: 3, By: "b", Blobs: []journal.Hash{sha}, Events: []journal.Event{ev(`{"e":1}`)}}
	at, by, blobs, events := `"at":3`, `"by":"b"`, `"blobs":["`+string(sha)+`"]`, `"events":[{"e":1}]`
	for _, order := range [][]string{{at, by, blobs, events}, {events, blobs, by, at}, {by, events, at, blobs}} {
		for _, sep := range []string{",", ", ", ",\t "} {
			got, err := journal.DecodeCommit(sealed(`{"seq":1,"epoch":2` + sep + strings.Join(order, sep)))
			if err != nil {
				t.Fatalf("%v with %q: %v", order, sep, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	}
	for _, bad := range []string{
		`{"epoch":2,"seq":1,` + at + `,` + by + `,` + events, `{ "seq":1,"epoch":2,` + at + `,` + by + `,` + events,
		`{"seq":1,"at":3,"epoch":2,` + by + `,` + events, `{"seq":1,"epoch":2,` + at + `,` + by + `,` + events + `,`,
		`{"seq":1,"epoch":2,` + at + `,` + by + `,` + events + ` x`, `{"seq":1,"epoch":2,` + at + `,"at":4,` + by + `,` + events + `,"epoch":9`,
	} {
		if _, err := journal.DecodeCommit(sealed(bad)); err == nil {
			t.Errorf("taken: %s", bad)
		}
	}
}

// A later member of the same name wins where that does no harm, as everywhere in
// JSON; of a number that decides about ownership there may be only one.
func TestMembersThatStandTwice(t *testing.T) {
	c, err := journal.DecodeCommit(sealed(`{"seq":1,"epoch":1,"at":1,"at":2,"by":"a","by":"b","events":[{}],"events":[{"x":1}]`))
	if err != nil || c.At != 2 || c.By != "b" || len(c.Events) != 1 || string(c.Events[0]) != `{"x":1}` {
		t.Errorf("got %+v %v, want no error and c.At = 2 and c.By = \"b\" and len(c.Events) = 1 and string(c.Events[0]) = `{\"x\":1}`",
			c, err)
	}
	for _, twice := range []string{`"seq":1`, `"epoch":1`, `"crc":"00000000"`} {
		if _, err := journal.DecodeCommit(sealed(`{"seq":1,"epoch":1,"at":1,"by":"","events":[{}],` + twice)); err == nil {
			t.Errorf("%s twice was taken", twice)
		}
	}
}

// Damage says where and why, so that a report can name it.
func TestDamageIsNamed(t *testing.T) {
	line, err := journal.EncodeCommit(journal.Commit{Seq: 9, Epoch: 1, Events: []journal.Event{ev(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(line)
	flipped[10] ^= 1
	for _, c := range []struct {
		name, reason string
		line         []byte
		seq          uint64
	}{
		{"empty", "not a whole commit line", nil, 0},
		{"a blank line", "not a whole commit line", []byte("\n"), 0},
		{"text", "not a whole commit line", []byte("what is this, then?\n"), 0},
		{"cut", "not a whole commit line", line[:len(line)-4], 0},
		{"flipped", "checksum does not match", flipped, 0},
		{"two lines", "more than one line", sealed("{\"seq\":9,\"epoch\":1\n,"), 0},
		{"no commit", "not a commit", sealed(`{"hello":1`), 0},
		{"no JSON behind a good checksum", "not JSON", sealed(`{"seq":9,"epoch":1,"at":`), 9},
		{"members are missing", "members are missing", sealed(`{"seq":9,"epoch":1`), 9},
	} {
		_, err := journal.DecodeCommit(c.line)
		var d *journal.DamageError
		if !errors.As(err, &d) {
			t.Errorf("%s: got %v, want errors.As(err, &d)", c.name, err)
			continue
		}
		if d.Reason != c.reason || d.Seq != c.seq || d.Length != int64(len(bytes.TrimSuffix(c.line, []byte("\n")))) {
			t.Errorf("%s: got %+v, want d.Reason = c.reason and d.Seq = c.seq and d.Length = int64(len(bytes.TrimSuffix(c.line, []byte(\"\\n\"))))",
				c.name, d.Damage)
		}
	}
}

func ExampleDecodeCommit() {
	line, _ := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, At: 5, By: "run-1", Events: []journal.Event{[]byte(`{"type":"note"}`)}})
	c, err := journal.DecodeCommit(line)
	fmt.Println(c.Seq, c.By, string(c.Events[0]), err)
	line[20] ^= 1
	_, err = journal.DecodeCommit(line)
	fmt.Println(err)
	// Output:
	// 1 run-1 {"type":"note"} <nil>
	// journal: commit 0 is damaged at byte 0: checksum does not match
}

func TestBlobNames(t *testing.T) {
	for name, valid := range map[string]bool{
		strings.Repeat("0", 64): true, strings.Repeat("f", 64): true, strings.Repeat("F", 64): false, strings.Repeat("0", 63): false,
		strings.Repeat("0", 65): false, "": false, strings.Repeat("0", 63) + "/": false, "../" + strings.Repeat("0", 61): false, strings.Repeat("0", 63) + "\x00": false,
	} {
		if got := journal.Hash(name).Valid(); got != valid {
			t.Errorf("%q: got %v, want got = valid", name, got)
		}
	}
}

// Errors say who and what; a refused owner's user needs the name.
func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&journal.BusyError{Dir: "/t/1", Holder: journal.OwnerInfo{PID: 7, Program: "roost run"}}, "task /t/1 is in use by roost run (pid 7)"},
		{&journal.BusyError{Dir: "/t/1", Holder: journal.OwnerInfo{PID: 7}}, "task /t/1 is in use by another program (pid 7)"},
		{&journal.BusyError{Dir: "/t/1"}, "task /t/1 is in use by another program"},
		{&journal.DamageError{Damage: journal.Damage{Seq: 4, Offset: 99, Reason: "not JSON"}}, "journal: commit 4 is damaged at byte 99: not JSON"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestHealthIsOKWhenNothingAcknowledgedIsLost(t *testing.T) {
	some := []journal.Damage{{Seq: 1}}
	for _, c := range []struct {
		name string
		h    journal.Health
		ok   bool
	}{
		{"empty", journal.Health{}, true},
		{"an unfinished last line never was a commit", journal.Health{TornTail: &some[0]}, true},
		{"a replaced owner's commits were not acknowledged", journal.Health{SetAside: some}, true},
		{"a lost commit", journal.Health{Damaged: some}, false},
		{"a missing payload", journal.Health{MissingBlobs: []journal.Hash{sha}}, false},
		{"a damaged payload", journal.Health{DamagedBlobs: []journal.Hash{sha}}, false},
	} {
		if got := c.h.OK(); got != c.ok {
			t.Errorf("%s: got %v, want got = c.ok", c.name, got)
		}
	}
}

// The JSON of reports is part of what scripts read.
func TestReportsAsJSON(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{journal.Health{Head: 3, Epoch: 1, Commits: 3}, `{"head":3,"epoch":1,"commits":3}`},
		{journal.Damage{Seq: 2, Offset: 10, Length: 5, Reason: "x"}, `{"seq":2,"offset":10,"length":5,"reason":"x"}`},
		{journal.OwnerInfo{PID: 5, Started: time.UnixMilli(0).UTC()}, `{"pid":5,"started":"1970-01-01T00:00:00Z"}`},
	} {
		got, err := json.Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
}

// FuzzRoundTrip: whatever can be written as a commit is read as it was written.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint64(1), int64(0), "run", []byte(`{"a":"\u0000"}`))
	f.Add(uint64(1<<63), uint64(7), int64(-1), "\xff\x00\"", []byte("{\n}"))
	f.Fuzz(func(t *testing.T, seq, epoch uint64, at int64, by string, event []byte) {
		line, err := journal.EncodeCommit(journal.Commit{Seq: seq, Epoch: epoch, At: at, By: by, Events: []journal.Event{event}})
		if err != nil {
			if !errors.Is(err, journal.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
			t.Fatalf("got %q, want bytes.Count(line, []byte(\"\\n\")) = 1 and json.Valid(line)", line)
		}
		c, err := journal.DecodeCommit(line)
		if err != nil || c.Seq != seq || c.Epoch != epoch || c.At != at {
			t.Fatalf("got %+v %v, want no error and c.Seq = seq and c.Epoch = epoch and c.At = at", c, err)
		}
		again, err := journal.EncodeCommit(c)
		if err != nil {
			t.Fatalf("%q was read, and cannot be written: %v", line, err)
		}
		back, err := journal.DecodeCommit(again)
		if diff := cmp.Diff(c, back); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}
