package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// CheckPrefix checks that every commit of before is in after, byte for byte and in its place.
func CheckPrefix(before, after Look) error {
	if len(after.Commits) < len(before.Commits) {
		return fmt.Errorf("%d commits became %d", len(before.Commits), len(after.Commits))
	}
	for i, a := range before.Commits {
		if b := after.Commits[i]; !same(a, b) {
			return fmt.Errorf("commit %d changed: %s became %s", a.Seq, a.Events, b.Events)
		}
	}
	return nil
}

func same(a, b journal.Commit) bool {
	if a.Seq != b.Seq || a.Epoch != b.Epoch || a.At != b.At || a.By != b.By || len(a.Events) != len(b.Events) {
		return false
	}
	for i := range a.Events {
		if !bytes.Equal(a.Events[i], b.Events[i]) {
			return false
		}
	}
	return true
}

// CheckPrinted holds what a child printed against the journal: each durable event
// of its task must be there, at its place, with the same bytes.
func CheckPrinted(lines []json.RawMessage, l Look) (durable int, err error) {
	bySeq := map[uint64]journal.Commit{}
	for _, c := range l.Commits {
		bySeq[c.Seq] = c
	}
	last, index := uint64(0), 0
	for _, line := range lines {
		n, ok := esjson.GetInt(line, "seq")
		if !ok || n <= 0 {
			continue // a live piece: nothing is promised of it
		}
		if id, _ := esjson.GetString(line, "task_id"); l.Ref.ID != "" && id != l.Ref.ID {
			continue // of another task of its tree
		}
		seq := uint64(n)
		if seq != last {
			last, index = seq, 0
		}
		c, ok := bySeq[seq]
		if !ok {
			return durable, fmt.Errorf("commit %d was printed and is not in the journal (head %d): %s", seq, len(l.Commits), line)
		}
		if index >= len(c.Events) {
			return durable, fmt.Errorf("commit %d has %d events, more were printed: %s", seq, len(c.Events), line)
		}
		if err := printedIs(line, atItsEnd(c, index)); err != nil {
			return durable, fmt.Errorf("commit %d, event %d: %w", seq, index, err)
		}
		index++
		durable++
	}
	return durable, nil
}

// atItsEnd is an event of a commit as it is shown. A message that is added is shown as
// it is when the whole commit is done: the text that came until then may follow it
// in the same commit.
func atItsEnd(c journal.Commit, index int) []byte {
	event := []byte(c.Events[index])
	raw, ok := esjson.Get(event, "raw")
	id, _ := esjson.GetInt(event, "message")
	if !ok {
		return event
	}
	for _, later := range c.Events[index+1:] {
		typ, _ := esjson.GetString(later, "type")
		if of, _ := esjson.GetInt(later, "message"); of != id || typ != "message.text_saved" {
			continue
		}
		text, _ := esjson.GetString(raw, "text")
		more, _ := esjson.GetString(later, "text")
		raw = esjson.Set(raw, "text", esjson.Quote(nil, text+more))
	}
	return esjson.Set(event, "raw", raw)
}

// printedIs compares a printed event with the log's. A printed message is complete, also when the log composes it of
// pieces.
func printedIs(line, event []byte) error {
	for key, want := range esjson.Members(event) {
		switch key {
		case "seq", "at", "task_id", "run_id", "blob", "compose":
			continue
		case "raw":
			key = "content"
		}
		got, ok := esjson.Get(line, key)
		if !ok || !bytes.Equal(got, want) {
			return fmt.Errorf("%s was printed as %s and is %s", key, got, want)
		}
	}
	return nil
}

// CheckHistories checks that the two histories of a task that has come to rest agree: every call has one result right
// after it, except those of the last reply; the words of one side are on the other; no row is still streaming.
func CheckHistories(l Look) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	answers := map[string]int{}
	var open []string
	shown := map[string]bool{}
	for i, row := range l.UI {
		text, _ := esjson.GetString(row, "text")
		shown[strings.TrimSpace(text)] = true
		if partial, _ := esjson.GetBool(row, "partial"); partial {
			fail("row %d is still partial: %s", i, row)
		}
	}
	for i, m := range l.API {
		role, _ := esjson.GetString(m, "role")
		got := map[string]bool{}
		content, _ := esjson.Get(m, "content")
		var calls []string
		for b := range esjson.Array(content) {
			typ, _ := esjson.GetString(b, "type")
			switch typ {
			case "tool_use":
				id, _ := esjson.GetString(b, "id")
				calls = append(calls, id)
			case "tool_result":
				id, _ := esjson.GetString(b, "tool_use_id")
				got[id] = true
				answers[id]++
			case "text":
				text, _ := esjson.GetString(b, "text")
				if words, ok := said(role, text); ok && !shown[words] {
					fail("message %d says %q, and no row shows it", i, words)
				}
			}
		}
		if role == "user" {
			for _, id := range open {
				if !got[id] {
					fail("call %s has no result in message %d", id, i)
				}
			}
			open = nil
		} else if len(open) > 0 {
			fail("calls %v have no results before message %d", open, i)
		}
		if role == "assistant" {
			open = calls
		}
	}
	for id, n := range answers {
		if n != 1 {
			fail("call %s has %d results", id, n)
		}
	}
	for _, c := range l.Calls {
		if c.Started && !l.Shown[c.ID] {
			fail("call %s of %s ran, and no row shows it", c.ID, c.Name)
		}
	}
	return errors.Join(errs...)
}

// said returns the words of a text block that the other side must have: the model's words, or a user's. The
// environment and our own remarks are neither.
func said(role, text string) (string, bool) {
	if role == "assistant" {
		return strings.TrimSpace(text), true
	}
	inner, ok := strings.CutPrefix(text, "<user_message>\n")
	if !ok {
		return "", false
	}
	return strings.TrimSpace(strings.TrimSuffix(inner, "\n</user_message>")), true
}
