package task_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// lined is a log that also gives its commits as lines, as the log on disk does.
type lined struct {
	memory
	respell func(line []byte) []byte // nil = as they were written
}

func (l lined) Lines(from uint64) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		room := []byte{}
		for c, err := range l.Commits(from) {
			if err == nil {
				c.Epoch, c.By = max(c.Epoch, 1), "a \"run\", of [events]:"
				room, err = journal.AppendCommit(room[:0], c) // the text is good for one step
			}
			text := bytes.TrimSuffix(room, []byte("\n"))
			if l.respell != nil {
				text = l.respell(text)
			}
			if !yield(journal.Line{Seq: c.Seq, Text: text}, err) {
				return
			}
		}
	}
}

// summed is a line with another text and a checksum that holds.
func summed(text []byte, old, new string) []byte {
	body, _, _ := bytes.Cut(text, []byte(`,"crc":`))
	body = bytes.ReplaceAll(body, []byte(old), []byte(new))
	return fmt.Appendf(nil, `%s,"crc":"%08x"}`, body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Messages are taken from where they stood when they were folded only where the line is the
// very same: whatever somebody did to its spelling, they say what they said.
func TestMessagesTakenFromLinesSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: anyLog(t)}
		full, lean := task.New(src), task.New(nil)
		lean.Lean(lined{src, rapid.SampledFrom([]func([]byte) []byte{
			nil,
			func(l []byte) []byte { return summed(l, `"events":[`, `"events":[ `) },
			func(l []byte) []byte { return summed(l, `},{"type":"m`, `}, {"type":"m`) },
			func(l []byte) []byte { return summed(l, `,"events"`, `,"more":[{}],"events"`) },
			func(l []byte) []byte { return summed(l, `,"raw":`, `,"raw": `) },
		}).Draw(t, "spelling")}, rapid.SampledFrom([]int{0, 40}).Draw(t, "room"))
		for _, c := range src.log {
			_, _ = full.Apply(c), lean.Apply(c)
		}
		restored := snapped(t, lean, lined{memory: src})
		for name, s := range map[string]*task.State{"lean": lean, "restored": restored} {
			for what, ask := range map[string]func(*task.State) ([][]byte, error){"ui": (*task.State).RawUI, "api": (*task.State).RawAPI} {
				a, errA := ask(full)
				b, errB := ask(s)
				if d := cmp.Diff(texts(a), texts(b)); d != "" || errA != nil || errB != nil {
					t.Fatalf("%s, %s: %v %v %s", name, what, errA, errB, d)
				}
			}
		}
		if d := cmp.Diff(dump(full), dump(restored)); d != "" {
			t.Fatal(d)
		}
	})
}

func texts(list [][]byte) []string {
	out := []string{}
	for _, raw := range list {
		out = append(out, string(raw))
	}
	return out
}

func snapped(t *rapid.T, s *task.State, src task.Source) *task.State {
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r, err := task.Restore(data, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A snapshot may have been written by anybody: a place that is none is not believed.
func TestAMessageThatDoesNotStandWhereItShouldIsLookedFor(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")), ui(2, say(3, "hello")))
	data, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	asked, changed := 0, 0
	for at := range data {
		for _, by := range []byte{1, 2, 0x10, 0x40} {
			other := bytes.Clone(data)
			other[at] ^= by
			s, err := task.Restore(other, lined{memory: w.src}, 0)
			if err != nil {
				continue
			}
			for _, list := range [][]*task.Message{s.UI(), s.API()} {
				raws, err := s.Raws(list)
				for _, raw := range raws {
					asked++
					if err == nil && !strings.HasPrefix(string(raw), "{") {
						changed++
					}
				}
			}
		}
	}
	if asked == 0 || changed > 0 {
		t.Errorf("%d of %d messages are no objects", changed, asked)
	}
}

// What one message keeps in memory is bounded, and none lies in another.
func TestMessagesDoNotShareTheirEnds(t *testing.T) {
	w := tell(t)
	var events []task.Event
	for i := range uint64(60) {
		events = append(events, ui(i+1, say(int(i), strings.Repeat("x", int(i*35)))))
	}
	w.then(events...)
	s := task.New(nil).Lean(lined{memory: w.src}, 0)
	for _, c := range w.src.log {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	raws, err := s.Raws(s.UI())
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range raws {
		if cap(raw) > len(raw) && cap(raw) > 2*len(raw)+64 {
			t.Fatalf("message %d of %d bytes has room for %d", i+1, len(raw), cap(raw))
		}
		_ = append(raw, "over the next"...)
	}
	for i, m := range w.UI() {
		if string(raws[i]) != string(m.Raw()) {
			t.Fatalf("message %d: %s", m.ID, raws[i])
		}
	}
}
