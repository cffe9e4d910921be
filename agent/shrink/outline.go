package shrink

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/outline"
)

// A summary carries outlines of the files that the model has read: their content went with the messages that held it.
const (
	outlinesLimit = 50_000  // bytes of all outlines
	outlineFile   = 1 << 20 // bytes; a larger file gets no outline
	outlineFiles  = 200     // files that are tried
)

// Outlines returns the outlines of the files that the model knows, newest first, each as the text of a reminder in
// Roo's form. A missing, too large or unreadable file has none: the summary has to suffice.
func Outlines(ctx context.Context, w *workspace.Workspace, files []task.FileRecord) []string {
	if w == nil {
		return nil
	}
	var out []string
	seen, room, tried := map[string]bool{}, outlinesLimit, 0
	for _, f := range slices.Backward(files) {
		known := f.Source == "read_tool" || f.Source == "file_mentioned" || f.Source == "roo_edited"
		if !known || seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		if tried++; tried > outlineFiles || ctx.Err() != nil {
			break
		}
		p, err := w.Resolve(f.Path)
		if err != nil || p.Outside || p.Ignored {
			continue
		}
		data, _, err := w.Read(ctx, p, outlineFile)
		if err != nil {
			continue
		}
		folded := outline.Of(f.Path, string(data))
		if folded == "" || len(folded) > room {
			continue
		}
		room -= len(folded)
		out = append(out, "## File Context: "+f.Path+"\n"+folded)
	}
	return out
}
