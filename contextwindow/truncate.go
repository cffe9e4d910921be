package contextwindow

import (
	"math"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// Cut is which messages a truncation hides, and the marker that replaces them.
type Cut struct {
	Hide   []int // indexes of the hidden messages, in order
	At     int   // the marker goes before this message; the length of the list = at its end
	ID     string
	Marker []byte
}

// CutOldest chooses the given fraction of the visible messages, oldest first: an even number of them, never the first
// one. id is the marker's truncationId; now (Unix milliseconds) is its ts when no message follows it. It hides nothing
// when too few messages are left.
//
// Unlike Roo's, it counts only what is still sent as visible: after a condense, Roo hides messages that the summary
// hides already, and the request stays as long as it was.
func CutOldest(messages [][]byte, fraction float64, id string, now int64) Cut {
	all := readAll(messages)
	var visible []int
	for i := max(0, lastSummary(all)); i < len(all); i++ {
		if all[i].truncated == "" && !all[i].marker {
			visible = append(visible, i)
		}
	}
	removed := int(math.Floor(float64(len(visible)-1) * fraction))
	removed -= removed % 2
	if removed <= 0 || removed >= len(visible) {
		return Cut{}
	}
	c := Cut{Hide: visible[1 : removed+1], At: len(messages), ID: id}
	ts := float64(now) - 1
	if removed+1 < len(visible) {
		c.At = visible[removed+1]
		if f, ok := num(all[c.At].ts); ok {
			ts = f - 1
		}
	}
	var marker esjson.Object
	marker.String("role", "user")
	marker.String("content", "[Sliding window truncation: "+strconv.Itoa(removed)+" messages hidden to reduce context]")
	marker.Float("ts", ts)
	marker.Bool("isTruncationMarker", true)
	marker.String("truncationId", id)
	c.Marker = marker.Bytes()
	return c
}
