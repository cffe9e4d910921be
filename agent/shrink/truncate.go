package shrink

import (
	"github.com/google/uuid"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// Truncation is where a truncation goes in the journal.
type Truncation struct {
	Run         string
	At          int64  // time stamp of the marker and the row
	NextMessage uint64 // the number of the next message of the commit
	Tokens      int64  // of the next request without the truncation; 0 = not known
}

// Truncate hides the older half of what is sent, in Roo's manner: the messages get a tag, a marker takes their
// place, and the person gets a row. It returns the events and how many messages they hide, 0 when too few are left
// to hide.
func Truncate(s *task.State, t Truncation) (events []task.Event, hidden int) {
	api := s.API()
	raws := make([][]byte, len(api))
	for i, m := range api {
		raws[i] = m.Raw()
	}
	cut := contextwindow.CutOldest(raws, 0.5, uuid.NewString(), t.At)
	if len(cut.Hide) == 0 {
		return nil, 0
	}
	total := Size(raws)
	left := total
	var covered []*task.Message
	for _, i := range cut.Hide {
		left -= messageSize(raws[i])
		covered = append(covered, api[i])
	}
	before := t.Tokens
	if before <= 0 {
		before = contextwindow.EstimateTokens(total, contextwindow.Calibration{})
	}
	after := max(before*max(left, 0)/max(total, 1), 1)
	marker := task.MessageAdded{History: task.API, Message: t.NextMessage, Body: task.Body{Raw: cut.Marker}}
	if cut.At < len(api) {
		marker.Before = api[cut.At].ID
	}
	row := task.MessageAdded{
		History: task.UI,
		Message: t.NextMessage + 1,
		Body:    task.Body{Raw: truncationRow(t.At, cut.ID, len(cut.Hide), before, after)},
	}
	return []task.Event{marker, row, task.HistoryTruncated{
		Run:        t.Run,
		Truncation: cut.ID,
		Marker:     marker.Message,
		Row:        row.Message,
		Covers:     s.RunsOf(covered),
		Messages:   len(cut.Hide),
		Before:     before,
		After:      after,
	}}, len(cut.Hide)
}

// truncationRow is the row that Roo writes; it has no text.
func truncationRow(ts int64, id string, removed int, before, after int64) []byte {
	var info, o esjson.Object
	info.String("truncationId", id)
	info.Int("messagesRemoved", int64(removed))
	info.Int("prevContextTokens", before)
	info.Int("newContextTokens", after)
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "sliding_window_truncation")
	o.Raw("contextTruncation", info.Bytes())
	return o.Bytes()
}
