package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// Waits bound how long ReadSettled waits for another program that is writing.
type Waits struct {
	Busy   time.Duration // while it holds a lock, or changes a file that is being read
	Settle time.Duration // how long two files that disagree must be unchanged before they are taken as they are
	Pause  time.Duration // between two reads
	Still  time.Duration // the least age of the last change of a file that is read; see fresh
}

// DefaultWaits: Roo gives up a lock after 2.5 s. It holds one for as long as it writes a file, and its two saves of a
// step follow each other within milliseconds, so a second without a lock is long.
var DefaultWaits = Waits{
	Busy:   3 * time.Second,
	Settle: time.Second,
	Pause:  100 * time.Millisecond,
	Still:  ClockTick,
}

// ClockTick is the age that the last change of a file must have before its times can be trusted: within one tick of
// the file system's clock a second write leaves no trace.
const ClockTick = 50 * time.Millisecond

// coarseTick is ClockTick for a file system whose times have whole seconds only.
const coarseTick = 2100 * time.Millisecond

// Settled reports whether a change after now would show in the time of a file whose last change was at mtime, in
// nanoseconds. still is the age that this change must have; 0 trusts every file.
func Settled(mtime int64, now time.Time, still time.Duration) bool {
	if mtime%int64(time.Second) == 0 && still > 0 {
		still = coarseTick
	}
	return still == 0 || now.Sub(time.Unix(0, mtime)).Abs() > still
}

// ReadSettled reads a folder at a moment when no program writes it and its two histories agree. When they keep
// disagreeing, the other program left them that way, and ReadSettled returns them. A folder with a file that cannot be
// read is an error that wraps *roofmt.UnreadError. mark is what Roost wrote: Roost's own files need no agreement,
// because a kill of Roost between two renames is not another program's half step.
func ReadSettled(ctx context.Context, dir string, mark projection.Watermark, wait Waits) (*roofmt.Folder, error) {
	begun := time.Now()
	var seen [2]roofmt.Fingerprint
	since := begun
	for {
		read := time.Now()
		folder, err := roofmt.Read(ctx, dir)
		if err != nil {
			return nil, err
		}
		if unread := folder.Unread; unread != nil {
			return nil, errors.Join(unread, folder.Close())
		}
		if now := [...]roofmt.Fingerprint{folder.UI.Print, folder.API.Print}; now != seen {
			seen, since = now, time.Now()
		}
		why, limit := "", wait.Busy
		switch {
		case locked(folder) || folder.UI.Unstable || folder.API.Unstable:
			why = fmt.Sprintf("lock on %v", folder.Locks)
		default:
			why = unsettled(folder, mark)
			if why == "" || quiet(seen, since, time.Now()) >= wait.Settle {
				if why = fresh(folder, mark, read, wait.Still); why == "" {
					return folder, nil
				}
				limit += coarseTick
			}
			limit += wait.Settle
		}
		if err := folder.Close(); err != nil {
			return nil, err
		}
		if time.Since(begun) > limit {
			return nil, fmt.Errorf("%s: %w (%s); try again when it has finished", dir, projection.ErrBusy, why)
		}
		if !sleep.For(ctx, wait.Pause) {
			return nil, ctx.Err()
		}
	}
}

// unsettled describes why a folder may be in the middle of another program's step; "" when it is not.
func unsettled(folder *roofmt.Folder, mark projection.Watermark) string {
	if mark.Wrote(folder.UI) && mark.Wrote(folder.API) {
		return ""
	}
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if !whole(doc) && doc.State != roofmt.Missing {
			return doc.Name + " is " + doc.State.String()
		}
	}
	return disagreement(folder.UI, folder.API)
}

// fresh names a file that another program wrote just before ReadSettled read it; "" when there is none. A second write
// after the read, within one tick of the clock and of the same length, would leave the fingerprint as it was: Roost
// would never take that write in, and would then replace the file. A file that was unchanged for a tick before the read
// shows every later change. Files that Roost wrote have an older time; see roofmt.Replace.
func fresh(folder *roofmt.Folder, mark projection.Watermark, read time.Time, still time.Duration) string {
	for name, print := range map[string]roofmt.Fingerprint{
		folder.UI.Name: folder.UI.Print, folder.API.Name: folder.API.Print,
		roofmt.ItemName: folder.ItemPrint, roofmt.MetadataName: folder.MetadataPrint,
	} {
		if print.Exists && mark.Files[name].Print() != print && !Settled(print.MTime, read, still) {
			return name + " was written just now"
		}
	}
	return ""
}

// quiet returns how long files have been unchanged: by their own times, or, where those cannot be right, for as long
// as ReadSettled has watched them.
func quiet(files [2]roofmt.Fingerprint, since, now time.Time) time.Duration {
	newest := int64(0)
	for _, f := range files {
		newest = max(newest, f.MTime)
	}
	watched := now.Sub(since)
	if newest == 0 {
		return watched
	}
	return max(watched, now.Sub(time.Unix(0, newest)))
}

// rawList is a list of raw messages: a file's, or a history's.
type rawList interface {
	Len() int
	Raw(i int) ([]byte, error)
}

// turnRows bounds how many rows at the end of the UI history are examined. A turn has fewer.
const turnRows = 400

