package tasks

import (
	"github.com/roost-dev/roost/internal/progress"
)

// progress shows how far an export is; bytes are those of the written file.
func (x *exporter) progress(bytes int64) {
	progress.Report(x.ctx, progress.State{What: "exporting", Done: x.begun, Of: len(x.refs), Bytes: bytes})
}
