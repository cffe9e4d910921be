package catalog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is kept of a message is what was given.
func TestPartsKeepMessages(t *testing.T) {
	for _, m := range []Message{
		{History: HistoryAPI, Number: 12345, TS: -5, Pieces: []Piece{{Words, "assistant", "words"}, {Path, "tool_use", "a/b"}, {Tool, "tool_use", "\x00\xff日本"}}},
		{History: HistoryUI, Number: 1, TS: 9224318015999999, Pieces: []Piece{{Tool, "", "x"}}},
	} {
		var b Builder
		b.Add(m)
		got, err := coders().dec.DecodeAll(b.take()[0].body, nil)
		check(t, err)
		read, err := message(got[1:]) // behind the length
		check(t, err)
		if diff := cmp.Diff(m, read); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMessagesWithoutTextTakeNoRoom(t *testing.T) {
	var b Builder
	b.Add(Message{History: HistoryUI, Number: 1})
	if parts := b.take(); len(parts) != 0 {
		t.Errorf("%d parts of nothing", len(parts))
	}
}

// A part of any bytes is read or damaged, and nothing else.
func FuzzPart(f *testing.F) {
	f.Add(said(1, "some words").append(nil))
	f.Add([]byte{3, 'u', 1, 2, 0xff, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := Parse("e")
		check(t, err)
		r := reader{q: q}
		if _, err := r.hits(nil, coders().enc.EncodeAll(data, nil)); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		if _, err := r.hits(nil, data); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
	})
}
