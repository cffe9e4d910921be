package agent

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/workspace/outline"
)

// Outlines of files that the model has read go with a summary: their content is gone
// with the messages that held it.
const (
	outlineBytes = 50_000  // of all outlines together
	outlineFile  = 1 << 20 // a file larger than this has none
	outlineFiles = 200     // so many are looked at
)

// outlines are those of the files that the model knows, the newest first, each as the
// text of a reminder in Roo's form.
func (a *Agent) outlines(ctx context.Context) []string {
	if a.Host.Workspace == nil {
		return nil
	}
	var out []string
	seen, room, looked := map[string]bool{}, outlineBytes, 0
	for _, f := range slices.Backward(a.state().Files) {
		known := f.Source == "read_tool" || f.Source == "file_mentioned" || f.Source == "roo_edited"
		if !known || seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		if looked++; looked > outlineFiles || ctx.Err() != nil {
			break
		}
		p, err := a.Host.Workspace.Resolve(f.Path)
		if err != nil || p.Outside || p.Ignored {
			continue
		}
		data, _, err := a.Host.Workspace.Read(ctx, p, outlineFile)
		if err != nil {
			continue // gone, too large, not to be read: the summary has to do
		}
		folded := outline.Of(f.Path, string(data))
		if folded == "" || len(folded) > room {
			continue
		}
		room -= len(folded)
		out = append(out, a.mask("## File Context: "+f.Path+"\n"+folded))
	}
	return out
}
