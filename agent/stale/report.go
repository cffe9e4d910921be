package stale

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	files := t.Changed(context.Background(), turn.Pending) // Changed bounds its own time
	authors := t.authors(files, turn.Delegated)
	t.doubtful, t.commandRan, t.priorChanges = nil, false, nil
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
	list := strings.Join(notices[:min(len(notices), maxNames)], ", ")
	if more := len(notices) - maxNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if list != "" {
		t.run.Notice("changed since the model saw it: " + list + "; the model gets to know it now")
	}
	return section + contents.String(), records
}

func (f File) record(source, by string) task.FileChanged {
	s := f.now.State
	return task.FileChanged{
		Path:   f.known.Path,
		Source: source,
		By:     by,
		Hash:   s.Hash,
		Size:   s.Size,
		MTime:  s.MTime,
		CTime:  s.CTime,
		Inode:  s.Inode,
		Device: s.Device,
	}
}

// Record is the journal's record of a file that the model now knows.
func Record(f tool.FileTouch) task.FileChanged {
	return task.FileChanged{
		Path:   f.Path,
		Source: f.Source,
		Hash:   f.Hash,
		Size:   f.Size,
		MTime:  f.MTime,
		CTime:  f.CTime,
		Inode:  f.Inode,
		Device: f.Device,
	}
}

// difference is what changed in a file since the model saw it, if both contents are kept and the difference
// is small. The difference of a file outside the workspace or of a protected one is not shown: reading it
// needs a consent that was not asked for.
func (t *Tracker) difference(f File) (text string, whole bool) {
	t.mu.Lock()
	old := t.contents.get(f.known.Seen.Hash)
	t.mu.Unlock()
	if old == nil || f.now.Data == nil || f.path.Outside || f.path.Protected || f.now.State.Hash == f.known.Seen.Hash {
		return "", false
	}
	text, whole = filetool.Difference(f.known.Path, old, f.now.Data, diffLimit)
	return t.run.Mask(text), whole
}

// rereads gives the model the new content of changed files. A file that does not fit, is no text or may not
// be shown without consent is reported like any other change.
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
	s, problem, err := filetool.Show(ctx, r.tracker.opt.Workspace, f.path)
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
