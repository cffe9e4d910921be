package usage

import (
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// Row is what a history row holds in addition to what follows from the messages.
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
	Family     Family
}

// Family is what a history row holds of a task's children. Empty members are left out.
type Family struct {
	Delegated string   // the last child
	Awaiting  string   // the child that the task waits for
	Children  []string // in order of their creation
	Completed string   // the last child that came back
	Result    string   // and its result
}

// FamilyKeys are the members of a row that Family makes: one that is not in a new row
// has to go from an old one.
var FamilyKeys = [...]string{"delegatedToId", "awaitingChildId", "childIds", "completedByChildId", "completionResultSummary"}

func (f Family) write(o *esjson.Object) {
	text(o, FamilyKeys[0], f.Delegated)
	text(o, FamilyKeys[1], f.Awaiting)
	if len(f.Children) > 0 {
		o.Raw(FamilyKeys[2], esjson.Strings(f.Children))
	}
	text(o, FamilyKeys[3], f.Completed)
	text(o, FamilyKeys[4], f.Result)
}

// HistoryItem is a task's history row: the exact bytes of Roo's history_item.json. Its texts for tasks without a
// title are English in every locale, so that the same task gives the same bytes.
func HistoryItem(messages [][]byte, r Row) []byte {
	title, ts := "Task #"+strconv.FormatInt(r.Number, 10)+" (No messages)", esjson.Number(nil, float64(r.Now))
	sum := Tokens{HasCacheWrites: true, HasCacheReads: true}
	if len(messages) == 0 {
		r.Size = 0
	} else {
		title, ts, sum = rowsOf(messages)
		if title == "" {
			title = "Task #" + strconv.FormatInt(r.Number, 10) + " (Incomplete)"
		}
	}
	var o esjson.Object
	o.String("id", r.ID)
	text(&o, "rootTaskId", r.RootTask)
	text(&o, "parentTaskId", r.ParentTask)
	o.Int("number", r.Number)
	number(&o, "ts", ts)
	o.String("task", title)
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
	r.Family.write(&o)
	return o.Bytes()
}

// rowsOf returns what the rows show of their task: the first one its title, the last one that is no resume question
// when it was at work, and all but the first what it used.
func rowsOf(messages [][]byte) (title string, ts []byte, sum Tokens) {
	var all totals
	for i, m := range messages {
		r := parseRow(m)
		if i == 0 {
			title, ts = trim(r.textString()), r.ts
		} else {
			all.add(r)
		}
		if !r.isResume() {
			ts = r.ts
		}
	}
	return title, ts, all.sum()
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
