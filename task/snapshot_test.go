package task_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// played is a long run: every turn has a request row, a streamed text, a call with
// its process, output, result and file record, and the turn that sends the result.
func played(t testing.TB, turns int) *foldedLog {
	w := tell(t, task.Created{Task: "t", Number: 1, Title: "a long run"}, task.RunStarted{Run: "r"})
	for i := range turns {
		id := w.NextMessage()
		call := fmt.Sprintf("toolu_01ABCdefGHIjklMNOpq%04d", i)
		w.then(ui(id, fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\"}"}`, 1700000000000+i)), task.TurnStarted{Turn: i + 1})
		w.then(ui(id+1, say(1700000000000+i, "")), task.MessageTextSaved{Message: id + 1, Text: "streamed text"})
		w.then(task.MessageChanged{Message: id + 1, Body: task.Body{Compose: []task.Piece{{Literal: `{"ts":1,"type":"say","say":"text","text":`}, {TextOf: id + 1}, {Literal: `}`}}}},
			task.MessageChanged{Message: id, Body: body(fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"tokensOut\":55,\"cost\":0.0123}"}`, 1700000000000+i, 1000+i))},
			task.UsageChanged{Turn: i + 1, Input: 1000}, apiMessage(id+2, assistant(call)))
		w.then(task.ToolStarted{Call: call, Name: "execute_command", Replay: "never"}, task.ToolProcess{Call: call, PGID: 4000 + i, Boot: "boot", Mark: call})
		w.then(finished(call, strings.Repeat("output ", 100)), task.FileChanged{Path: fmt.Sprint("src/", i%20), Source: "read_tool", Hash: strings.Repeat("a", 64)})
		w.then(answers(id+3, call))
	}
	return w
}

// What a message costs in a snapshot bounds what opening a long task costs.
func TestASnapshotIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	size := func(turns int) int {
		w := played(t, turns)
		data, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	small, big := size(50), size(350)
	each := float64(big-small) / (300 * 4)
	t.Logf("%.0f bytes a message with all that hangs on it", each)
	if each > 160 {
		t.Errorf("a message takes %.0f bytes", each)
	}
	plain := tell(t)
	var events []task.Event
	for i := range 1000 {
		events = append(events, ui(uint64(i+1), say(1700000000000+i, strings.Repeat("long ", 200))))
	}
	plain.then(events...)
	data, err := plain.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if each := len(data) / 1000; each > 64 {
		t.Errorf("a plain message takes %d bytes", each)
	}
}

func TestASnapshotOfARunHoldsNoBytesOfMessages(t *testing.T) {
	w := played(t, 3)
	data, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"streamed text", "output output"} {
		if bytes.Contains(data, []byte(text)) {
			t.Errorf("it holds %q", text)
		}
	}
	if d := cmp.Diff(dump(w.State), dump(w.restored(0))); d != "" {
		t.Error(d)
	}
}

func TestASnapshotOfAnotherVersionIsNotRead(t *testing.T) {
	data, err := tell(t, task.Created{Task: "t"}).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	for _, other := range []string{"", "roost state 0", "roost state 22", strings.ToUpper(string(head)), string(head) + " "} {
		if _, err := task.Restore(append([]byte(other+"\n"), rest...), memory{}, 0); !errors.Is(err, task.ErrSnapshot) {
			t.Errorf("%q: got %v, want errors.Is(err, task.ErrSnapshot)", other, err)
		}
		if _, err := task.RestoreRuns(append([]byte(other+"\n"), rest...), memory{}); !errors.Is(err, task.ErrSnapshot) {
			t.Errorf("runs of %q: got %v, want errors.Is(err, task.ErrSnapshot)", other, err)
		}
	}
	if _, err := task.Restore(nil, memory{}, 0); !errors.Is(err, task.ErrSnapshot) {
		t.Errorf("nothing at all: %v", err)
	}
}

// adopted is a task whose messages lie in another tool's files.
func adopted(t testing.TB) *foldedLog {
	file, spans := list(say(1, "a"), say(2, "b"))
	apiFile, apiSpans := list(assistant("c1"))
	w := tellWith(t, blobMap{"u": file, "a": apiFile}, task.Adopted{Task: "t", Item: []byte(`{"number":2}`), Files: []task.Original{
		original(task.UI, "u", spans...), original(task.API, "a", apiSpans...),
	}})
	return w.then(answers(w.NextMessage()), api.QuestionOpened{Question: "q", Call: "c1"})
}

// Whatever bytes a damaged index holds, reading the state that comes of them gives
// answers or errors, and never breaks.
func TestADamagedSnapshotIsRefusedOrHarmless(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	for name, w := range map[string]*foldedLog{"played": played(t, 2), "adopted": adopted(t)} {
		whole, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		damages := [][]byte{
			nil, {0}, {0x7f}, binary.AppendUvarint(nil, math.MaxUint64), binary.AppendVarint(nil, math.MaxInt64), binary.AppendVarint(nil, -2),
		}
		restored := 0
		for at := len(task.SnapshotHead); at < len(whole); at++ {
			for _, with := range append(damages, []byte{whole[at] ^ 1}) {
				data := append(append(append([]byte{}, whole[:at]...), with...), whole[at+1:]...)
				if s, err := task.Restore(data, w.src, 0); err == nil {
					restored++
					use(s)
				}
			}
		}
		if restored == 0 {
			t.Errorf("%s: nothing came of %d bytes", name, len(whole))
		}
	}
}

// use asks a state for everything and folds something on top.
func use(s *task.State) {
	dump(s)
	_, _ = s.RawUI()
	_, _ = s.RawAPI()
	for _, m := range s.UI() {
		_, _ = m.Spent()
	}
	_, _ = s.Snapshot()
	_ = s.Apply(commit(s.Seq+1, []byte(`{"type":"message.hidden","messages":[1,2,3]}`), []byte(`{"type":"question.opened","question":"q"}`)))
	_ = s.Load()
	dump(s)
}

func FuzzRestoreOverALog(f *testing.F) {
	var src memory
	for _, w := range []*foldedLog{played(f, 2), adopted(f)} {
		whole, err := w.Snapshot()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		if len(w.src.blobMap) > 0 {
			src.blobMap = w.src.blobMap
		} else {
			src.log = w.src.log
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := task.Restore(data, src, 0); err == nil {
			use(s)
		}
	})
}

// A count that cannot be true must not take the memory of a true one.
func TestADamagedCountTakesNoMemory(t *testing.T) {
	data := append([]byte(task.SnapshotHead), make([]byte, 8)...) // nothing before the messages
	const claimed = 1 << 20
	data = append(binary.AppendUvarint(data, claimed), make([]byte, claimed)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := task.Restore(data, memory{}, 0)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, task.ErrSnapshot) {
		t.Fatalf("got %v, want errors.Is(err, task.ErrSnapshot)", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes of damage took %d MB", len(data), took>>20)
	}
}

// A snapshot of a snapshot is the snapshot.
func TestASnapshotIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: movingLog(t)}
		s := task.New(src)
		for _, c := range src.log {
			_ = s.Apply(c)
		}
		first, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if s, err = task.Restore(first, src, 0); err != nil {
				t.Fatal(err)
			}
			again, err := s.Snapshot()
			if err != nil || !bytes.Equal(first, again) {
				t.Fatalf("got %v\n%q\n%q, want no error and bytes.Equal(first, again)", err, first, again)
			}
		}
	})
}
