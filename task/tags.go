package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
)

// tags are Roo's marks for older messages that are not sent: on an API message, what
// it is hidden by and what it hides others as; on a row, what it tells the person of.
type tags struct {
	condensed string // condenseParent: the summary that hides the message
	truncated string // truncationParent: the marker that hides it
	summary   string // condenseId: of a summary, or of the row that shows one
	marker    string // truncationId: of a marker, or of the row that shows one
	marks     bool   // isTruncationMarker
}

// lifted says which of its tags a message has lost although its bytes hold them:
// what they named is rewound. Writing the messages anew would cost as much as they
// are long.
type lifted uint8

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

// tagged is what a message's tags say now.
func (m *Message) tagged() tags {
	if m.facts.tags == nil {
		return tags{}
	}
	t := *m.facts.tags
	if m.lifted&noSummary != 0 {
		t.condensed = ""
	}
	if m.lifted&noMarker != 0 {
		t.truncated = ""
	}
	return t
}

// lift takes tags off that name something which is gone.
func (m *Message) lift(gone map[string]bool) {
	t := m.tagged()
	if t.condensed != "" && gone[t.condensed] {
		m.lifted |= noSummary
	}
	if t.truncated != "" && gone[t.truncated] {
		m.lifted |= noMarker
	}
}
