// Package projection writes Roo's files behind the journals: the files of an owned task, with the file records merged
// into task_metadata.json, and the history index. It keeps a record of what it wrote last, so that only changes of
// other programs count as such.
//
// Roo's files follow the journal, several commits at a time, with a bounded share of the time. A run waits for them
// only when it ends, waits or hands over. First all temporary files are written and synced; then, under Roo's locks,
// the fingerprints are compared and the files renamed. The record of what is about to be written precedes the rename,
// so that after a crash Roost does not take its own bytes for a foreign change. task_metadata.json of an adopted task
// keeps the editor's entries, with ours merged in by Roo's rules.
//
// The record is a file beside the journal. It is derived: without it, Roo's files are compared with the journal message
// by message, and nothing of them counts as changed that the journal holds.
package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/roofmt"
)

// Name is the file of the watermark, beside the journal.
const Name = "projection.json"

// Watermark is what Roost wrote last into Roo's files, and what it was about to write: a crash between the rename and
// this record must not make Roost's own bytes look foreign.
type Watermark struct {
	Seq     uint64          `json:"seq"` // the commit that the files show
	Files   map[string]File `json:"files"`
	Writing map[string]File `json:"writing,omitempty"`
}

// File is one file as Roost wrote it.
type File struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime,omitempty"` // nanoseconds
	Inode  uint64 `json:"inode,omitempty"`

	// Shows is the digest of what Roost would write for the messages that the file shows, when another tool wrote
	// them in its own spelling and Roost left the file as it was.
	Shows  string `json:"shows,omitempty"`
	Absent bool   `json:"absent,omitempty"` // there is no such file
}

// FileOf is the record of a file with these bytes.
func FileOf(data []byte) File {
	sum := sha256.Sum256(data)
	return File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// Print is the fingerprint of the file as Roost wrote it.
func (p File) Print() roofmt.Fingerprint {
	if p.Absent {
		return roofmt.Fingerprint{}
	}
	return roofmt.Fingerprint{Exists: true, Size: p.Size, MTime: p.MTime, Inode: p.Inode}
}

// Wrote reports whether a document's file holds bytes that Roost wrote. The fingerprint is the fast path; the hash
// decides.
func (w Watermark) Wrote(doc *roofmt.Document) bool {
	if doc.Recovered() || doc.Source != doc.Name {
		return false
	}
	last, ok := w.Files[doc.Name]
	if ok && last.MTime != 0 && last.Print() == doc.Print {
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

// Knows reports whether the record has what Roost wrote last into a file. Without it, the file may be an older
// projection of Roost's.
func (w Watermark) Knows(name string) bool {
	return w.Files[name].SHA256 != "" || w.Writing[name].SHA256 != ""
}

// Read reads the watermark in a journal's folder. One that is missing or unusable counts as empty.
func Read(logDir string) Watermark {
	var w Watermark
	data, err := os.ReadFile(filepath.Join(logDir, Name))
	if err != nil || json.Unmarshal(data, &w) != nil {
		w = Watermark{}
	}
	if w.Files == nil {
		w.Files = map[string]File{}
	}
	return w
}

// Save replaces the record atomically. It does not sync it: losing the record costs a comparison, and the files that it
// describes are synced before.
func (w Watermark) Save(logDir string) error {
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("watermark: %w", err)
	}
	if err := atomicfile.WriteDerived(filepath.Join(logDir, Name), TempPrefix+"*", data); err != nil {
		return fmt.Errorf("watermark: %w", err)
	}
	return nil
}

// TempPrefix begins the name of a watermark that is not complete yet.
const TempPrefix = ".projection-"

// Sweep removes watermarks that killed owners left unfinished. Its caller owns the task: only owners write them. One
// that cannot be removed does no harm.
func Sweep(logDir string) {
	entries, err := os.ReadDir(logDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			_ = os.Remove(filepath.Join(logDir, e.Name()))
		}
	}
}

// IsLocalFile reports whether a file of a task folder belongs to the folder's place and not to the task: locks, Roost's
// half-written files, and files that are derived from a journal and name inodes. A copy of a task leaves them out.
func IsLocalFile(path string, isDir bool) bool {
	switch path {
	case "journal.idx", "journal.lock", Name:
		return !isDir
	}
	if path != filepath.Base(path) {
		return false
	}
	return strings.HasPrefix(path, ".roost-") || strings.HasPrefix(path, TempPrefix) || isDir && strings.HasSuffix(path, ".json.lock")
}

// IsHalfWritten reports whether a file beside a journal is one that an owner writes and then renames. One that stays
// is from a killed process.
func IsHalfWritten(name string) bool {
	return strings.HasPrefix(name, TempPrefix) || strings.HasPrefix(name, "journal.idx.tmp")
}
