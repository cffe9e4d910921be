package contextwindow

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/llm"
)

// genTurn draws what one turn of a run adds to a history: the model's reply, and the
// message with the results, which may be incomplete, doubled or out of order.
func genTurn(t *rapid.T, n int) [][]byte {
	id := rapid.SampledFrom([]string{"a", "b", "c", fmt.Sprint("call_", n), "x.y", ""})
	var reply, results [][]byte
	if rapid.IntRange(0, 3).Draw(t, "think") == 0 {
		reply = append(reply, []byte(`{"type":"thinking","thinking":"hm","signature":"s"}`))
	}
	if rapid.Bool().Draw(t, "text") {
		reply = append(reply, textOf("reply"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		call := id.Draw(t, "id")
		reply = append(reply, useBlock(call, "n", []byte(`{"path":"a"}`)))
		if rapid.IntRange(0, 5).Draw(t, "lost") > 0 {
			results = append(results, resultBlock(call, "out"))
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "stray") == 0 {
		results = append(results, resultBlock(id.Draw(t, "id"), "stray"))
	}
	if len(results) > 1 && rapid.Bool().Draw(t, "turned") {
		results[0], results[1] = results[1], results[0]
	}
	results = append(results, textOf("<environment_details>"))
	message := func(role string, content [][]byte) []byte {
		var o esjson.Object
		o.String("role", role)
		o.Raw("content", esjson.List(content))
		o.Int("ts", int64(n))
		return o.Bytes()
	}
	return [][]byte{message("assistant", reply), message("user", results)}
}

// Providers cache by prefix: whatever a run's turns look like, the messages of one
// request stand, byte for byte, at the beginning of the next one. Only a condense or a
// truncation may break that.
func TestRequestsArePrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := lines(`{"role":"user","content":"do it"}`)
		o := genOptions(t)
		b := NewBuilder(o)
		b.Append(h[0])
		var before []string
		for n := range rapid.IntRange(1, 8).Draw(t, "turns") {
			messages, _, err := b.Messages()
			if err == nil {
				err = apirules.Validate(messages)
			}
			if err != nil {
				t.Fatal(err)
			}
			now := make([]string, len(messages))
			for i, m := range messages {
				now[i] = m.Role + string(m.Content)
			}
			// A reply without anything to send leaves the user's message open: it grows.
			keep := len(before)
			if len(now) == keep && keep > 0 {
				keep--
			}
			for i := range keep {
				if now[i] != before[i] {
					t.Fatalf("message %d of turn %d was\n%s\nand is\n%s", i, n, before[i], now[i])
				}
			}
			before = now
			for _, m := range genTurn(t, n) {
				h = append(h, m)
				b.Append(m)
			}
		}
		whole, _, err := Build(h, o)
		last, _, err2 := b.Messages()
		if err != nil || err2 != nil || show(whole) != show(last) {
			t.Fatalf("got %v %v\n%s\n%s, want no error and err2 = nil and show(whole) = show(last)",
				err, err2, show(whole), show(last))
		}
	})
}

// A condense breaks the prefix once; from there on it holds again, with the summary
// in front.
func TestCondenseStartsANewPrefix(t *testing.T) {
	b := NewBuilder(Options{})
	for _, m := range lines(`{"role":"user","content":"a","condenseParent":"C"}`, `{"role":"assistant","content":"b","condenseParent":"C"}`, `{"role":"user","content":"c","condenseParent":"C"}`) {
		b.Append(m)
	}
	first, _, err := b.Messages()
	if err != nil || len(first) != 3 {
		t.Fatal(err, show(first))
	}
	b.Append([]byte(`{"role":"user","content":"the summary","isSummary":true,"condenseId":"C"}`))
	condensed, _, err := b.Messages()
	if err != nil || show(condensed) != "user \"the summary\"\n" {
		t.Fatal(err, show(condensed))
	}
	b.Append([]byte(`{"role":"assistant","content":"on"}`))
	b.Append([]byte(`{"role":"user","content":"and on"}`))
	next, _, err := b.Messages()
	if err != nil || !strings.HasPrefix(show(next), show(condensed)) || len(next) != 3 {
		t.Fatal(err, show(next))
	}
}

// A turn costs what it brings, whatever the history holds: memory is counted, because
// time on a shared machine says little.
func TestATurnCostsWhatItBrings(t *testing.T) {
	cost := func(messages int) uint64 {
		b := NewBuilder(Options{})
		h := long()
		for i := range messages {
			b.Append(h[i%len(h)]) // ids come again and are renamed, as they must
		}
		if _, _, err := b.Messages(); err != nil {
			t.Fatal(err)
		}
		const turns = 64
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range turns {
			for _, raw := range genPlainTurn(i) {
				b.Append(raw)
			}
			if _, _, err := b.Messages(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / turns
	}
	small, large := cost(100), cost(10_000)
	// Lists that grow are copied at times: a part of what they hold, not all of it
	// each time (10,000 messages would be more than 480 KB a turn).
	if large > 10*small+64<<10 {
		t.Errorf("a turn takes %d bytes behind 100 messages and %d behind 10,000", small, large)
	}
}

func genPlainTurn(i int) [][]byte {
	return lines(fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"turn_%d","name":"n","input":{}}]}`, i),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"turn_%d","content":"ok"}]}`, i))
}

// The stored bytes themselves are sent, not copies of them.
func TestBlocksAreSplicedIn(t *testing.T) {
	h := long()[:20]
	messages, notes, err := Build(h, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range messages[:len(messages)-1] {
		content := readTags(h[i]).content
		if &m.Content[0] != &content[0] {
			t.Errorf("message %d was copied", i)
		}
	}
	if len(notes) != 1 {
		t.Errorf("notes %v", notes)
	}
}

func TestNoHistoryNoRequest(t *testing.T) {
	for name, h := range map[string][][]byte{
		"nothing": nil, "junk": lines(``, `{`, `7`, `null`, `[]`), "other roles": lines(`{"role":"system","content":"a"}`), "blanks": lines(`{"role":"user","content":"\n"}`, `{"role":"assistant","content":[]}`),
	} {
		messages, notes, err := Build(h, Options{})
		if !errors.Is(err, ErrEmpty) || messages != nil {
			t.Errorf("%s: got %v %s, want errors.Is(err, ErrEmpty) and messages = nil", name, err, show(messages))
		}
		if name == "junk" && len(notes) != len(h) {
			t.Errorf("%s: %d notes for %d messages", name, len(notes), len(h))
		}
	}
}

// Real histories of any age, cut anywhere, give requests that the API takes.
func TestCorpusRequests(t *testing.T) {
	const name = "api_conversation_history.json"
	list := conformance.CorpusFolders(t, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil })
	conformance.CorpusTally(t, list, func(t *testing.T, dir string) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var h [][]byte
		if _, err := esjson.Split(bytes.NewReader(data), func(e esjson.Element) error {
			h = append(h, data[e.Off:e.Off+e.Len])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b := NewBuilder(Options{})
		var messages []llm.Message
		for i, m := range h {
			b.Append(m)
			if i%(1+len(h)/4) != 0 && i < len(h)-2 {
				continue
			}
			if messages, _, err = b.Messages(); err == nil {
				err = apirules.Validate(messages)
			}
			if err != nil && !errors.Is(err, ErrEmpty) {
				t.Fatalf("after %d of %d messages: %v", i+1, len(h), err)
			}
		}
		if len(h) > 0 && len(messages) == 0 {
			t.Error("nothing is sent")
		}
	})
}
