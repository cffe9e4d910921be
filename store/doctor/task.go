package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// inspect reads a whole task and changes nothing.
func (d *doctor) inspect(ctx context.Context, ref store.Ref) []finding {
	s := d.store
	v, err := s.ReadWhole(ctx, ref)
	if err != nil {
		return append([]finding{aboutTask(ref, ref.Dir, store.ReadProblem(ref, err), "", "")}, d.taskLeftovers(ctx, ref, nil)...)
	}
	defer v.Close()
	var out []finding
	for _, damage := range v.Summary.Damaged {
		f := aboutTask(ref, damage.File, damage.Problem, damage.Recovered, damage.Lost)
		f.repairable = filepath.Base(damage.File) != store.JournalName && (!ref.Foreign() || v.StaysInPlace())
		out = append(out, f)
	}
	if text := unpairedCalls(v.State); text != "" {
		const kept = "everything in the file; only requests to a model are repaired, not the file"
		f := aboutTask(ref, roofmt.APIName, text, kept, "the other half of each")
		f.Kind = api.FindingUnpaired
		out = append(out, f)
	}
	if v.Log == nil {
		return append(out, d.taskLeftovers(ctx, ref, nil)...)
	}
	// A view skips files that it does not need for showing the task.
	if folder, err := roofmt.Read(ctx, ref.Dir); err == nil {
		for _, loss := range folder.Losses {
			if loss.File == roofmt.ItemName || loss.File == roofmt.MetadataName {
				out = append(out, aboutTask(ref, filepath.Join(ref.Dir, loss.File), loss.Problem, "it is derived from the journal", "").withRepair())
			}
		}
		if err := folder.Close(); err != nil {
			out = append(out, aboutTask(ref, ref.Dir, err.Error(), "", ""))
		}
	}
	health, err := v.Log.Health(ctx)
	if err != nil {
		return append(out, aboutTask(ref, store.JournalName, err.Error(), "", ""))
	}
	out = append(out, journalFindings(ref, health)...)
	out = append(out, d.checkSignatures(ctx, v, anyDamaged(out))...)
	if _, held := d.store.Holder(ctx, ref); !held && !ref.InDatabase() { // an owner is still writing what is derived
		for _, m := range verifyDerived(ctx, v, anyDamaged(out)) {
			m.ID, m.Path = ref.ID, ref.Dir
			out = append(out, fromMismatch(m))
		}
	}
	return append(out, d.taskLeftovers(ctx, ref, v.Log)...)
}

// checkSignatures verifies who wrote the journal's commits. lacksCommits: the journal is known to lack some.
func (d *doctor) checkSignatures(ctx context.Context, v *store.View, lacksCommits bool) []finding {
	standing, err := d.store.Standing(ctx, v.Ref, v.State.Begins)
	brings := v.State.Brings()
	switch {
	case err != nil:
		return []finding{aboutTask(v.Ref, store.JournalName, "it cannot be verified: "+err.Error(), "", "")}
	case standing == store.Altered && !lacksCommits:
		const problem = "its commits do not match their signatures, or its end is missing: another program changed it"
		return []finding{aboutTask(v.Ref, store.JournalName, problem, "what it shows; it does not continue by itself", "")}
	case standing != store.Ours && len(brings) > 0:
		text := map[store.Standing]string{
			store.Unsigned:  "an older Roost wrote it, without signatures",
			store.Elsewhere: "it was signed in another place",
			store.Altered:   "another program changed it",
		}[standing]
		text += "; it holds " + strings.Join(brings, "; ")
		return []finding{aboutTask(v.Ref, store.JournalName, text, "roost root trust accepts it as it is", "").withKind(untrusted)}
	}
	return nil
}

// journalFindings returns the problems of a journal, without lost commits: the folded state has those.
func journalFindings(ref store.Ref, h journal.Health) []finding {
	var out []finding
	if h.TornTail != nil {
		problem := "unfinished last line: " + h.TornTail.Reason
		out = append(out, aboutTask(ref, store.JournalName, problem, "everything before it", "nothing that was acknowledged").withRepair())
	}
	for _, d := range h.SetAside {
		problem := fmt.Sprintf("at byte %d: %s", d.Offset, d.Reason)
		out = append(out, aboutTask(ref, store.JournalName, problem, "the commits that count; its bytes are kept", "").withKind(leftover))
	}
	for _, b := range h.MissingBlobs {
		out = append(out, aboutTask(ref, blobFile(b), journal.ErrBlobMissing.Error(), "", "the payload"))
	}
	for _, b := range h.DamagedBlobs {
		out = append(out, aboutTask(ref, blobFile(b), journal.ErrBlobDamaged.Error(), "", "the payload"))
	}
	return out
}

