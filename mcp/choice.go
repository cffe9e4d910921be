package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/internal/atomicfile"
)

// Choices is a folder with the user's decisions about definitions that others wrote, one
// file each, so that two programs that write at once lose nothing of each other.
type Choices struct {
	Dir string // "" = no decisions
}

// choice is the decision about one definition. A yes holds for the definition as it is now,
// a no for every later version too.
type choice struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Hash    string `json:"sha256"`
	Allowed bool   `json:"allowed"`
	Line    string `json:"line"` // for people who open the file
}

func (c Choices) path(s Server) string {
	sum := sha256.Sum256([]byte(s.File + "\x00" + s.Name))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".json")
}

// state is the state of a server. A decision that cannot be read is no agreement.
func (c Choices) state(s Server) State {
	decision, err := c.read(s)
	switch {
	case s.Problem != "":
		return Invalid
	case err == nil && !decision.Allowed:
		return Denied
	case s.Disabled:
		return Disabled
	case s.Scope == Own && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return Allowed
	case err == nil && decision.Hash == s.Hash() && decision.Hash != "":
		return Allowed
	}
	return NotAllowed
}

func (c Choices) read(s Server) (decision choice, err error) {
	if c.Dir == "" {
		return decision, fs.ErrNotExist
	}
	data, err := os.ReadFile(c.path(s))
	if err != nil {
		return decision, err
	}
	err = json.Unmarshal(data, &decision)
	if err == nil && (decision.File != s.File || decision.Name != s.Name) {
		err = errors.New("it is about another server")
	}
	return decision, err
}

// Set records the user's decision about a server as it is now.
func (c Choices) Set(s Server, allowed bool) error {
	data, err := json.MarshalIndent(choice{File: s.File, Name: s.Name, Hash: s.Hash(), Allowed: allowed, Line: s.Line()}, "", "  ")
	if err != nil {
		return fmt.Errorf("record the decision about the MCP server %s: %w", s.Name, err)
	}
	if err := c.write(c.path(s), append(data, '\n')); err != nil {
		return fmt.Errorf("record the decision about the MCP server %s in %s: %w", s.Name, c.Dir, err)
	}
	return nil
}

func (c Choices) write(path string, data []byte) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
