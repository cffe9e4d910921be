package stale

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of one turn's report on changed files.
const (
	reportFiles = 50       // files named
	diffLimit   = 4 << 10  // bytes of one file's difference
	diffsLimit  = 16 << 10 // bytes of all differences
)

// Bounds of what one turn reads again for the model.
const (
	rereadLimit  = 32 << 10 // bytes of one file, as shown
	rereadsLimit = 96 << 10 // bytes of all files
	rereadTime   = 2 * time.Second
)

// reportHead is Roo's text.
const reportHead = "# Recently Modified Files\nThese files have been modified since you last accessed them " +
	"(file was just edited so you may need to re-read it before editing):\n"

// Turn is what a report depends on beside the files.
type Turn struct {
	Pending   []task.Event // what the turn's commit holds already
	Delegated bool         // a subtask ran since the last turn
	Reread    bool         // the task's setting asks for the new contents
}

// Report describes the stale files: to the model by the section that it returns ("" = none), to the person by
// a notice. The records belong into the commit of the turn that holds the section. A file whose whole
// difference, or whole content, is in the section counts as read again.
func (t *Tracker) Report(turn Turn) (section string, records []task.Event) {
	files := t.check(context.Background(), t.run.State().Files, t.run.Now(), turn.Pending, t.checkedSince()) // check bounds its own time
	authors := t.authors(files, turn.Delegated)
	t.doubtful, t.commandRan, t.checkedAt = nil, false, 0
	clear(t.priorChanges)
	if len(files) == 0 {
		return "", nil
	}
	var names, notices []string
	var contents strings.Builder
	diffs := 0 // bytes
	rereads := &rereads{tracker: t}
	for i, f := range files {
		words := f.describe() + authors[i].words
		record := f.record("user_edited", authors[i].by)
		record.Task = authors[i].task
		records = append(records, record)
		name := tool.SafeName(f.known.Path)
		if !t.wasAnnounced(f) {
			notices = append(notices, name+" "+words)
		}
		if i >= reportFiles {
			continue
		}
		line := name
		if words != "changed" {
			line += " (" + words + ")"
		}
		names = append(names, line)
		if turn.Reread {
			if text, read, ok := rereads.read(f); ok {
				contents.WriteString(text)
				records = append(records, read)
				continue
			}
		}
		if diff, whole := t.difference(f); whole && diffs+len(diff) <= diffsLimit {
			diffs += len(diff)
			fmt.Fprintf(&contents, "\nWhat changed in %s:\n%s", name, diff)
			records = append(records, f.record("read_tool", ""))
		}
	}
	section = reportHead + strings.Join(names, "\n") + "\n"
	if more := len(files) - len(names); more > 0 {
		section += fmt.Sprintf("and %d more\n", more)
	}
	if len(notices) > 0 {
		t.run.Notice("changed since the model saw it: " + rows.FirstOf(notices, maxNames) + "; the model gets to know it now")
	}
	return section + contents.String(), records
}

func (f File) record(source, by string) task.FileChanged {
	record := RecordOf(f.known.Path, source, f.now.State)
	record.By = by
	return record
}

// Record returns the journal's record of a file that the model now knows.
func Record(f tool.FileTouch) task.FileChanged {
	return RecordOf(f.Path, f.Source, f.FileState)
}

// RecordOf returns the journal's record of the state of a file.
func RecordOf(path, source string, s workspace.FileState) task.FileChanged {
	return task.FileChanged{
		Path: path, Source: source, Hash: s.Hash, Size: s.Size, MTime: s.MTime, CTime: s.CTime,
		Inode: s.Inode, Device: s.Device,
	}
}

// difference returns what changed in a file since the model saw it, if both contents are kept and the difference is
// small. The difference of a file outside the workspace or of a protected one is not shown: reading it needs a
// consent that was not asked for.
func (t *Tracker) difference(f File) (text string, whole bool) {
	t.mu.Lock()
	old := t.contents.data[f.known.Seen.Hash]
	t.mu.Unlock()
	if old == nil || f.now.Data == nil || f.path.Outside || f.path.Protected || f.now.State.Hash == f.known.Seen.Hash {
		return "", false
	}
	text, whole = filetool.Difference(f.known.Path, old, f.now.Data, diffLimit)
	return t.run.Mask(text), whole
}

