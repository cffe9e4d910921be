package roofmt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Cline since 2026 keeps a task as sessions/<id>/ with a manifest <id>.json and one transcript <id>.messages.json: an
// object whose member "messages" is what the model saw. There is no UI list; tools make its rows from the transcript.
// It is read as an API history, and the manifest's facts about the task become Folder.Row. Transcripts of subagents
// in the same folder are among the Others. Cline writes the file in place, whole, at every step, so a kill leaves a
// torn one: all whole messages of it come back.

// SessionsDir returns the folder with Cline's sessions below its data folder, "" when there is none.
func SessionsDir(data string) string {
	if dir := filepath.Join(data, sessionsName); anyTask(dir) {
		return dir
	}
	return ""
}

// headRoom bounds, in bytes, the text before the list in a transcript.
const headRoom = 16 << 20

// tailRoom bounds, in bytes, the text after it.
const tailRoom = 64 << 20

// session reads the transcript and the manifest of a session, if the folder is one and has no list of its own.
func (r *reader) session() {
	name := r.ownTranscript()
	if name == "" || r.folder.API.Source != "" || r.folder.API.State != Missing {
		return
	}
	r.readTranscript(name)
	id := strings.TrimSuffix(name, transcriptEnd)
	manifest, _, problem := r.object(id + ".json")
	if problem != "" && problem != "missing" {
		r.lose(id+".json", problem, "nothing")
	}
	r.folder.Row = r.sessionRow(manifest, r.folder.API)
	r.folder.Others = slices.DeleteFunc(r.folder.Others, func(o Other) bool { return o.Name == name || o.Name == id+".json" })
}

// ownTranscript returns the transcript of the folder's own session: the one with the folder's name or, in a renamed
// copy, the only one, or the only one with a manifest beside it. "" when there is none.
func (r *reader) ownTranscript() string {
	if name := TranscriptName(r.folder.ID); r.present[name] {
		return name
	}
	var all, sessions []string
	for _, o := range r.folder.Others {
		stem, ok := strings.CutSuffix(o.Name, transcriptEnd)
		if !ok || o.Dir {
			continue
		}
		if all = append(all, o.Name); r.present[stem+".json"] {
			sessions = append(sessions, o.Name)
		}
	}
	switch {
	case len(sessions) == 1:
		return sessions[0]
	case len(all) == 1:
		return all[0]
	}
	return ""
}

// readTranscript reads a transcript as the API history.
func (r *reader) readTranscript(name string) {
	d := r.folder.API
	s := r.steady(r.begin(name), r.splitTranscript)
	if s.err != nil {
		s.state = Unreadable // it was listed
	}
	d.use(s)
	switch s.state {
	case Present:
	case Empty:
		r.lose(name, emptyProblem(s.print.Size), "nothing")
	case Unreadable:
		r.unread(name, s.err)
		r.lose(name, "can not be read: "+Reason(s.err), "nothing")
	default:
		r.lose(name, describe(s), wholeMessages(len(s.spans)))
	}
	if len(s.spans) == 0 && s.state != Present {
		d.State = s.state // it is not just a folder without messages
	}
}

