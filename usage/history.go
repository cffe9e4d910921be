package usage

import (
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// Row is what a history row holds beside what the messages say.
type Row struct {
	ID         string
	RootTask   string // "" leaves the key out, here and below
	ParentTask string
	Number     int64
	Size       int64 // bytes of the task's folder; not used when there are no messages
	Workspace  string
	Mode       string
	Profile    string // name of the provider profile
	Status     string // "active", "completed" or "delegated": only of tasks with parents or children
	Now        int64  // Unix milliseconds; the ts of a task without messages
}

// HistoryItem is the task's history row: the exact bytes of Roo's
// history_item.json. Its texts for tasks without a title are English, whatever
// the locale, so that the same task gives the same bytes.
func (t *Totals) HistoryItem(r Row) []byte {
	var o esjson.Object
	o.String("id", r.ID)
	text(&o, "rootTaskId", r.RootTask)
	text(&o, "parentTaskId", r.ParentTask)
	o.Int("number", r.Number)
	sum := t.sum
	switch {
	case t.rows == 0:
		o.Int("ts", r.Now)
		o.String("task", "Task #"+strconv.FormatInt(r.Number, 10)+" (No messages)")
		sum = Tokens{HasCacheWrites: true, HasCacheReads: true}
		r.Size = 0
	default:
		ts := t.ts
		if !t.found {
			ts = t.first
		}
		number(&o, "ts", ts)
		title := trim(t.title)
		if title == "" {
			title = "Task #" + strconv.FormatInt(r.Number, 10) + " (Incomplete)"
		}
		o.String("task", title)
	}
	o.Float("tokensIn", sum.In)
	o.Float("tokensOut", sum.Out)
	if sum.HasCacheWrites {
		o.Float("cacheWrites", sum.CacheWrites)
	}
	if sum.HasCacheReads {
		o.Float("cacheReads", sum.CacheReads)
	}
	o.Float("totalCost", sum.Cost)
	o.Int("size", r.Size)
	text(&o, "workspace", r.Workspace)
	text(&o, "mode", r.Mode)
	text(&o, "apiConfigName", r.Profile)
	text(&o, "status", r.Status)
	return o.Bytes()
}

// HistoryItem is the history row of a whole UI list; see Totals.HistoryItem.
func HistoryItem(messages [][]byte, r Row) []byte {
	t := Of(messages)
	return t.HistoryItem(r)
}

// Of is the Totals of a whole UI list.
func Of(messages [][]byte) *Totals {
	var t Totals
	for _, m := range messages {
		t.Add(m)
	}
	return &t
}

func text(o *esjson.Object, key, val string) {
	if val != "" {
		o.String(key, val)
	}
}

// number writes a number as JSON.stringify does. A value of any other kind is
// passed through: the message's ts is what it is.
func number(o *esjson.Object, key string, raw []byte) {
	if f, ok := numberOf(raw); ok {
		o.Float(key, f)
		return
	}
	o.Raw(key, raw)
}
