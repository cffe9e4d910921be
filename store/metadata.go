package store

import (
	"errors"
	"io"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/projection"
)

// maxKnownFiles bounds, in bytes, the task_metadata.json that FilesKnownElsewhere reads: the file is held in memory.
const maxKnownFiles = 256 << 20

// FilesKnownElsewhere is what another tool recorded of the files of a task: its entries of task_metadata.json, from the
// task's folder or, when that file is unreadable, from the adoption. It leaves out Roost's own entries: a fork derives
// those from its history.
func (v *View) FilesKnownElsewhere() []byte {
	var data []byte
	if f, err := roofmt.OpenFile(v.Ref.Dir, roofmt.MetadataName); err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxKnownFiles+1))
		if err = errors.Join(err, f.Close()); err != nil || len(data) > maxKnownFiles || !esjson.Valid(data) {
			data = nil
		}
	}
	if data == nil {
		if blob := projection.MetadataBlob(v.State); blob != "" && v.Log != nil {
			data, _ = fold.Payloads(v.Log).Range(blob, 0, -1) // a payload that is lost counts as none
		}
	}
	return projection.WithoutRecords(data, v.State.FilesEver())
}

// RenderItem is the history item that Roost would write for the task. size is the size of the task's files in bytes.
func (v *View) RenderItem(now, size int64) ([]byte, error) {
	return projection.RenderItem(v.State, now, size)
}
