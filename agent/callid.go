package agent

import (
	"encoding/json"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// uniqueCallIDs gives new ids to calls whose ids are taken or missing, so that each call has its own outcome and each
// result finds its call. It runs before the reply is stored: the stored reply is what is sent, and the model only needs
// its ids to come back. A new id depends on nothing but the reply and the taken ids.
//
// Providers do repeat ids: some count from zero in each reply. wrong are the calls whose input was not JSON; the reply
// holds them with the input {}, which distinguishes them when several calls have one id.
func uniqueCallIDs(blocks []json.RawMessage, wrong map[string]string, taken func(id string) bool) ([]json.RawMessage, map[string]string) {
	out := make([]json.RawMessage, len(blocks))
	renamed := map[string]string{}
	mine := map[string]bool{}
	for i, block := range blocks {
		out[i] = block
		if typ, _ := esjson.GetString(block, "type"); typ != "tool_use" {
			continue
		}
		old, _ := esjson.GetString(block, "id")
		id := old
		if id == "" {
			id = "call_" + strconv.Itoa(i+1)
		}
		for base, n := id, 2; mine[id] || taken(id); n++ {
			id = base + "_" + strconv.Itoa(n)
		}
		mine[id] = true
		if id != old {
			out[i] = esjson.Set(block, "id", esjson.Quote(nil, id))
		}
		if sent, is := wrong[old]; is && hasEmptyInput(block) {
			renamed[id] = sent
		}
	}
	return out, renamed
}

// hasEmptyInput reports whether a call has the input {}.
func hasEmptyInput(block []byte) bool {
	input, ok := esjson.Get(block, "input")
	if !ok {
		return true
	}
	for range esjson.Members(input) {
		return false
	}
	return esjson.TypeOf(input) == esjson.TypeObject
}

// callIDs are the ids of the calls in an assistant message.
func callIDs(message []byte) []string {
	var ids []string
	content, _ := esjson.Get(message, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		return nil
	}
	for block := range esjson.Array(content) {
		if typ, _ := esjson.GetString(block, "type"); typ == "tool_use" {
			id, _ := esjson.GetString(block, "id")
			ids = append(ids, id)
		}
	}
	return ids
}
