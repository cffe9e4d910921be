package report

import (
	"io"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

// maxMetadata bounds how much of a file of another program is read, in bytes.
const maxMetadata = 256 << 20

// recordedElsewhere are the file records that another tool left in a task's folder, for a task whose own records are
// incomplete. A file that is missing, unreadable or not a regular file has no records.
func recordedElsewhere(v *store.View) []task.FileRecord {
	if v.Log != nil && v.State.Adopted == nil && v.State.Fork == nil {
		return nil
	}
	if v.Folder != nil {
		return foreign.Records(v.Folder.Metadata)
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
	return foreign.Records(raw)
}
