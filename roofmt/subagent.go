package roofmt

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// A subagent of a session of Cline's has a transcript of its own in the folder of the session that started it, and no folder. It is
// a task all the same: its path is that of the file, and its id is the one that Cline's index has of it.

// readSubagent reads the transcript of a subagent.
func readSubagent(ctx context.Context, path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("reading the transcript %s: %w", path, err)
	}
	root, err := os.OpenRoot(filepath.Dir(abs))
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
	if dir := firstText(manifest, "cwd", "workspace_root"); dir != "" && len(f.Row) > 0 {
		f.Row = esjson.Set(f.Row, "workspace", esjson.Quote(nil, dir))
	}
	if err := ctx.Err(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("reading the transcript %s: %w", path, err)
	}
	f.Origin = inferOrigin(f, true)
	return f, nil
}

// subagentsOf are the transcripts in a session's folder that are not its own.
func subagentsOf(dir string, entries []fs.DirEntry) []Found {
	var list []Found
	own := filepath.Base(dir)
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), transcriptEnd)
		if !ok || stem == "" || stem == own || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		_, id := PlaceOf(path)
		list = append(list, Found{id, path, api.ValidTaskID(id)})
	}
	return list
}
