package store

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/roofmt"
)

// WatermarkName is the file of the watermark, beside the journal. It is derived: without it, Roo's files are compared
// message by message.
const WatermarkName = "projection.json"

// watermark says what we wrote last into Roo's files, and what we were about to
// write: a crash between the rename and this record must not make our own bytes
// look foreign.
type watermark struct {
	Seq     uint64               `json:"seq"` // the commit that the files show
	Files   map[string]projected `json:"files"`
	Writing map[string]projected `json:"writing,omitempty"`
}

// projected is one file as we wrote it.
type projected struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime,omitempty"` // nanoseconds
	Inode  uint64 `json:"inode,omitempty"`

	// Shows is the digest of what we would write for the messages that the file
	// shows, when another tool spelled it and it was left as it was.
	Shows  string `json:"shows,omitempty"`
	Absent bool   `json:"absent,omitempty"` // there was no such file
}

func (p projected) print() roofmt.Fingerprint {
	if p.Absent {
		return roofmt.Fingerprint{}
	}
	return roofmt.Fingerprint{Exists: true, Size: p.Size, MTime: p.MTime, Inode: p.Inode}
}

// wrote reports whether a document's file holds bytes that we wrote. The
// fingerprint is the fast path, the hash the judge.
func (w watermark) wrote(doc *roofmt.Document) bool {
	if doc.Recovered() || doc.Source != doc.Name {
		return false
	}
	last, ok := w.Files[doc.Name]
	if ok && last.MTime != 0 && last.print() == doc.Print {
		return true
	}
	next := w.Writing[doc.Name]
	if (!ok || last.Size != doc.Print.Size) && next.Size != doc.Print.Size {
		return false
	}
	sum, err := doc.SHA256()
	if err != nil {
		return false
	}
	text := hex.EncodeToString(sum[:])
	return text == last.SHA256 || text == next.SHA256
}

// knows reports whether the record says what we wrote into a file last. Without
// it, a file may be an older projection of ours.
func (w watermark) knows(name string) bool {
	return w.Files[name].SHA256 != "" || w.Writing[name].SHA256 != ""
}

// readWatermark gives an empty one when there is none that can be used.
func readWatermark(logDir string) watermark {
	var w watermark
	data, err := os.ReadFile(filepath.Join(logDir, WatermarkName))
	if err != nil || json.Unmarshal(data, &w) != nil {
		w = watermark{}
	}
	if w.Files == nil {
		w.Files = map[string]projected{}
	}
	return w
}

// save replaces the record atomically. It is not synced: losing it costs a
// comparison, and the files it describes were synced before.
func (w watermark) save(logDir string) error {
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("watermark: %w", err)
	}
	temp, err := os.CreateTemp(logDir, markTemp+"*")
	if err != nil {
		return fmt.Errorf("watermark: %w", err)
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(logDir, WatermarkName))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("watermark: %w", err), os.Remove(temp.Name()))
	}
	return nil
}

// markTemp begins the name of a watermark that is being written.
const markTemp = ".projection-"

// sweepMarks removes watermarks that killed owners did not finish. Only the owner
// writes them, and that is us now. One that cannot be removed does no harm.
func sweepMarks(logDir string) {
	entries, err := os.ReadDir(logDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), markTemp) {
			_ = os.Remove(filepath.Join(logDir, e.Name()))
		}
	}
}

func hexOf(sum [32]byte) string { return hex.EncodeToString(sum[:]) }

// IsLocalFile reports whether a file of a task folder belongs to the folder's place and not to the task: locks,
// half-written files of ours, and what is derived from a journal and names inodes. A copy of a task goes without them.
func IsLocalFile(path string, isDir bool) bool {
	switch path {
	case "journal.idx", "journal.lock", WatermarkName:
		return !isDir
	}
	if path != filepath.Base(path) {
		return false
	}
	return strings.HasPrefix(path, ".roost-") || strings.HasPrefix(path, markTemp) || isDir && strings.HasSuffix(path, ".json.lock")
}

// IsHalfWritten reports whether a file beside a journal is one that an owner writes and then renames. One that stays
// was left by a killed process.
func IsHalfWritten(name string) bool {
	return strings.HasPrefix(name, markTemp) || strings.HasPrefix(name, "journal.idx.tmp")
}
