package contextwindow

import (
	"math"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// Truncate hides the given fraction of the visible messages, oldest first, behind
// a marker: an even number of them, never the first one. id is the marker's
// truncationId; now (Unix milliseconds) is its ts when no message follows it.
// removed is 0, and the list the one given, when there is too little to hide.
//
// Unlike Roo's, it counts only what is still sent as visible: after a condense,
// Roo hides messages that the summary hides already, and the request stays as
// long as it was.
func Truncate(messages [][]byte, fraction float64, id string, now int64) (out [][]byte, removed int) {
	all := readAll(messages)
	var visible []int
	for i := max(0, lastSummary(all)); i < len(all); i++ {
		if all[i].truncated == "" && !all[i].marker {
			visible = append(visible, i)
		}
	}
	removed = int(math.Floor(float64(len(visible)-1) * fraction))
	removed -= removed % 2
	if removed <= 0 || removed >= len(visible) {
		return messages, 0
	}
	hide := make(map[int]bool, removed)
	for _, i := range visible[1 : removed+1] {
		hide[i] = true
	}
	at, ts := len(messages), float64(now)
	if removed+1 < len(visible) {
		at = visible[removed+1]
		if f, ok := num(all[at].ts); ok {
			ts = f - 1
		}
	}
	var marker esjson.Object
	marker.String("role", "user")
	marker.String("content", "[Sliding window truncation: "+strconv.Itoa(removed)+" messages hidden to reduce context]")
	marker.Float("ts", ts)
	marker.Bool("isTruncationMarker", true)
	marker.String("truncationId", id)
	for i, m := range messages {
		if i == at {
			out = append(out, marker.Bytes())
		}
		if hide[i] {
			m = esjson.Set(m, "truncationParent", esjson.Quote(nil, id))
		}
		out = append(out, m)
	}
	if at == len(messages) {
		out = append(out, marker.Bytes())
	}
	return out, removed
}