// rereads gives the model the new content of changed files. A file that does not fit, is no text or may not be shown
// without consent is reported like any other change.
type rereads struct {
	tracker *Tracker
	size    int
	until   time.Time
}

// read shows a file as read_file does, and returns the record of that.
func (r *rereads) read(f File) (text string, record task.FileChanged, ok bool) {
	if r.until.IsZero() {
		r.until = time.Now().Add(rereadTime)
	}
	if f.now.Status == workspace.Missing || f.now.State.Hash == "" || f.now.State.Hash == f.known.Seen.Hash ||
		f.path.Outside || f.path.Protected || f.path.Ignored {
		return "", record, false
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.until)
	defer cancel()
	s, problem, err := filetool.Show(ctx, r.tracker.workspace, f.path)
	if err != nil || problem != "" || s.Binary || s.Image != nil || len(s.Text) > rereadLimit || r.size+len(s.Text) > rereadsLimit {
		return "", record, false
	}
	r.size += len(s.Text)
	text = fmt.Sprintf("\nRead again. File: %s\n%s", tool.SafeName(f.known.Path), s.Text)
	if s.Truncated {
		text += fmt.Sprintf("\n(The first %d of %d lines. Read the others with read_file.)", s.Returned, s.Lines)
	}
	record = Record(s.Touch)
	record.Path, record.Source = f.known.Path, "read_tool"
	return text + "\n", record, true
}

// otherTasksTime bounds the search for other tasks that changed files.
const otherTasksTime = 500 * time.Millisecond

// author names who or what changed a file: by is a value of FileChanged.By, task the other task if it was one, and words
// follow the description of the change.
type author struct{ by, task, words string }

// authors finds out what changed files since the last turn. delegated reports that a subtask ran.
func (t *Tracker) authors(files []File, delegated bool) []author {
	out := make([]author, len(files))
	unknown, since := map[string]string{}, int64(0)
	for i, f := range files {
		hash, before := t.priorChanges[f.known.Path]
		switch {
		case before && hash == f.now.State.Hash:
			out[i].by = "other"
		case delegated:
			out[i] = author{by: "subtask", words: " by a subtask"}
		case t.commandRan && slices.Contains(t.doubtful, f.path.RealReadable):
			out[i] = author{by: "command", words: " while a command ran, by it or by another program"}
		case t.commandRan:
			out[i] = author{by: "command", words: " by a command"}
		case t.isRestored(f):
			out[i] = author{by: "restore", words: " when the user restored a checkpoint"}
		default:
			out[i].by = "other"
		}
		if out[i].by != "other" || f.now.Status != workspace.Missing && f.now.State.Hash == "" {
			continue
		}
		unknown[f.known.Path] = f.now.State.Hash
		if at := f.known.Last.RecordedAt; since == 0 || at < since {
			since = at
		}
	}
	tasks := t.askOtherTasks(context.Background(), since, unknown) // askOtherTasks bounds its own time
	for i, f := range files {
		if id := tasks[f.known.Path]; id != "" && out[i].by == "other" {
			out[i].task, out[i].words = id, " by another task, "+id
		}
	}
	return out
}

func (t *Tracker) askOtherTasks(ctx context.Context, since int64, files map[string]string) map[string]string {
	if t.otherTasks == nil || len(files) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, otherTasksTime)
	defer cancel()
	return t.otherTasks(ctx, since, files)
}

