package stale

import (
	"os"
)

// Bounds of the file contents that are kept to compute differences.
const (
	contentLimit = 64 << 10 // bytes of one file; a larger content is not kept
	spoolLimit   = 64 << 20 // bytes of all contents in the spool folder
)

// contents holds file contents by hash. It keeps them in a file of the run's private folder: little of them is
// ever needed, and a long run's memory is scarce. A content that cannot be kept is
// dropped; a change of that file is then reported without its difference.
type contents struct {
	dir    string
	file   *os.File
	broken bool // writing failed: nothing more is written
	spans  map[string]span
	size   int64
}

// span is a range of bytes in the file.
type span struct{ at, size int64 }

func (c *contents) has(hash string) bool {
	_, kept := c.spans[hash]
	return kept
}

// get returns a content, or nil when it is not kept.
func (c *contents) get(hash string) []byte {
	s, kept := c.spans[hash]
	if !kept {
		return nil
	}
	data := make([]byte, s.size)
	if _, err := c.file.ReadAt(data, s.at); err != nil {
		return nil // the folder was cleared on purpose
	}
	return data
}

// keep stores a content while there is room.
func (c *contents) keep(hash string, data []byte) {
	if data == nil || hash == "" || c.broken || c.has(hash) || c.size+int64(len(data)) > spoolLimit {
		return
	}
	c.broken = !c.write(hash, data)
}

func (c *contents) write(hash string, data []byte) bool {
	if c.file == nil {
		f, err := os.CreateTemp(c.dir, "seen-*") // mode 0600
		if err != nil {
			return false
		}
		c.file, c.spans = f, map[string]span{}
	}
	if _, err := c.file.WriteAt(data, c.size); err != nil {
		return false
	}
	c.spans[hash] = span{c.size, int64(len(data))}
	c.size += int64(len(data))
	return true
}

// close drops all contents. dir stays, so that keep works again afterwards.
func (c *contents) close() {
	if c.file != nil {
		_ = c.file.Close() // it is not read again
		_ = os.Remove(c.file.Name())
	}
	*c = contents{dir: c.dir}
}