// splitTranscript finds the messages in a transcript.
func (r *reader) splitTranscript(s *scan) error {
	s.spans, s.extra, s.overlong = nil, 0, overlong{}
	head := make([]byte, min(s.print.Size, headRoom))
	if n, err := s.file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if head = head[:n]; len(bytes.Trim(head, " \t\r\n\x00")) == 0 {
		s.state, s.tail = Empty, esjson.Tail{End: esjson.EndEmpty, Size: s.print.Size}
		return nil
	}
	off := listAt(head, "messages")
	if off < 0 {
		s.state, s.tail = Damaged, esjson.Tail{End: esjson.EndTorn, Off: int64(len(head)), Size: s.print.Size}
		return nil
	}
	list := io.NewSectionReader(s.file, off, s.print.Size-off)
	tail, err := esjson.Split(inputfile.ContextReader(r.ctx, list), func(e esjson.Element) error {
		s.take(esjson.Element{Off: e.Off + off, Len: e.Len})
		return nil
	})
	if err != nil {
		return err
	}
	tail.Start, tail.Last, tail.Off, tail.Size = tail.Start+off, tail.Last+off, tail.Off+off, tail.Size+off
	s.tail, s.state = tail, Damaged
	switch {
	case tail.End == esjson.EndAfter && closes(s.file, head[:off], tail.Off, s.print.Size):
		s.tail.End, s.state = esjson.EndComplete, Present
	case tail.End == esjson.EndComplete: // the brace behind the list is missing
		s.tail.End = esjson.EndTorn
	case tail.End == esjson.EndBroken:
		r.resync(s, API)
	}
	if s.overlong.some() && s.state == Present {
		s.state = Damaged
	}
	return nil
}

// listAt returns the offset of the list that is member key of the object in text, -1 when there is none. The object
// may be cut off.
func listAt(text []byte, key string) int64 {
	skip := func(i int) int {
		for i < len(text) && strings.IndexByte(" \t\r\n\x00", text[i]) >= 0 {
			i++
		}
		return i
	}
	i := skip(0)
	if bytes.HasPrefix(text[i:], []byte("\xEF\xBB\xBF")) {
		i = skip(i + 3)
	}
	for i < len(text) && (text[i] == '{' || text[i] == ',') {
		i = skip(i + 1)
		n, ok := esjson.Prefix(text[i:])
		if !ok || text[i] != '"' {
			return -1
		}
		name, err := esjson.Unquote(text[i : i+n])
		if i = skip(i + n); err != nil || i >= len(text) || text[i] != ':' {
			return -1
		}
		if i = skip(i + 1); name == key {
			if i < len(text) && text[i] == '[' {
				return int64(i)
			}
			return -1
		}
		if n, ok = esjson.Prefix(text[i:]); !ok {
			return -1
		}
		i = skip(i + n)
	}
	return -1
}

// closes reports whether the text around the list makes a valid object with it.
func closes(f io.ReaderAt, head []byte, from, size int64) bool {
	if size-from > tailRoom {
		return false
	}
	rest := make([]byte, size-from)
	if _, err := f.ReadAt(rest, from); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return esjson.Valid(append(append(bytes.Clone(head), "[]"...), rest...))
}

// sessionRow returns the item of a session. Tokens and cost are the sums of its messages: those in the manifest are
// missing or old after a kill.
func (r *reader) sessionRow(manifest []byte, d *Document) []byte {
	if manifest == nil && len(d.Spans) == 0 {
		return nil
	}
	item := sessionItem(r.folder.ID, manifest)
	var in, out, reads, writes, last int64
	var cost float64
	priced := false
	for raw, err := range d.All() {
		if err != nil || r.ctx.Err() != nil {
			break
		}
		if ts, ok := millis(raw); ok {
			last = max(last, ts)
		}
		m, ok := esjson.Get(raw, "metrics")
		if !ok {
			continue
		}
		for key, sum := range map[string]*int64{"inputTokens": &in, "outputTokens": &out, "cacheReadTokens": &reads,
			"cacheWriteTokens": &writes} {
			if n, ok := esjson.GetInt(m, key); ok && n > 0 {
				*sum += n
			}
		}
		if c, ok := esjson.GetFloat(m, "cost"); ok && c > 0 {
			cost, priced = cost+c, true
		}
	}
	if last > 0 {
		item.ts = last
	}
	if in+out+reads+writes > 0 {
		item.in, item.out, item.reads, item.writes = in, out, reads, writes
	}
	if priced {
		item.cost, item.priced = cost, true
	}
	return item.bytes()
}

// A subagent of a session of Cline's has a transcript of its own in the folder of the session that started it, and no folder. It is
// a task all the same: its path is that of the file, and its id is the one that Cline's index has of it.