// Refused returns the records of a file that a call would have overwritten although something else had
// changed it. The refusal reports that to the model.
func (t *Tracker) Refused(ctx context.Context, stale *tool.StaleError) []task.Event {
	record := Record(stale.Now)
	record.Source, record.By = "user_edited", "other"
	if hash, before := t.priorChanges[record.Path]; t.commandRan && (!before || hash != record.Hash) {
		record.By = "command"
	}
	if record.By == "other" {
		since := int64(0)
		t.mu.Lock()
		if k := t.known.File(record.Path); k != nil {
			since = k.Last.RecordedAt
		}
		t.mu.Unlock()
		record.Task = t.askOtherTasks(ctx, since, map[string]string{record.Path: record.Hash})[record.Path]
	}
	if !stale.Shown {
		return []task.Event{record}
	}
	read := record
	read.Source, read.By = "read_tool", ""
	return []task.Event{record, read}
}

// isRestored reports whether a file is what a restore made of it after its newest record.
func (t *Tracker) isRestored(f File) bool {
	for _, c := range slices.Backward(t.run.State().Checkpoints) {
		if c.Seq <= f.known.Last.Seq {
			return false
		}
		if c.Reason != task.ReasonRestored {
			continue
		}
		for _, e := range c.Files {
			if e.Path == f.path.RealReadable { // a checkpoint records where a path leads
				return e.Now.Kind == api.KindGone && f.now.Status == workspace.Missing ||
					e.Now.Hash != "" && e.Now.Hash == f.now.State.Hash
			}
		}
	}
	return false
}

const (
	// attendPoll is how often Attend checks the files; many files, or slow ones, are checked less often.
	attendPoll = 200 * time.Millisecond
	// maxNames is how many files one notice names.
	maxNames = 8
)

// Attend promptly notifies the person of files that something else changes while the run waits: for an
// answer, a command, a quota. what names the wait, as in "while what"; notices begin once it took longer than
// after. stop ends it and waits until it has ended.
//
// A notice is no record. The change is recorded in the commit of the turn that reports it to the model, so it is
// reported once, and a file that was restored before that turn counts as unchanged. That turn does its own check;
// nothing depends on Attend.
func (t *Tracker) Attend(ctx context.Context, what string, after time.Duration) (stop func()) {
	if t.workspace == nil || !t.observed {
		return func() {}
	}
	t.mu.Lock()
	t.known.Follow(t.run.State().Files)
	known := len(t.known.All())
	t.mu.Unlock()
	if known == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, begun, at := make(chan struct{}), time.Now(), t.run.Now()
	go func() {
		defer close(done)
		t.notifyChanges(ctx, what, after, func() int64 { return at + time.Since(begun).Milliseconds() })
	}()
	return func() {
		cancel()
		<-done
	}
}

func (t *Tracker) notifyChanges(ctx context.Context, what string, after time.Duration, now func() int64) {
	if !sleep.For(ctx, after) {
		return
	}
	for {
		began := time.Now()
		if names := t.newlyChanged(ctx, now()); len(names) > 0 {
			t.run.Notice(rows.FirstOf(names, maxNames) + " while " + what + "; the model gets to know it in its next turn")
		}
		if !sleep.For(ctx, max(attendPoll, 20*time.Since(began))) {
			return
		}
	}
}

// newlyChanged checks the files that may have changed and describes the changes that no notice reported yet.
func (t *Tracker) newlyChanged(ctx context.Context, at int64) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, k := range t.known.All() {
		if ctx.Err() != nil {
			break
		}
		if !k.Last.Judgeable() {
			continue
		}
		now, path, changed := t.judge(ctx, k, at)
		hash, known := t.announced[k.Path]
		switch f := (File{k, path, now}); {
		case !changed:
			delete(t.announced, k.Path)
		case !known || hash != now.State.Hash:
			t.announced[k.Path] = now.State.Hash
			names = append(names, tool.SafeName(k.Path)+": "+f.describe())
		}
	}
	return names
}

// wasAnnounced reports whether a notice reported a change while the run waited, and forgets that.
func (t *Tracker) wasAnnounced(f File) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	hash, known := t.announced[f.known.Path]
	delete(t.announced, f.known.Path)
	return known && hash == f.now.State.Hash
}
