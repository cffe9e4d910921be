package task

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Match is how a foreign list of messages relates to a history.
type Match struct {
	Rows    []ForeignRow // one for each element; Off and Len are left to the caller
	Changed []int        // elements whose bytes differ from the message they match
	Added   []int        // elements that match nothing
	Lacking []*Message   // messages of ours that no element stands for, in order
}

// Same reports whether the list says just what the history says.
func (m Match) Same() bool {
	return len(m.Changed) == 0 && len(m.Added) == 0 && len(m.Lacking) == 0
}

// MatchForeign finds, for each element of a foreign list, the message that it is
// a state of. Identity is a message's kind with its tool ids, or with its time
// stamp where it has none; equal identities are matched in order. So a changed
// row is a change, not a new tail.
func MatchForeign(ours []*Message, h History, elements [][]byte) Match {
	places := map[string][]int{}
	for i, m := range ours {
		key := identity(h, m.Raw())
		places[key] = append(places[key], i)
	}
	taken := make([]bool, len(ours))
	next := 0
	var out Match
	for e, raw := range elements {
		row := ForeignRow{}
		key := identity(h, raw)
		for _, i := range places[key] {
			if i < next || taken[i] {
				continue
			}
			taken[i], next = true, i+1
			row.Message = ours[i].ID
			if !bytes.Equal(ours[i].Raw(), raw) && !esjson.Equal(ours[i].Raw(), raw) {
				out.Changed = append(out.Changed, e)
			}
			break
		}
		if row.Message == 0 {
			out.Added = append(out.Added, e)
		}
		out.Rows = append(out.Rows, row)
	}
	for i, m := range ours {
		if !taken[i] {
			out.Lacking = append(out.Lacking, m)
		}
	}
	return out
}

func identity(h History, raw []byte) string {
	ts, _ := esjson.GetInt(raw, "ts")
	stamp := strconv.FormatInt(ts, 10)
	if h == UI {
		typ, _ := esjson.GetString(raw, "type")
		kind, _ := esjson.GetString(raw, typ)
		return typ + "|" + kind + "|" + stamp
	}
	role, _ := esjson.GetString(raw, "role")
	var ids []string
	f := factsOf(h, raw, nil)
	for _, u := range f.uses {
		ids = append(ids, u.id)
	}
	ids = append(ids, f.results...)
	if len(ids) > 0 {
		return role + "|" + strings.Join(ids, "|")
	}
	return role + "||" + stamp
}

// Expendable reports whether a message of ours may be lacking in a list that
// another program continued: Roo itself removes such rows when it resumes.
// elements is the whole foreign list.
func Expendable(m *Message, elements [][]byte) bool {
	switch m.Kind() {
	case "ask:resume_task", "ask:resume_completed_task", "say:reasoning":
		return true
	case "say:api_req_started":
		text := []byte(m.Text())
		if !esjson.Valid(text) {
			return true
		}
		_, cost := esjson.Get(text, "cost")
		return !cost
	case "user":
		// Roo takes the last user turn out and puts it back with more in it.
		return carriedOver(m.Raw(), elements)
	}
	return false
}

// carriedOver reports whether one foreign element holds all that a user turn
// said, its environment aside.
func carriedOver(raw []byte, elements [][]byte) bool {
	var said [][]byte
	eachBlock(raw, func(typ string, block []byte) {
		text, _ := esjson.GetString(block, "text")
		if typ == "text" && strings.HasPrefix(strings.TrimSpace(text), "<environment_details>") {
			return
		}
		said = append(said, block)
	})
	for _, e := range elements {
		all := len(said) > 0
		for _, block := range said {
			all = all && bytes.Contains(e, block)
		}
		if all {
			return true
		}
	}
	return false
}
