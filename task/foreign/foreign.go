// Package foreign reads what another program wrote into a task's folder and compares it with the state of our journal:
// lists of messages, and file records.
package foreign

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/facts"
)

// Match relates the messages of a foreign list to those of a history.
type Match struct {
	Rows    []task.ForeignRow // one for each element; the caller sets Off and Len
	Changed []int             // elements whose bytes differ from the message they match
	Added   []int             // elements that match nothing
	Lacking []*task.Message   // our messages that match no element, in order
}

// Same reports whether the list equals the history.
func (m Match) Same() bool {
	return len(m.Changed) == 0 && len(m.Added) == 0 && len(m.Lacking) == 0
}

// Compare finds, for each element of a foreign list, the message of which it is a version. Two messages match when
// they have the same kind and the same tool ids, or, without tool ids, the same time stamp; several such messages
// match in order. So a changed row is a change, and not a new row at the end.
func Compare(ours []*task.Message, h task.History, elements [][]byte) Match {
	places := map[string][]int{}
	for i, m := range ours {
		key := identity(h, m.Raw())
		places[key] = append(places[key], i)
	}
	taken := make([]bool, len(ours))
	next := 0
	var out Match
	for e, raw := range elements {
		var row task.ForeignRow
		key := identity(h, raw)
		at := places[key]
		for len(at) > 0 && at[0] < next {
			at = at[1:] // matches keep the order of both lists, so an earlier message cannot match any more
		}
		if len(at) == 0 {
			out.Added = append(out.Added, e)
		} else {
			i := at[0]
			at = at[1:]
			taken[i], next = true, i+1
			row.Message = ours[i].ID
			if our := ours[i].Raw(); !bytes.Equal(our, raw) && !esjson.Equal(our, raw) {
				out.Changed = append(out.Changed, e)
			}
		}
		places[key] = at
		out.Rows = append(out.Rows, row)
	}
	for i, m := range ours {
		if !taken[i] {
			out.Lacking = append(out.Lacking, m)
		}
	}
	return out
}

// New returns the elements that match no message of ours.
func (m Match) New(elements [][]byte) [][]byte {
	return api.Each(m.Added, func(i int) []byte { return elements[i] })
}

func identity(h task.History, raw []byte) string {
	f := facts.Of(h == task.API, raw, nil)
	ids := append(f.Results, api.Each(f.Uses, func(u facts.Use) string { return u.ID })...)
	if len(ids) > 0 {
		return f.Kind + "|" + strings.Join(ids, "|")
	}
	return f.Kind + "||" + strconv.FormatInt(f.TS, 10)
}

// ResultsIn returns the ids of the calls whose results an API message holds.
func ResultsIn(raw []byte) []string { return facts.Of(true, raw, nil).Results }

// Expendable reports whether a list that another program continued may lack this message of ours: Roo itself removes
// such rows when it resumes. added are the elements that are new in the list (Match.New). The same words in a turn
// that both lists hold do not count: the user wrote those at another time.
func Expendable(m *task.Message, added [][]byte) bool {
	switch m.Kind() {
	case "ask:resume_task", "ask:resume_completed_task", "say:reasoning":
		return true
	case "say:api_req_started":
		text := []byte(m.Text())
		if !esjson.Valid(text) {
			return len(text) == 0 // on any other text Roo fails, and writes nothing
		}
		_, cost := esjson.Get(text, "cost")
		_, cancelled := esjson.Get(text, "cancelReason")
		return !cost && !cancelled
	case "user":
		// Roo removes the last user turn and puts it back with more in it.
		return carriedOver(m.Raw(), added)
	}
	return false
}

// carriedOver reports whether one new element holds every block of a user turn, except its environment block.
func carriedOver(raw []byte, added [][]byte) bool {
	var said [][]byte
	content := esjson.Member(raw, "content")
	if esjson.TypeOf(content) == esjson.TypeString {
		said = append(said, append([]byte(`"text":`), content...)) // Roo makes a block of it
	}
	for block := range esjson.Array(content) {
		text, typ := esjson.TextOf(block, "text"), esjson.TextOf(block, "type")
		if typ != "text" || !strings.HasPrefix(strings.TrimSpace(text), "<environment_details>") {
			said = append(said, block)
		}
	}
	return len(said) > 0 && slices.ContainsFunc(added, func(e []byte) bool {
		return !slices.ContainsFunc(said, func(block []byte) bool { return !bytes.Contains(e, block) })
	})
}

// Records returns the entries of a task_metadata.json that another program wrote, with the member names of Roo and of
// Cline. They hold dates and nothing about the content. A file of another shape has no records; an entry without a
// path is left out. RecordedAt is the date of what the entry records, or the newest date when the entry does not name
// its source.
func Records(metadata []byte) []task.FileRecord {
	if !esjson.Valid(metadata) {
		return nil
	}
	var out []task.FileRecord
	for raw := range esjson.Array(esjson.Member(metadata, "files_in_context")) {
		date := func(names ...string) (ms int64) {
			for _, name := range names {
				ms = max(ms, esjson.IntOf(raw, name))
			}
			return ms
		}
		r := task.FileRecord{
			RooRead: date("roo_read_date", "cline_read_date"), RooEdit: date("roo_edit_date", "cline_edit_date"),
			UserEdit: date("user_edit_date"),
		}
		r.Path, _ = esjson.GetString(raw, "path")
		r.State, _ = esjson.GetString(raw, "record_state")
		r.Source, _ = esjson.GetString(raw, "record_source")
		if r.Path == "" || strings.IndexByte(r.Path, 0) >= 0 {
			continue
		}
		switch r.Source {
		case "cline_edited":
			r.Source = "roo_edited"
			fallthrough
		case "roo_edited":
			r.RecordedAt = r.RooEdit
		case "user_edited":
			r.RecordedAt = r.UserEdit
		case "read_tool", "file_mentioned":
			r.RecordedAt = r.RooRead
		}
		r.RecordedAt = cmp.Or(r.RecordedAt, max(r.RooRead, r.RooEdit, r.UserEdit))
		out = append(out, r)
	}
	return out
}
