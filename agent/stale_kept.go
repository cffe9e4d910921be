package agent

import (
	"os"
	"slices"
)

// Bounds of the contents that are kept to tell what changed in a file.
const (
	keepFile   = 64 << 10 // bytes: the content of a file up to that is kept
	keepMemory = 1 << 20  // bytes of all of them in memory
	keepAll    = 64 << 20 // and in a file
)

// texts holds contents by hash: in a file of the run's private folder where there is one,
// since what is needed of it is little and a long run's memory is not. What cannot be kept
// is not: then a change is told without what changed.
type texts struct {
	dir    string // "" = in memory
	file   *os.File
	broken bool
	spans  map[string]span
	memory map[string][]byte
	order  []string // of memory, oldest first
	size   int64
}

type span struct{ at, size int64 }

func (t *texts) has(hash string) bool {
	_, kept := t.spans[hash]
	return kept || t.memory[hash] != nil
}

// get gives a content, nil when it is not at hand.
func (t *texts) get(hash string) []byte {
	s, kept := t.spans[hash]
	if !kept {
		return t.memory[hash]
	}
	data := make([]byte, s.size)
	if _, err := t.file.ReadAt(data, s.at); err != nil {
		return nil // whoever cleared the folder meant it
	}
	return data
}

// keep keeps a content for as long as there is room.
func (t *texts) keep(hash string, data []byte) {
	switch {
	case data == nil || hash == "" || t.has(hash):
	case t.dir == "":
		t.remember(hash, data)
	case !t.broken && t.size+int64(len(data)) <= keepAll:
		t.broken = !t.write(hash, data)
	}
}

func (t *texts) remember(hash string, data []byte) {
	if t.memory == nil {
		t.memory = map[string][]byte{}
	}
	t.memory[hash] = slices.Clip(data)
	t.order = append(t.order, hash)
	for t.size += int64(len(data)); t.size > keepMemory; t.order = t.order[1:] {
		t.size -= int64(len(t.memory[t.order[0]]))
		delete(t.memory, t.order[0])
	}
}

func (t *texts) write(hash string, data []byte) bool {
	if t.file == nil {
		f, err := os.CreateTemp(t.dir, "seen-*") // mode 0600
		if err != nil {
			return false
		}
		t.file, t.spans = f, map[string]span{}
	}
	if _, err := t.file.WriteAt(data, t.size); err != nil {
		return false
	}
	t.spans[hash] = span{t.size, int64(len(data))}
	t.size += int64(len(data))
	return true
}

// close forgets all.
func (t *texts) close() {
	if t.file != nil {
		_ = t.file.Close() // nobody reads it again
		_ = os.Remove(t.file.Name())
	}
	*t = texts{}
}
