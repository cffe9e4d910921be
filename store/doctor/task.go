package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// journalName is the file of a task's journal.
const journalName = "journal.jsonl"

// inspect reads a whole task and changes nothing.
func (d *doctor) inspect(ctx context.Context, ref store.Ref) []finding {
	s := d.store
	v, err := s.ReadWhole(ctx, ref)
	if err != nil {
		return append([]finding{aboutTask(ref, ref.Dir, store.ReadProblem(ref, err), "", "")}, taskLeftovers(ctx, ref, nil)...)
	}
	defer v.Close()
	var out []finding
	for _, damage := range v.Summary.Damaged {
		f := aboutTask(ref, damage.File, damage.Problem, damage.Recovered, damage.Lost)
		f.repairable = filepath.Base(damage.File) != journalName
		out = append(out, f)
	}
	if text, err := unpairedCalls(ctx, v.State); err != nil {
		out = append(out, aboutTask(ref, ref.Dir, err.Error(), "", ""))
	} else if text != "" {
		const kept = "everything in the file; a request to a model is made valid without changing it"
		out = append(out, aboutTask(ref, roofmt.APIName, text, kept, "the other half of each"))
	}
	if v.Log == nil {
		return append(out, taskLeftovers(ctx, ref, nil)...)
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
		return append(out, aboutTask(ref, journalName, err.Error(), "", ""))
	}
	out = append(out, journalFindings(ref, health)...)
	out = append(out, d.checkSignatures(ctx, v, anyDamaged(out))...)
	if _, held := filelog.Holder(ref.Log); !held { // an owner is still writing what is derived
		for _, m := range verifyDerived(ctx, v, anyDamaged(out)) {
			m.ID, m.Path = ref.ID, ref.Dir
			out = append(out, fromMismatch(m))
		}
	}
	return append(out, taskLeftovers(ctx, ref, v.Log)...)
}

// checkSignatures verifies who wrote the journal's commits. lacksCommits: the journal is known to lack some.
func (d *doctor) checkSignatures(ctx context.Context, v *store.View, lacksCommits bool) []finding {
	standing, err := d.store.Standing(ctx, v.Ref, v.State.Begins)
	brings := v.State.Brings()
	switch {
	case err != nil:
		return []finding{aboutTask(v.Ref, journalName, "it cannot be verified: "+err.Error(), "", "")}
	case standing == store.Altered && !lacksCommits:
		const problem = "its commits do not match their signatures, or its end is missing: another program changed it"
		return []finding{aboutTask(v.Ref, journalName, problem, "what it shows; it does not continue by itself", "")}
	case standing != store.Ours && len(brings) > 0:
		text := map[store.Standing]string{
			store.Unsigned:  "an older Roost wrote it, without signatures",
			store.Elsewhere: "it was signed in another place",
			store.Altered:   "another program changed it",
		}[standing]
		text += "; it holds " + strings.Join(brings, "; ")
		return []finding{aboutTask(v.Ref, journalName, text, "roost root trust accepts it as it is", "").withKind(untrusted)}
	}
	return nil
}

// journalFindings are the problems of a journal, without lost commits: the folded state has those.
func journalFindings(ref store.Ref, h journal.Health) []finding {
	var out []finding
	if h.TornTail != nil {
		problem := "unfinished last line: " + h.TornTail.Reason
		out = append(out, aboutTask(ref, journalName, problem, "everything before it", "nothing that was acknowledged").withRepair())
	}
	for _, d := range h.SetAside {
		problem := fmt.Sprintf("at byte %d: %s", d.Offset, d.Reason)
		out = append(out, aboutTask(ref, journalName, problem, "the commits that count; its bytes are kept", "").withKind(leftover))
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
func unpairedCalls(ctx context.Context, s *task.State) (string, error) {
	type call struct{ closed, followed bool }
	calls := map[string]*call{}
	var open []*call // of the newest reply, while nothing follows it
	orphans, extra := 0, 0
	for m, err := range fold.Raws(ctx, s, s.API()) {
		if err != nil {
			return "", err
		}
		if m == nil {
			continue // it is lost; the history reports that
		}
		for _, c := range open {
			c.followed = true
		}
		open = open[:0]
		msg := roofmt.APIMessage(m)
		switch msg.Role() {
		case "assistant":
			for _, use := range msg.ToolUses() {
				if use.ID == "" {
					continue // an old call, made as text
				}
				c := &call{}
				calls[use.ID] = c
				open = append(open, c)
			}
		case "user":
			for _, id := range msg.ToolResults() {
				switch c := calls[id]; {
				case c == nil:
					orphans++
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
	text := ""
	for _, n := range []struct {
		n    int
		what string
	}{{without, "tool call%s without a result"}, {orphans, "tool result%s without a call"}, {extra, "tool result%s too many for a call"}} {
		if n.n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		plural := "s"
		if n.n == 1 {
			plural = ""
		}
		text += fmt.Sprintf("%d "+n.what, n.n, plural)
	}
	return text, nil
}
