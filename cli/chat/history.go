package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/atomicfile"
)

// Most of what is kept of what was typed.
const (
	historyEntries = 1000
	historyEntry   = 64 << 10 // bytes of one
)

// History is what a user typed, the oldest first. It is kept in a file for its owner alone, a JSON string a line;
// several chats may add to it at once.
type History struct {
	path string // "" = it is not kept
	all  []string
}

// OpenHistory reads the history. Lines that cannot be read are left out, so that a
// damaged file costs no more than they do.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	if path == "" {
		return h, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read what was typed before: %w", err)
	}
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 8*historyEntry)
	lines := 0
	for in.Scan() {
		var text string
		if lines++; json.Unmarshal(in.Bytes(), &text) == nil && text != "" {
			h.put(text)
		}
	}
	if lines > 2*historyEntries { // a longer one was written by many chats
		return h, h.rewrite()
	}
	return h, nil
}

// put adds an entry in memory. What was typed twice in a row is kept once.
func (h *History) put(text string) {
	if n := len(h.all); n > 0 && h.all[n-1] == text {
		return
	}
	h.all = append(h.all, text)
	if over := len(h.all) - historyEntries; over > 0 {
		h.all = append([]string(nil), h.all[over:]...)
	}
}

// Add keeps what was typed. What begins with a blank is not kept anywhere.
func (h *History) Add(text string) error {
	if strings.TrimSpace(text) == "" || text[0] == ' ' || text[0] == '\t' || len(text) > historyEntry {
		return nil
	}
	last := len(h.all) > 0 && h.all[len(h.all)-1] == text
	h.put(text)
	if h.path == "" || last {
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("keep what was typed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("keep what was typed: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keep what was typed: %w", err)
	}
	_, err = f.Write(append(line, '\n')) // one write: lines of two chats do not mix
	return errors.Join(err, f.Close())
}

// rewrite makes the file as short as it should be.
func (h *History) rewrite() error {
	var out bytes.Buffer
	for _, text := range h.all {
		line, err := json.Marshal(text)
		if err != nil {
			return fmt.Errorf("shorten what was typed: %w", err)
		}
		out.Write(append(line, '\n'))
	}
	if err := atomicfile.WriteDerived(h.path, ".chat-*", out.Bytes()); err != nil {
		return fmt.Errorf("shorten what was typed: %w", err)
	}
	return nil
}

// Len is how many entries there are.
func (h *History) Len() int { return len(h.all) }

// At is an entry, the oldest at 0.
func (h *History) At(i int) string { return h.all[i] }

// Search finds the newest entry before place i that holds words, in any case of
// letters; -1 when there is none.
func (h *History) Search(words string, before int) int {
	words = strings.ToLower(words)
	for i := min(before, len(h.all)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.all[i]), words) {
			return i
		}
	}
	return -1
}