// unpairedCalls describes what is wrong between the tool calls of a task and their results; "" when nothing is. A call
// that nothing follows is in order: its task was interrupted or waits. Ids alone decide which result belongs to which
// call, over the whole history: Roo puts a user's message or a summary between the two.
func unpairedCalls(s *task.State) string {
	type call struct{ closed, followed bool }
	calls := map[string]*call{}
	var open []*call // of the newest reply, while nothing follows it
	orphans, extra := 0, 0
	for _, m := range s.API() {
		for _, c := range open {
			c.followed = true
		}
		open = open[:0]
		switch m.Kind() {
		case "assistant":
			for _, use := range m.Uses() {
				if use.ID == "" {
					continue // an old call, made as text
				}
				c := &call{}
				calls[use.ID] = c
				open = append(open, c)
			}
		case "user":
			for _, id := range m.Results() {
				switch c := calls[id]; {
				case c == nil:
					if s.Call(id) == nil { // the user removed a call that is known, and kept its answer
						orphans++
					}
				case c.closed:
					extra++
				default:
					c.closed = true
				}
			}
		}
	}
	without := 0
	for _, c := range calls {
		if c.followed && !c.closed {
			without++
		}
	}
	var parts []string
	for _, n := range []struct {
		n          int
		what, lack string
	}{{without, "tool call", "without a result"}, {orphans, "tool result", "without a call"}, {extra, "tool result", "too many for a call"}} {
		if n.n != 0 {
			parts = append(parts, api.Plural(n.n, n.what)+" "+n.lack)
		}
	}
	return strings.Join(parts, ", ")
}

// verifyDerived compares what was derived from a task's journal with the journal: its snapshot and Roo's files. The
// view must come from ReadWhole. journalDamaged: the journal itself is damaged, so its projections may hold what it
// lost and are no evidence.
func verifyDerived(ctx context.Context, v *store.View, journalDamaged bool) []store.Mismatch {
	var out []store.Mismatch
	if m, ok := verifySnapshot(ctx, v); ok && !journalDamaged {
		out = append(out, m)
	}
	if len(v.Pending) > 0 || v.Unborn {
		return out // another program's files; the row shows what Roost makes of them
	}
	mark := projection.Read(v.Ref.Log)
	if len(mark.Files) == 0 {
		return append(out, store.Mismatch{File: projection.Name, Problem: "it is missing or not a record", Source: "the files", Stale: true})
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		m, wrong, err := verifyProjection(ctx, v, name, mark)
		if err != nil {
			m, wrong = store.Mismatch{File: name, Problem: err.Error(), Unrepairable: true}, true
		}
		if wrong && !journalDamaged {
			out = append(out, m)
		}
	}
	return out
}

// verifyProjection compares the bytes of one of Roo's files with what was written. A fingerprint is not enough: a bad
// disk can change bytes and leave size and time as they are.
func verifyProjection(ctx context.Context, v *store.View, name string, mark projection.Watermark) (store.Mismatch, bool, error) {
	path := filepath.Join(v.Ref.Dir, name)
	last, known := mark.Files[name]
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if !known || last.Absent || !v.Ref.Own && !projection.Exists(v.Ref.Dir) {
			return store.Mismatch{}, false, nil
		}
		return store.Mismatch{File: path, Problem: "it is missing", Source: "the journal", Stale: true}, true, nil
	case err != nil:
		return store.Mismatch{}, false, err
	case !known || !info.Mode().IsRegular():
		return store.Mismatch{}, false, nil
	}
	prints, err := roofmt.Prints(v.Ref.Dir)
	if err != nil || prints[name] != last.Print() || len(last.SHA256) != 2*sha256.Size {
		return store.Mismatch{}, false, err // another program changed it; that is compared message by message
	}
	sum, err := sumOf(ctx, path)
	if err != nil {
		return store.Mismatch{}, false, err
	}
	if sum != last.SHA256 && !holdsObject(v, name, last.SHA256) {
		const problem = "its bytes have changed, although its size and time have not"
		return store.Mismatch{File: path, Problem: problem, Source: "the journal", Rewrite: name}, true, nil
	}
	if name != roofmt.UIName && name != roofmt.APIName || last.Absent {
		return store.Mismatch{}, false, nil
	}
	list, waiting := v.State.UI(), json.RawMessage(nil)
	if name == roofmt.APIName {
		list = v.State.API()
		if waiting, err = v.State.ResultsSoFar(); err != nil {
			return store.Mismatch{}, false, err
		}
	}
	want, err := renderSum(ctx, v.State, list, waiting)
	if err != nil || want == last.SHA256 || want == last.Shows {
		return store.Mismatch{}, false, err
	}
	m := store.Mismatch{File: path, Problem: "it differs from what the journal gives", Source: "the journal", Rewrite: name}
	if mark.Seq < v.State.Seq { // the process that would have written it was killed
		m.Problem, m.Stale = fmt.Sprintf("it shows commit %d of %d", mark.Seq, v.State.Seq), true
	}
	return m, true, nil
}

