package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task/codec"
)

// What is kept of a message is what was given.
func TestPartsKeepMessages(t *testing.T) {
	for _, m := range []Message{
		{History: HistoryAPI, Number: 12345, TS: -5, Pieces: []Piece{{Words, "assistant", "words"}, {Path, "tool_use", "a/b"}, {Tool, "tool_use", "\x00\xff日本"}}},
		{History: HistoryUI, Number: 1, TS: 9224318015999999, Pieces: []Piece{{Tool, "", "x"}}},
	} {
		var b Builder
		b.Add(m)
		var r reader
		u, err := r.open(b.Entry("", "").Parts[0].Body)
		fixture.NoError(t, err)
		read := message(&u)
		if diff := cmp.Diff(m, read); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMessagesWithoutTextTakeNoRoom(t *testing.T) {
	var b Builder
	b.Add(Message{History: HistoryUI, Number: 1})
	if parts := b.Entry("", "").Parts; len(parts) != 0 {
		t.Errorf("%d parts of nothing", len(parts))
	}
}

// A part of any bytes is read or damaged, and nothing else.
func FuzzPart(f *testing.F) {
	d := draft{out: codec.NewWriter(nil)}
	d.message(said(1, "some words"))
	f.Add(d.out.Out)
	f.Add([]byte{3, 'u', 1, 2, 0xff, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := Parse("e")
		fixture.NoError(t, err)
		r := reader{q: q}
		if _, err := r.hits(nil, coders().enc.EncodeAll(data, nil)); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		if _, err := r.hits(nil, data); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
	})
}

// A text that both histories have is kept once, and each of the messages is found.
func TestRepeatedTextsAreKeptOnce(t *testing.T) {
	var list []Message
	size := 0
	for i := range 400 {
		text := strings.Repeat(fmt.Sprint("a line of file ", i, " that is read again\n"), 200)
		size += len(text)
		for _, history := range []string{HistoryUI, HistoryAPI} {
			list = append(list, Message{History: history, Number: i + 1, Place: len(list), Pieces: []Piece{{Words, "user", fmt.Sprint("turn ", i)}, {Tool, "tool_result", text}}})
		}
	}
	var b Builder
	for _, m := range list {
		b.Add(m)
	}
	if b.size > size+size/4 { // where a part ends between the two, its text begins anew
		t.Errorf("%d bytes of text are kept in %d", size, b.size)
	}
	db := opened(t, t.TempDir())
	kept(t, db, "a", list)
	q, err := Parse("again")
	fixture.NoError(t, err)
	if diff := cmp.Diff(naive(q, list), db.hits(t, "a", q, 0)); diff != "" {
		t.Errorf("%.2000s", diff)
	}
}

// A task is made into parts the same way each time: what is kept can be compared.
func TestPartsAreTheSameEachTime(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	texts := make([]string, 300)
	for i := range texts {
		texts[i] = prose(r, 100+r.IntN(900))
		if i > 10 && i%3 == 0 {
			texts[i] = texts[r.IntN(i)]
		}
	}
	if a, b := entry("a", texts...).Digest(), entry("a", texts...).Digest(); string(a) != string(b) {
		t.Error("the same messages gave other parts")
	}
}
