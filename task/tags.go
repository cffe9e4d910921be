package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task/facts"
)

const (
	noSummary lifted = 1 << iota // its condenseParent counts no more
	noMarker                     // its truncationParent counts no more
)

// bare is a message without the tags that were lifted. The other one of two comes
// last, as Roo puts it.
func bare(raw json.RawMessage, l lifted) json.RawMessage {
	if l == 0 {
		return raw
	}
	condensed, isCondensed := esjson.Get(raw, "condenseParent")
	truncated, isTruncated := esjson.Get(raw, "truncationParent")
	out := esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent")
	if isCondensed && l&noSummary == 0 {
		out = esjson.Set(out, "condenseParent", condensed)
	}
	if isTruncated && l&noMarker == 0 {
		out = esjson.Set(out, "truncationParent", truncated)
	}
	return out
}

// Tags are the message's tags, without those that a rewind lifted.
func (m *Message) Tags() facts.Tags {
	if m.facts.Tags == nil {
		return facts.Tags{}
	}
	t := *m.facts.Tags
	if m.lifted&noSummary != 0 {
		t.Condensed = ""
	}
	if m.lifted&noMarker != 0 {
		t.Truncated = ""
	}
	return t
}

// lift removes tags that name a rewound summary or marker.
func (m *Message) lift(gone map[string]bool) {
	t := m.Tags()
	if t.Condensed != "" && gone[t.Condensed] {
		m.lifted |= noSummary
	}
	if t.Truncated != "" && gone[t.Truncated] {
		m.lifted |= noMarker
	}
}