// holdsObject reports whether a small file holds an object with a digest. The watermark notes the object, not the file,
// when another tool wrote the file.
func holdsObject(v *store.View, name, want string) bool {
	if name != roofmt.ItemName && name != roofmt.MetadataName {
		return false
	}
	folder, err := roofmt.Read(context.Background(), v.Ref.Dir)
	if err != nil {
		return false
	}
	defer folder.Close()
	return name == roofmt.ItemName && projection.FileOf(folder.Item).SHA256 == want ||
		name == roofmt.MetadataName && projection.FileOf(folder.Metadata).SHA256 == want
}

func sumOf(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, inputfile.ContextReader(ctx, f)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// renderSum returns the digest of what a history is projected to. waiting is the user turn that follows the history
// while the task waits for a subtask; nil otherwise.
func renderSum(ctx context.Context, s *task.State, list []*task.Message, waiting []byte) (string, error) {
	h := sha256.New()
	err := roofmt.WriteArray(h, func(yield func(roofmt.Element, error) bool) {
		i := 0
		for raw, err := range fold.Raws(ctx, s, list) {
			if err != nil {
				yield(roofmt.Element{}, fmt.Errorf("message %d cannot be read: %w", i+1, err))
				return
			}
			if !yield(roofmt.Element{Raw: raw, Made: !list[i].Foreign}, nil) {
				return
			}
			i++
		}
		if waiting != nil {
			yield(roofmt.Element{Raw: waiting, Made: true}, nil)
		}
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// verifySnapshot compares the state that readers get from the saved snapshot with a fold of the whole journal.
func verifySnapshot(ctx context.Context, v *store.View) (store.Mismatch, bool) {
	const file = "journal.idx"
	head, err := v.Log.Head(ctx)
	if err != nil || head == 0 {
		return store.Mismatch{}, false
	}
	snap, err := v.Log.Snapshot(ctx)
	if errors.Is(err, journal.ErrNoSnapshot) {
		const problem = "it is missing or unusable; every read folds the whole journal"
		return store.Mismatch{File: file, Problem: problem, Source: "the journal", Stale: true}, true
	}
	if err != nil {
		return store.Mismatch{File: file, Problem: err.Error(), Source: "the journal", Unrepairable: true}, true
	}
	quick, err := task.Restore(snap.Data, fold.FromLog(ctx, v.Log), fold.MessageMemory)
	if err != nil {
		const problem = "its snapshot is unusable; every read folds the whole journal"
		return store.Mismatch{File: file, Problem: problem, Source: "the journal", Stale: true}, true
	}
	if err := fold.Into(ctx, quick, v.Log, quick.Seq+1); err != nil || v.State.Seq != quick.Seq {
		return store.Mismatch{}, false // the journal grew since, or the state includes pending changes
	}
	if len(v.Pending) == 0 && stateDigest(quick) != stateDigest(v.State) {
		return store.Mismatch{File: file, Problem: "its snapshot differs from the journal", Source: "the journal", Rewrite: file}, true
	}
	return store.Mismatch{}, false
}

// stateDigest returns a digest of a state, for comparing.
func stateDigest(s *task.State) string {
	h := sha256.New()
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		var sum usage.Tokens
		for _, m := range list {
			if spent, ok := m.Spent(); ok {
				spent.AddTo(&sum)
			}
			fmt.Fprintf(h, "%d %d %s %v %v\n", m.ID, m.TS(), m.Kind(), m.Partial(), m.Missing)
		}
		fmt.Fprintln(h, sum)
	}
	data, err := json.Marshal([]any{s.ID, s.Title, s.Tags, s.Pinned, s.Number, s.Settings, s.Run, s.Queue, s.Files, s.Children, s.Usage})
	if err != nil {
		return err.Error()
	}
	h.Write(bytes.ReplaceAll(data, []byte("[]"), []byte("null"))) // a snapshot does not distinguish an empty list from none
	return hex.EncodeToString(h.Sum(nil))
}
