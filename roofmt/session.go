package roofmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Cline since 2026 keeps a task as sessions/<id>/ with a manifest <id>.json and one transcript <id>.messages.json: an
// object whose member "messages" is what the model saw. There is no UI list; tools make its rows from the transcript.
// It is read as an API history, and the manifest's facts about the task become Folder.Row. Transcripts of subagents
// in the same folder are among the Others. Cline writes the file in place, whole, at every step, so a kill leaves a
// torn one: all whole messages of it come back.

// SessionsDir is where Cline keeps sessions below its data folder, "" when it keeps none there.
func SessionsDir(data string) string {
	dir := filepath.Join(data, "sessions")
	for i, name := range children(dir) {
		if i == looked {
			break
		}
		if IsFolder(filepath.Join(dir, name)) {
			return dir
		}
	}
	return ""
}

// isSession reports whether the folder of this name holds a session.
func isSession(dir string, entries []fs.DirEntry) bool {
	want := TranscriptName(filepath.Base(dir))
	for _, e := range entries {
		if e.Name() == want && !e.IsDir() {
			return true
		}
	}
	return false
}

// headRoom bounds, in bytes, what may precede the list in a transcript.
const headRoom = 16 << 20

// tailRoom bounds, in bytes, what may follow it.
const tailRoom = 64 << 20

// session reads the transcript and the manifest of a session, when the folder is one and has no list of its own.
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
	r.folder.Others = withoutFiles(r.folder.Others, name, id+".json")
}

// ownTranscript is the transcript of the session that the folder is: the one with the folder's name, or, in a copy that got another
// name, the only one, or the only one with a manifest beside it. "" when there is none.
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

// readTranscript makes a transcript the API history.
func (r *reader) readTranscript(name string) {
	d := r.folder.API
	s := r.transcript(name)
	d.use(s)
	switch {
	case s.state == Present:
	case s.state == Empty && s.print.Size == 0:
		r.lose(name, "empty (0 bytes)", "nothing")
	case s.state == Empty:
		r.lose(name, fmt.Sprintf("no text in its %d bytes", s.print.Size), "nothing")
	case s.state == Unreadable:
		r.unread(name, s.err)
		r.lose(name, "can not be read: "+Reason(s.err), "nothing")
	default:
		recovered := "nothing"
		if len(s.spans) > 0 {
			recovered = wholeMessages(len(s.spans))
		}
		r.lose(name, describe(s), recovered)
	}
	if len(s.spans) == 0 && s.state != Present {
		d.State = s.state // it is not just a folder without messages
	}
}

func withoutFiles(list []Other, names ...string) []Other {
	var out []Other
	for _, o := range list {
		if o.Name != names[0] && o.Name != names[1] {
			out = append(out, o)
		}
	}
	return out
}

// transcript finds the messages in a transcript.
func (r *reader) transcript(name string) scan {
	s := scan{name: name}
	for range 3 { // it is written in place and may change under us
		if s.file != nil {
			_ = s.file.Close()
		}
		if s.file, s.print, s.err = r.open(name); s.err != nil {
			s.state = Unreadable
			return s
		}
		if s.err = r.splitTranscript(&s); s.err != nil {
			s.state = Unreadable
			return s
		}
		info, err := s.file.Stat()
		if s.unstable = err != nil || fingerprintOf(info) != s.print; !s.unstable {
			break
		}
	}
	return s
}

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
	tail, err := esjson.Split(ContextReader(r.ctx, list), func(e esjson.Element) error {
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
		more := resync(r.ctx, s.file, tail, s.print.Size, API)
		s.extra = len(more)
		for _, e := range more {
			s.take(e)
		}
	}
	if s.overlong.some() && s.state == Present {
		s.state = Damaged
	}
	return nil
}

// listAt is the offset of the list that is a member of the object in text, -1 when there is none. The object may be cut.
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

// closes reports whether what surrounds the list makes one sound object with it.
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

// sessionRow is the item of a session. Tokens and cost are the sums of its messages: those of the manifest are
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
