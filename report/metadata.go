package report

import (
	"io"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// maxMetadata bounds what is read of a file that another program wrote.
const maxMetadata = 256 << 20

// recordedElsewhere are the records of files that another tool left in a task's folder,
// for a task whose own records are not all there is. A file that is not there, not
// readable or no plain file says nothing of files.
func recordedElsewhere(v *store.View) []task.FileRecord {
	if v.Log != nil && v.State.Adopted == nil && v.State.Fork == nil {
		return nil
	}
	if v.Folder != nil {
		return task.ForeignRecords(v.Folder.Metadata)
	}
	f, err := roofmt.OpenFile(v.Ref.Dir, roofmt.MetadataName)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMetadata))
	if err != nil {
		return nil
	}
	return task.ForeignRecords(raw)
}
