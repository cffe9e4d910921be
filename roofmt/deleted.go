package roofmt

import (
	"io"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// deletedKey is where classic Cline keeps which API messages it does not send any more: the first and the last index.
const deletedKey = "conversationHistoryDeletedRange"

// Deleted is the range of API messages, by index, that classic Cline left in the file but does not send any more; last is part
// of it. The first question and the first reply are always sent. ok is false when all are sent, when the range makes no sense, or
// when messages before it were lost, so that it is not known which ones it means.
func (f *Folder) Deleted() (first, last int, ok bool) {
	r, ok := esjson.Get(f.Item, deletedKey)
	if !ok {
		r, ok = esjson.Get(f.Row, deletedKey)
	}
	for i := f.UI.Len() - 1; !ok && i >= 0 && i >= f.UI.Len()-looked; i-- {
		// Without a row in an index: each row of the task holds the range of its time.
		if raw, err := f.UI.Raw(i); err == nil {
			r, ok = esjson.Get(raw, deletedKey)
		}
	}
	bounds := make([]int64, 0, 2)
	for n := range esjson.Array(r) {
		v, err := strconv.ParseInt(string(n), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		bounds = append(bounds, v)
	}
	if len(bounds) != 2 || bounds[1] < 2 || bounds[1] >= int64(f.API.Len()-1) || !f.API.inOrder() {
		return 0, 0, false
	}
	return 2, int(bounds[1]), true
}

// inOrder reports whether the elements are those that the file began with, so that an index keeps its meaning.
func (d *Document) inOrder() bool {
	own := d.Source == d.Name || strings.HasSuffix(d.Source, transcriptEnd)
	return own && (d.Tail.End == esjson.EndComplete || d.Tail.End == esjson.EndTorn)
}

// compactionEnd is how the name of a session's working context ends: what is sent in place of the messages that it
// was made of. The transcript keeps all of them.
const compactionEnd = ".compaction.json"

// Compacted returns what Cline sends of a session that it has condensed: these messages, in place of the first of the
// transcript's. It is nil when Cline condensed nothing, or when the file does not fit the transcript.
//
// Cline compares a digest, too. Its versions compute that digest in different ways, and an old digest would fit
// nothing; so only the count and the last message are compared. Transcripts only grow.
func (f *Folder) Compacted() (messages [][]byte, replaced int) {
	id, ok := strings.CutSuffix(f.API.Source, transcriptEnd)
	if !ok || !f.API.inOrder() {
		return nil, 0
	}
	file, err := OpenFile(FolderOf(f.Dir), id+compactionEnd)
	if err != nil {
		return nil, 0
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxSmall))
	if err != nil || !esjson.Valid(raw) {
		return nil, 0
	}
	count, ok := esjson.GetInt(raw, "source_message_count")
	if !ok || count < 1 || count > int64(f.API.Len()) {
		return nil, 0
	}
	last, err := f.API.Raw(int(count - 1))
	if err != nil || !isBoundary(text(raw, "source_last_message_key"), last) {
		return nil, 0
	}
	list, _ := esjson.Get(raw, "messages")
	for m := range esjson.Array(list) {
		if role := text(m, "role"); role != "user" && role != "assistant" {
			return nil, 0
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, 0
	}
	return messages, int(count)
}

// isBoundary reports whether a message is the one that a key names: by its id, or else by role and time.
func isBoundary(key string, raw []byte) bool {
	if id := strings.TrimSpace(text(raw, "id")); id != "" {
		return key == "id:"+id
	}
	ts, ok := esjson.Get(raw, "ts")
	return ok && esjson.TypeOf(ts) == esjson.TypeNumber && key == "ts:"+text(raw, "role")+":"+string(ts)
}