// readSubagent reads the transcript of a subagent.
func readSubagent(ctx context.Context, path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("reading the transcript %s: %w", path, err)
	}
	root, err := inputfile.OpenDir(filepath.Dir(abs))
	if err != nil {
		return nil, fmt.Errorf("reading the transcript: %w", err)
	}
	defer root.Close()
	_, id := PlaceOf(abs)
	f := &Folder{Dir: abs, ID: id, UI: &Document{Kind: UI, Name: UIName}, API: &Document{Kind: API, Name: APIName}}
	r := reader{ctx: ctx, root: root, folder: f}
	r.readTranscript(filepath.Base(abs))
	f.Row = r.sessionRow(nil, f.API)
	manifest, _, _ := r.object(filepath.Base(filepath.Dir(abs)) + ".json") // it works where its session does
	if dir := recordText(manifest, "cwd", "workspace_root"); dir != "" && len(f.Row) > 0 {
		f.Row = esjson.Set(f.Row, "workspace", esjson.Quote(nil, dir))
	}
	if err := ctx.Err(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("reading the transcript %s: %w", path, err)
	}
	f.Tool = inferTool(f)
	return f, nil
}

// sessionItem makes a history item like Roo's for a session. record is a row of Cline's index or a manifest: both
// have the same members, and the index also has those of parents.
func sessionItem(id string, record []byte) *itemDraft {
	meta := metadataOf(record)
	d := &itemDraft{id: id, title: titleOfRecord(record, meta)}
	for _, key := range [...]string{"updated_at", "ended_at", "started_at"} {
		t, _ := time.Parse(time.RFC3339Nano, recordText(record, key)) // without a time, t is before 1970
		if d.ts = t.UnixMilli(); d.ts > 0 {
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
	for _, object := range [][]byte{usage, meta} { // meta counts more
		if c, ok := esjson.GetFloat(object, "totalCost"); ok && c >= 0 {
			d.cost, d.priced = c, true
		}
	}
	d.workspace = recordText(record, "cwd", "workspace_root")
	d.status = recordText(record, "status")
	d.provider = recordText(record, "provider")
	d.source = recordText(record, "source")
	d.model = cmp.Or(esjson.TextOf(meta, "modelId"), recordText(record, "model"))
	d.parent = recordText(record, "parent_session_id")
	d.favourite = esjson.IsTrue(meta, "isFavorited") || esjson.IsTrue(meta, "is_favorited")
	return d
}

// itemDraft is an unfinished item.
type itemDraft struct {
	id, title, workspace, status string
	provider, model, parent      string
	source                       string // the program that began it: cli, vscode, jetbrains and so on
	ts, in, out, reads, writes   int64
	cost                         float64
	priced, favourite            bool
}

func (d *itemDraft) bytes() []byte {
	root, _, child := strings.Cut(d.id, subagentMark)
	parent := d.parent
	switch {
	case parent == "" && child:
		parent = root
	case parent == d.id:
		parent = ""
	}
	switch {
	case parent == "":
		root = ""
	case !child:
		root = parent
	}
	var cost any
	if d.priced {
		cost = d.cost
	}
	return esjson.ObjectOf("id", d.id, "ts", esjson.Given(max(d.ts, 0)), "task", esjson.Given(d.title),
		"tokensIn", d.in, "tokensOut", d.out, "cacheReads", d.reads, "cacheWrites", d.writes, "totalCost", cost,
		"workspace", esjson.Given(d.workspace), "status", esjson.Given(d.status), "provider", esjson.Given(d.provider),
		"modelId", esjson.Given(d.model), "source", esjson.Given(d.source),
		"parentTaskId", esjson.Given(parent), "rootTaskId", esjson.Given(root),
		"isFavorited", esjson.Given(d.favourite))
}

// recordText reads the first text of a record that is not empty. A key has two spellings: started_at in manifests and
// tables, startedAt in messages between programs.
func recordText(record []byte, keys ...string) string {
	for _, key := range keys {
		words := strings.Split(key, "_")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		if s := cmp.Or(esjson.TextOf(record, key), esjson.TextOf(record, strings.Join(words, ""))); s != "" {
			return s
		}
	}
	return ""
}

// metadataOf returns a record's metadata: an object in a manifest, a text in a table.
func metadataOf(record []byte) []byte {
	if meta, ok := esjson.Get(record, "metadata"); ok && esjson.TypeOf(meta) == esjson.TypeObject {
		return meta
	}
	meta := []byte(esjson.TextOf(record, "metadata_json"))
	if esjson.Valid(meta) && esjson.TypeOf(meta) == esjson.TypeObject {
		return meta
	}
	return nil
}

// titleOfRecord returns the prompt if the title is its beginning, as Cline makes it. Any other title was given by a
// person.
func titleOfRecord(record, meta []byte) string {
	title, prompt := esjson.TextOf(meta, "title"), recordText(record, "prompt")
	cut := strings.TrimRight(title, ". …\t\r\n")
	if strings.TrimSpace(prompt) != "" && (title == "" || strings.HasPrefix(squeeze(prompt), squeeze(cut))) {
		return prompt
	}
	return title
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// MergeRow adds an index's facts about a task to those of its own files. The files have the newer texts and costs;
// the index has the task's end, its parent, and the title that the user gave it. own or index may be nil.
func MergeRow(own, index []byte) []byte {
	if len(own) == 0 {
		return index
	}
	for key, value := range esjson.Members(index) {
		have, ok := esjson.Get(own, key)
		switch {
		case !ok:
		case key == "status" || key == "parentTaskId" || key == "rootTaskId" || key == "isFavorited":
		case key == "task" && !strings.HasPrefix(squeeze(esjson.TextOf(own, key)), squeeze(esjson.TextOf(index, key))):
		case esjson.TypeOf(have) == esjson.TypeNumber && string(have) == "0":
		default:
			continue
		}
		own = esjson.Set(own, key, value)
	}
	return own
}

// deletedKey names the member in which classic Cline keeps the range of API messages that it no longer sends: the
// first and the last index.
const deletedKey = "conversationHistoryDeletedRange"

// Deleted returns the range of API messages, by index and including last, that classic Cline left in the file but no
// longer sends. The first question and the first reply are always sent. ok is false when all are sent, when the range
// makes no sense, or when messages before it were lost, so that its indexes are not reliable.
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

// inOrder reports whether the elements are the first ones of the file, without a gap, so that an index keeps its
// meaning.
func (d *Document) inOrder() bool {
	own := d.Source == d.Name || strings.HasSuffix(d.Source, transcriptEnd)
	return own && (d.Tail.End == esjson.EndComplete || d.Tail.End == esjson.EndTorn)
}

// compactionEnd ends the name of the file with a session's working context: the messages that are sent in place of
// those that they condense. The transcript keeps all messages.
const compactionEnd = ".compaction.json"

// Compacted returns the messages that Cline sends for a condensed session, in place of the first replaced messages of
// the transcript. There are none when Cline condensed nothing, or when the file does not fit the transcript.
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
	if err != nil || !isBoundary(esjson.TextOf(raw, "source_last_message_key"), last) {
		return nil, 0
	}
	for m := range esjson.Array(esjson.Member(raw, "messages")) {
		if role := esjson.TextOf(m, "role"); role != "user" && role != "assistant" {
			return nil, 0
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, 0
	}
	return messages, int(count)
}

// isBoundary reports whether a message is the one that a key names: by its id, or by role and time.
func isBoundary(key string, raw []byte) bool {
	if id := strings.TrimSpace(esjson.TextOf(raw, "id")); id != "" {
		return key == "id:"+id
	}
	ts, ok := esjson.Get(raw, "ts")
	return ok && esjson.TypeOf(ts) == esjson.TypeNumber && key == "ts:"+esjson.TextOf(raw, "role")+":"+string(ts)
}
