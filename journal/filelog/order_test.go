package filelog

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

// logLine is the line of a small commit.
func logLine(seq, epoch uint64) []byte {
	line, err := journal.EncodeCommit(journal.Commit{Seq: seq, Epoch: epoch, At: 1, By: "t", Events: []journal.Event{[]byte(`{}`)}})
	if err != nil {
		panic(err)
	}
	return line
}

// judge lets an order look at lines one after the other and says in short what it
// found: commits by number, lost ones as -n, set aside as ~n.
func judge(o *order, off int64, lines ...[]byte) (found []string, end int64) {
	for _, l := range lines {
		v := o.line(rawLine{off: off, length: int64(len(l)), text: l, whole: true})
		off += int64(len(l))
		for _, d := range v.lost {
			found = append(found, fmt.Sprintf("-%d", d.Seq))
		}
		for _, d := range v.rejected {
			found = append(found, fmt.Sprintf("~%d", d.Seq))
		}
		if v.commit {
			found = append(found, fmt.Sprint(v.seq))
		}
	}
	return found, off
}

func TestOrder(t *testing.T) {
	junk, hole := []byte("no commit\n"), append(bytes.Repeat([]byte{0}, 40), '\n')
	for _, c := range []struct {
		name     string
		lines    [][]byte
		recorded uint64
		want     string
	}{
		{"in order", [][]byte{logLine(1, 1), logLine(2, 1)}, 0, "1 2"},
		{"nothing", nil, 0, ""},
		{"nothing, though two were synced", nil, 2, "-1 -2"},
		{"a line is missing", [][]byte{logLine(1, 1), logLine(3, 1)}, 0, "1 -2 3"},
		{"a line is damaged", [][]byte{logLine(1, 1), junk, logLine(3, 1)}, 0, "1 -2 3"},
		{"one damaged line for two numbers", [][]byte{logLine(1, 1), junk, logLine(4, 1)}, 0, "1 -2 -3 4"},
		{"a stranger's line where none is missing", [][]byte{logLine(1, 1), junk, logLine(2, 1)}, 0, "1 ~0 2"},
		{"a number twice", [][]byte{logLine(1, 1), logLine(1, 1), logLine(2, 1)}, 0, "1 ~1 2"},
		{"an older epoch behind a newer one", [][]byte{logLine(1, 1), logLine(2, 2), logLine(3, 1), logLine(3, 2)}, 0, "1 2 ~3 3"},
		{"a number out of all reason", [][]byte{logLine(1, 1), logLine(1<<40, 1), logLine(2, 1)}, 0, "1 ~1099511627776 2"},
		{"the end is damaged", [][]byte{logLine(1, 1), junk}, 0, "1 -2"},
		{"the end was never written", [][]byte{logLine(1, 1), hole}, 0, "1"},
		{"damaged, then never written", [][]byte{logLine(1, 1), junk, hole, junk}, 0, "1 -2"},
		{"the end was synced and is not there", [][]byte{logLine(1, 1)}, 3, "1 -2 -3"},
		{"the end was synced and is zero", [][]byte{logLine(1, 1), hole}, 2, "1 -2"},
		{"begins in the middle", [][]byte{logLine(3, 1)}, 0, "-1 -2 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o order
			found, off := judge(&o, 0, c.lines...)
			for _, d := range o.end(off, c.recorded) {
				found = append(found, fmt.Sprintf("-%d", d.Seq))
			}
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// What is lost at the end is told once: when more comes behind it, it is not lost
// again, and its number is not given to anybody else.
func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	var o order
	found, off := judge(&o, 0, logLine(1, 1), []byte("damaged\n"))
	if lost := o.end(off, 0); len(lost) != 1 || lost[0].Seq != 2 {
		t.Fatalf("lost %+v", lost)
	}
	if again := o.end(off, 0); len(again) != 0 {
		t.Fatalf("told twice: %+v", again)
	}
	more, _ := judge(&o, off, logLine(3, 2))
	if got := strings.Join(append(found, more...), " "); got != "1 3" {
		t.Fatalf("found %q", got)
	}
}

// Every number up to the last commit is either a commit or lost, whatever stands
// in the log, and each once; and the sequence never falls.
func TestOrderLeavesNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "lines")
		var lines [][]byte
		for range n {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				lines = append(lines, []byte("x\n"))
			case 1:
				lines = append(lines, append(bytes.Repeat([]byte{0}, rapid.IntRange(1, 40).Draw(t, "zeros")), '\n'))
			default:
				lines = append(lines, logLine(rapid.Uint64Range(1, 15).Draw(t, "seq"), rapid.Uint64Range(1, 3).Draw(t, "epoch")))
			}
		}
		var o order
		var off int64
		var seen []uint64
		last := uint64(0)
		for _, l := range lines {
			v := o.line(rawLine{off: off, length: int64(len(l)), text: l, whole: true})
			off += int64(len(l))
			for _, d := range v.lost {
				seen = append(seen, d.Seq)
			}
			if v.commit {
				if v.seq <= last {
					t.Fatalf("%d after %d", v.seq, last)
				}
				last = v.seq
				seen = append(seen, v.seq)
			}
		}
		recorded := rapid.Uint64Range(0, 20).Draw(t, "recorded")
		for _, d := range o.end(off, recorded) {
			seen = append(seen, d.Seq)
		}
		want := make([]uint64, 0, len(seen))
		for i := range seen {
			want = append(want, uint64(i+1))
		}
		if diff := cmp.Diff(want, seen, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if recorded > 0 && uint64(len(seen)) < recorded {
			t.Fatalf("%d were synced, %d are accounted for", recorded, len(seen))
		}
	})
}

func TestLinesAreThoseOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`[ab\n]{0,200}`).Draw(t, "text"))
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		limit := rapid.IntRange(from, len(text)).Draw(t, "limit")
		s := newLines(bytes.NewReader(text), int64(from), int64(limit), rapid.Int64Range(1, 30).Draw(t, "read size"))
		var got []string
		at := int64(from)
		for {
			l, err := s.next()
			if err != nil {
				break
			}
			if l.off != at || l.length != int64(len(l.text)) || l.whole != bytes.HasSuffix(l.text, []byte("\n")) {
				t.Fatalf("line %+v at %d", l, at)
			}
			at += l.length
			got = append(got, string(l.text))
		}
		var want []string
		for _, l := range strings.SplitAfter(string(text[from:limit]), "\n") {
			if l != "" {
				want = append(want, l)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A file that shrinks while it is read ends early; it does not fail or hang.
func TestLinesOfAFileThatShrank(t *testing.T) {
	s := newLines(strings.NewReader("a\nb"), 0, 1000, chunk)
	var got []string
	for {
		l, err := s.next()
		if err != nil {
			break
		}
		got = append(got, string(l.text))
	}
	if diff := cmp.Diff([]string{"a\n", "b"}, got); diff != "" {
		t.Fatal(diff)
	}
}

// long is a file of one line that is longer than any commit, and a short one.
type long struct{}

func (long) ReadAt(b []byte, off int64) (int, error) {
	for i := range b {
		switch at := off + int64(i); at {
		case journal.MaxLine + 9, journal.MaxLine + 11:
			b[i] = '\n'
		case journal.MaxLine + 12:
			return i, io.EOF
		default:
			b[i] = 'x'
		}
	}
	return len(b), nil
}

// Of a line that is too long for a commit only its place is kept, and the next line is read.
func TestLineThatIsTooLong(t *testing.T) {
	s := newLines(long{}, 0, journal.MaxLine+12, chunk)
	first, err := s.next()
	if err != nil || first.text != nil || first.length != journal.MaxLine+10 || !first.whole {
		t.Errorf("got %d bytes of text, length %d, whole %v, %v; want none of %d, whole",
			len(first.text), first.length, first.whole, err, journal.MaxLine+10)
	}
	second, err := s.next()
	if err != nil || string(second.text) != "x\n" || second.off != journal.MaxLine+10 {
		t.Errorf("got %q at %d, %v; want the second line at %d", second.text, second.off, err, journal.MaxLine+10)
	}
}