// disagreement describes what one of a task's two files still lacks; "" when the files agree.
//
// Roo saves each list as a whole, one list after the other: the request row, then the user turn; the rows of a reply,
// then the assistant message; the user's words, then the turn that holds them. Only a condensation reaches the API
// list first. So between two saves one file is a step behind, and the messages that it lacks are still to come.
//
// disagreement judges order by ts, which Roo sets when it makes a row or message. A ts proves little: two files that
// are in step may look as if they were not. Such an error costs a short wait, because ReadSettled takes files that do
// not change. The opposite error, to take half a step for a whole one, would cost messages. So in doubt the two
// disagree.
func disagreement(ui, api rawList) string {
	switch {
	case ui.Len() == 0 && api.Len() == 0:
		return ""
	case ui.Len() == 0:
		return "the UI history has not begun"
	case api.Len() == 0:
		return "the API history has not begun"
	}
	last, before := turnAt(api, api.Len()-1), turnAt(api, api.Len()-2)
	if last.ts == 0 {
		return "" // old files have no times, so there is nothing to compare
	}
	if lack := apiLacks(ui, last); lack != "" {
		return lack
	}
	return uiLacks(ui, last, before)
}

// turn is the part of an API message that disagreement compares.
type turn struct {
	role    string
	ts      int64
	summary string // the condensation that made it
}

func turnAt(api rawList, i int) turn {
	if i < 0 {
		return turn{}
	}
	raw, err := api.Raw(i)
	if err != nil {
		return turn{}
	}
	return turn{role: esjson.TextOf(raw, "role"), ts: esjson.IntOf(raw, "ts"), summary: esjson.TextOf(raw, "condenseId")}
}

// uiRow is the part of a UI row that disagreement compares.
type uiRow struct {
	raw  []byte
	kind string // its say or its ask
	ask  bool
	ts   int64
}

func rowAt(ui rawList, i int) uiRow {
	raw, err := ui.Raw(i)
	if err != nil {
		return uiRow{}
	}
	typ := esjson.TextOf(raw, "type")
	return uiRow{raw: raw, kind: esjson.TextOf(raw, typ), ask: typ == "ask", ts: esjson.IntOf(raw, "ts")}
}

// apiLacks names the API message that is still missing although its rows are there; "" when none is.
func apiLacks(ui rawList, last turn) string {
	reply := false
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		row := rowAt(ui, i)
		if row.ts == 0 {
			continue // it has no time
		}
		if row.ts <= last.ts {
			break
		}
		switch {
		case row.ask && (row.kind == "resume_task" || row.kind == "resume_completed_task"):
			return replyLacks(reply) // the user opened the task again: the rows before are complete
		case !row.ask && (row.kind == "user_feedback" || row.kind == "user_feedback_diff" || row.kind == "subtask_result"):
			return "the API history has yet to get the user's words"
		case !row.ask && row.kind == "api_req_started":
			if (last.role == "assistant" || last.summary != "") && !cancelled(row) {
				return "the API history has yet to get the turn that was sent"
			}
			if cancelled(row) {
				return "" // Roo stores nothing of a cancelled reply
			}
			// Roo repeats a request in the middle of a turn, too: continue.
		case last.role == "user" && row.endsReply():
			reply = true
		}
	}
	if reply && cancelled(requestBefore(ui, last.ts)) {
		return ""
	}
	return replyLacks(reply)
}

func replyLacks(reply bool) string {
	if reply {
		return "the API history has yet to get the model's reply"
	}
	return ""
}

// endsReply reports whether the row is a finished part of a model's reply.
func (r uiRow) endsReply() bool {
	if esjson.IsTrue(r.raw, "partial") {
		return false
	}
	switch r.kind {
	case "text", "completion_result":
		return true
	case "tool", "command", "use_mcp_server", "followup":
		return r.ask
	}
	return false
}

// requestBefore returns the newest request row that is not younger than ts.
func requestBefore(ui rawList, ts int64) uiRow {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		if row := rowAt(ui, i); !row.ask && row.kind == "api_req_started" && row.ts <= ts {
			return row
		}
	}
	return uiRow{}
}

func cancelled(request uiRow) bool {
	text := []byte(esjson.TextOf(request.raw, "text"))
	return esjson.Valid(text) && esjson.Member(text, "cancelReason") != nil
}

// uiLacks names the rows of the newest API message that are still missing; "" when none are.
func uiLacks(ui rawList, last, before turn) string {
	for i := ui.Len() - 1; i >= max(0, ui.Len()-turnRows); i-- {
		row := rowAt(ui, i)
		switch {
		case last.summary != "":
			if esjson.TextOf(esjson.Member(row.raw, "contextCondense"), "condenseId") == last.summary {
				return ""
			}
		case row.ts < before.ts && row.ts != 0:
			return "the UI history has yet to get the rows of the newest turn"
		case last.role != "user" || row.sends():
			return ""
		}
	}
	return "the UI history has yet to get the rows of the newest turn"
}

// sends reports whether a user turn follows the row.
func (r uiRow) sends() bool {
	switch r.kind {
	case "api_req_started", "user_feedback", "subtask_result", "text", "task":
		return !r.ask
	}
	return false
}
