package roofmt

import (
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// sessionItem gives of a session what Roo's history item gives of a task. record is what Cline keeps of it: a row of
// its index, or a manifest; both have the same members, and the index those of parents in addition.
func sessionItem(id string, record []byte) *itemDraft {
	meta := metadataOf(record)
	d := &itemDraft{id: id, title: titleOfRecord(record, meta)}
	for _, key := range [...]string{"updated_at", "ended_at", "started_at"} {
		if d.ts = stampMS(recordText(record, key)); d.ts > 0 {
			break
		}
	}
	usage, ok := esjson.Get(meta, "usage")
	if aggregate, has := esjson.Get(meta, "aggregateUsage"); has && !ok {
		usage = aggregate
	}
	for _, n := range [...]struct {
		to         *int64
		key, inUse string
	}{
		{&d.in, "tokensIn", "inputTokens"}, {&d.out, "tokensOut", "outputTokens"},
		{&d.reads, "cacheReads", "cacheReadTokens"}, {&d.writes, "cacheWrites", "cacheWriteTokens"},
	} {
		if v, ok := esjson.GetInt(meta, n.key); ok && v > 0 {
			*n.to = v
		} else if v, ok := esjson.GetInt(usage, n.inUse); ok && v > 0 {
			*n.to = v
		}
	}
	for _, from := range [...]struct {
		object []byte
		key    string
	}{{meta, "totalCost"}, {usage, "totalCost"}} {
		if c, ok := esjson.GetFloat(from.object, from.key); ok && c >= 0 {
			d.cost, d.priced = c, true
			break
		}
	}
	d.workspace = firstText(record, "cwd", "workspace_root")
	d.status = recordText(record, "status")
	d.provider = recordText(record, "provider")
	d.source = recordText(record, "source")
	if d.model = text(meta, "modelId"); d.model == "" {
		d.model = recordText(record, "model")
	}
	d.parent = recordText(record, "parent_session_id")
	for _, key := range [...]string{"isFavorited", "is_favorited"} {
		if on, _ := esjson.GetBool(meta, key); on {
			d.favourite = true
		}
	}
	return d
}

// itemDraft is an item in the making.
type itemDraft struct {
	id, title, workspace, status string
	provider, model, parent      string
	source                       string // from where it was begun: cli, vscode, jetbrains and so on
	ts, in, out, reads, writes   int64
	cost                         float64
	priced, favourite            bool
}

func (d *itemDraft) bytes() []byte {
	var o esjson.Object
	o.String("id", d.id)
	if d.ts > 0 {
		o.Int("ts", d.ts)
	}
	if d.title != "" {
		o.String("task", d.title)
	}
	o.Int("tokensIn", d.in)
	o.Int("tokensOut", d.out)
	o.Int("cacheReads", d.reads)
	o.Int("cacheWrites", d.writes)
	if d.priced {
		o.Float("totalCost", d.cost)
	}
	root, _, child := strings.Cut(d.id, subagentMark)
	for _, m := range [...]struct{ key, value string }{
		{"workspace", d.workspace}, {"status", d.status}, {"provider", d.provider}, {"modelId", d.model}, {"source", d.source},
	} {
		if m.value != "" {
			o.String(m.key, m.value)
		}
	}
	if d.parent == "" && child {
		d.parent = root
	}
	if d.parent != "" && d.parent != d.id {
		o.String("parentTaskId", d.parent)
		if !child {
			root = d.parent
		}
		o.String("rootTaskId", root)
	}
	if d.favourite {
		o.Bool("isFavorited", true)
	}
	return o.Bytes()
}

// subagentMark is, in a subagent's id, between the id of the first session and its own.
const subagentMark = "__"

// recordText reads a text of a record, which is spelled in one of two ways: started_at in manifests and tables, startedAt in what
// programs hand each other.
func recordText(record []byte, key string) string {
	if s := text(record, key); s != "" {
		return s
	}
	words := strings.Split(key, "_")
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return text(record, strings.Join(words, ""))
}

func firstText(record []byte, keys ...string) string {
	for _, key := range keys {
		if s := recordText(record, key); s != "" {
			return s
		}
	}
	return ""
}

// metadataOf is an object in a manifest and a text in a table.
func metadataOf(record []byte) []byte {
	if meta, ok := esjson.Get(record, "metadata"); ok && esjson.TypeOf(meta) == esjson.TypeObject {
		return meta
	}
	if meta := []byte(text(record, "metadata_json")); esjson.Valid(meta) && esjson.TypeOf(meta) == esjson.TypeObject {
		return meta
	}
	return nil
}

// titleOfRecord is the prompt, of which Cline's own title is the beginning; another title was given by a person.
func titleOfRecord(record, meta []byte) string {
	title, prompt := text(meta, "title"), recordText(record, "prompt")
	cut := strings.TrimRight(title, ". …\t\r\n")
	if strings.TrimSpace(prompt) != "" && (title == "" || strings.HasPrefix(squeeze(prompt), squeeze(cut))) {
		return prompt
	}
	return title
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// MergeRow adds an index's facts about a task to those of its own files. The files have the newer texts and costs;
// the index has the task's end, its parent, and the title that the user gave it. Either may be nil.
func MergeRow(own, index []byte) []byte {
	if len(own) == 0 {
		return index
	}
	for key, value := range esjson.Members(index) {
		have, ok := esjson.Get(own, key)
		switch {
		case !ok:
		case key == "status" || key == "parentTaskId" || key == "rootTaskId" || key == "isFavorited":
		case key == "task" && !strings.HasPrefix(squeeze(text(own, key)), squeeze(text(index, key))):
		case esjson.TypeOf(have) == esjson.TypeNumber && string(have) == "0":
		default:
			continue
		}
		own = esjson.Set(own, key, value)
	}
	return own
}
func stampMS(text string) int64 {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
