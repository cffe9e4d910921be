package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// derived compares with a journal what was derived from it. What is not there, or
// behind, is stale. What says something else misleads whoever reads it, and counts
// as damage. hit: the journal itself is damaged, and its projections may hold what
// it lost.
func (s *Store) derived(ctx context.Context, v *View, hit bool) []Finding {
	var out []Finding
	if f, ok := s.checkSnapshot(ctx, v); ok && !hit {
		out = append(out, f)
	}
	if len(v.Pending) > 0 || v.unborn {
		return out // another program's files; what Roost makes of them is in the row
	}
	mark := readWatermark(v.Ref.Log)
	if len(mark.Files) == 0 {
		return append(out, v.Ref.finding(watermarkName, "it is not there, or no record", "it is made again from the files", "").of(stale))
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		f, wrong, err := v.projection(ctx, name, mark)
		if err != nil {
			f, wrong = v.Ref.finding(name, err.Error(), "", ""), true
		}
		if wrong && !hit {
			out = append(out, f)
		}
	}
	return out
}

// projection judges one file of Roo's by its bytes. Its fingerprint may be right and
// they not: that is what a bad disk does.
func (v *View) projection(ctx context.Context, name string, mark watermark) (Finding, bool, error) {
	path := filepath.Join(v.Ref.Dir, name)
	last, known := mark.Files[name]
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if !known || last.Absent || !v.Ref.Own && !exists(v.Ref.Dir, "") {
			return Finding{}, false, nil
		}
		return v.Ref.finding(path, "it is not there", "it is derived from the journal", "").of(stale), true, nil
	case err != nil:
		return Finding{}, false, err
	case !known || !info.Mode().IsRegular():
		return Finding{}, false, nil
	}
	prints, err := roofmt.Prints(v.Ref.Dir)
	if err != nil || prints[name] != last.print() || len(last.SHA256) != 2*sha256.Size {
		return Finding{}, false, err // a change that is compared message by message
	}
	sum, err := sumOf(ctx, path)
	if err != nil {
		return Finding{}, false, err
	}
	if sum != last.SHA256 && !v.trimmed(name, last.SHA256) {
		f := v.Ref.finding(path, "its bytes are not those that were written, though its size and time are", "it is derived from the journal", "").can()
		f.rotten = name
		return f, true, nil
	}
	if name != roofmt.UIName && name != roofmt.APIName || last.Absent {
		return Finding{}, false, nil
	}
	list, waiting := v.State.UI(), json.RawMessage(nil)
	if name == roofmt.APIName {
		list = v.State.API()
		if waiting, err = v.State.ResultsSoFar(); err != nil {
			return Finding{}, false, err
		}
	}
	want, err := renderSum(ctx, v.State, list, waiting)
	if err != nil || want == last.SHA256 || want == last.Shows {
		return Finding{}, false, err
	}
	f := v.Ref.finding(path, "it does not show what the journal says", "it is derived from the journal", "").can()
	f.rotten = name
	if mark.Seq < v.State.Seq { // the process that would have written it was killed
		f.Problem, f.kind = fmt.Sprintf("it shows commit %d of %d", mark.Seq, v.State.Seq), stale
	}
	return f, true, nil
}

// trimmed: of a small file that another tool wrote, the object in it was noted.
func (v *View) trimmed(name, want string) bool {
	if name != roofmt.ItemName && name != roofmt.MetadataName {
		return false
	}
	folder, err := roofmt.Read(context.Background(), v.Ref.Dir)
	if err != nil {
		return false
	}
	defer folder.Close()
	return name == roofmt.ItemName && markOf(folder.Item).SHA256 == want || name == roofmt.MetadataName && markOf(folder.Metadata).SHA256 == want
}

func sumOf(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, ctxReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ctxReader ends a long read with its context.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // it is one read
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// renderSum is the digest of what a history is projected to. waiting is the user turn behind
// it of a task that waits for a subtask, nil when there is none.
func renderSum(ctx context.Context, s *task.State, list []*task.Message, waiting []byte) (string, error) {
	h := newHashing(io.Discard)
	err := roofmt.WriteArray(h, func(yield func(roofmt.Element, error) bool) {
		i := 0
		for raw, err := range raws(ctx, s, list) {
			if err == nil && raw == nil {
				err = fmt.Errorf("message %d cannot be read", i+1)
			}
			if err != nil {
				yield(roofmt.Element{}, err)
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
	return h.projected().SHA256, err
}

// checkSnapshot compares what readers see, who start from the saved snapshot, with
// what the whole log says.
func (s *Store) checkSnapshot(ctx context.Context, v *View) (Finding, bool) {
	const file = "journal.idx"
	head, err := v.Log.Head(ctx)
	if err != nil || head == 0 {
		return Finding{}, false
	}
	snap, err := v.Log.Snapshot(ctx)
	if errors.Is(err, journal.ErrNoSnapshot) {
		return v.Ref.finding(file, "it is not there, or cannot be used; every reading folds the whole journal", "it is made again from the journal", "").of(stale), true
	}
	if err != nil {
		return v.Ref.finding(file, err.Error(), "the journal", ""), true
	}
	quick, err := task.Restore(snap.Data, ground{ctx: context.WithoutCancel(ctx), log: v.Log}, room)
	if err != nil {
		return v.Ref.finding(file, "its snapshot cannot be used; every reading folds the whole journal", "it is made again from the journal", "").of(stale), true
	}
	if err := foldInto(ctx, quick, v.Log, quick.Seq+1); err != nil || v.State.Seq != quick.Seq {
		return Finding{}, false // it grew meanwhile, or is folded with what is pending
	}
	if len(v.Pending) == 0 && picture(quick) != picture(v.State) {
		f := v.Ref.finding(file, "its snapshot says something else than the journal", "it is made again from the journal", "").can()
		f.rotten = file
		return f, true
	}
	return Finding{}, false
}

// picture is what a state says, to be compared.
func picture(s *task.State) string {
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
	told, err := json.Marshal([]any{s.ID, s.Title, s.Tags, s.Pinned, s.Number, s.Settings, s.Run, s.Queue, s.Files, s.Children, s.Usage})
	if err != nil {
		return err.Error()
	}
	h.Write(told)
	return hex.EncodeToString(h.Sum(nil))
}
