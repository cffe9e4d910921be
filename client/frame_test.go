package client

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       frame
		err        error
	}{
		{"an event", "id: 1.2-3\nevent: x\ndata: {}\n\n", frame{id: "1.2-3", hasID: true, typ: "x", data: []byte("{}"), event: true}, nil},
		{"data on lines", "data: a\ndata: b\n\n", frame{data: []byte("a\nb"), event: true}, nil},
		{"carriage returns, no blank, a comment", ": c\r\ndata:a\r\n\r\n", frame{data: []byte("a"), event: true}, nil},
		{"an id alone", "id: 7\n\n", frame{id: "7", hasID: true}, nil},
		{"an empty id", "id\n\n", frame{hasID: true}, nil},
		{"when to come back", "retry: 250\n\n", frame{retry: 250 * time.Millisecond}, nil},
		{"a wait without end", "retry: 99999999\n\n", frame{retry: time.Minute}, nil},
		{"no wait", "retry: -5\nretry: +5\nretry: x\n\n", frame{}, nil},
		{"nobody's field", "foo: bar\n\n", frame{}, nil},
		{"cut off", "data: {}\n", frame{}, io.ErrUnexpectedEOF},
		{"the end", "", frame{}, io.EOF},
	} {
		got, err := readFrame(bufio.NewReaderSize(strings.NewReader(tt.text), 16))
		same := got.id == tt.want.id && got.hasID == tt.want.hasID && got.typ == tt.want.typ && bytes.Equal(got.data, tt.want.data) && got.event == tt.want.event && got.retry == tt.want.retry
		if !same || err != tt.err { //nolint:errorlint // exactly these
			t.Errorf("%s: got %+v, %v, want same and err = tt.err", tt.name, got, err)
		}
	}
}

// An event longer than any buffer comes whole.
func TestLongFrame(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	got, err := readFrame(bufio.NewReader(strings.NewReader("data: " + long + "\n\n")))
	if err != nil || string(got.data) != long {
		t.Error(len(got.data), err)
	}
}

// Whatever bytes come, reading ends, and takes no event from half a one.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"id: 1\ndata: x\n\n", "data\n\n\n", "retry: 1\r\n\r\n", "event: a\n\ndata: {\"a\":1}\n\n:\n\n", "\x00\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(text), 16)
		for range len(text) + 2 {
			got, err := readFrame(in)
			if err != nil {
				if got.event || got.hasID {
					t.Fatalf("an event of half a one: %+v", got)
				}
				return
			}
			if bytes.ContainsRune(got.data, 0) && !bytes.ContainsRune(text, 0) || strings.ContainsAny(got.id, "\n\x00") {
				t.Fatalf("got %+v, want (not bytes.ContainsRune(got.data, 0) or bytes.ContainsRune(text, 0)) and not strings.ContainsAny(got.id, \"\\n\\x00\")",
					got)
			}
		}
		t.Fatal("reading does not end")
	})
}
