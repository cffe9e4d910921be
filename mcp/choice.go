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
)

// Choices is a folder with what a person has said to definitions that are not their
// own, a file for each. So two programs that write at once lose nothing of each other.
type Choices struct {
	Dir string // "" = nobody has said anything
}

// choice is what was said to one definition. A yes is for what it is now, a no for
// whatever it becomes.
type choice struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Hash    string `json:"sha256"`
	Allowed bool   `json:"allowed"`
	Line    string `json:"line"` // for who looks into the file
}

func (c Choices) path(s Server) string {
	sum := sha256.Sum256([]byte(s.File + "\x00" + s.Name))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".json")
}

// judge is the state of a server. What cannot be read is no agreement.
func (c Choices) judge(s Server) State {
	said, err := c.read(s)
	switch {
	case s.Problem != "":
		return Invalid
	case err == nil && !said.Allowed:
		return Denied
	case s.Disabled:
		return Disabled
	case s.Scope == Own && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return Allowed
	case err == nil && said.Hash == s.Hash() && said.Hash != "":
		return Allowed
	}
	return NotAllowed
}

func (c Choices) read(s Server) (said choice, err error) {
	if c.Dir == "" {
		return said, fs.ErrNotExist
	}
	data, err := os.ReadFile(c.path(s))
	if err != nil {
		return said, err
	}
	err = json.Unmarshal(data, &said)
	if err == nil && (said.File != s.File || said.Name != s.Name) {
		err = errors.New("it is about another server")
	}
	return said, err
}

// Set remembers what a person says to a server as it is now.
func (c Choices) Set(s Server, allowed bool) error {
	data, err := json.MarshalIndent(choice{File: s.File, Name: s.Name, Hash: s.Hash(), Allowed: allowed, Line: s.Line()}, "", "  ")
	if err != nil {
		return fmt.Errorf("remember what was said to the MCP server %s: %w", s.Name, err)
	}
	if err := c.write(c.path(s), append(data, '\n')); err != nil {
		return fmt.Errorf("remember what was said to the MCP server %s in %s: %w", s.Name, c.Dir, err)
	}
	return nil
}

func (c Choices) write(path string, data []byte) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.Dir, ".choice-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
