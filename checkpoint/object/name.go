package object

import (
	"fmt"
	"strings"
)

// CheckName tells whether a tree can hold a name: one element of a path, not ".", "..",
// nor anything that some file system takes for ".git". The error is ErrName.
func CheckName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"), ntfsGit(name), hfsGit(name):
		return fmt.Errorf("%q %w", name, ErrName)
	}
	return nil
}

// ntfsGit reports names that Windows takes for .git: any case, its short name,
// points, spaces and a stream's name behind it.
func ntfsGit(name string) bool {
	lower := strings.ToLower(name)
	rest, ok := strings.CutPrefix(lower, ".git")
	if !ok {
		rest, ok = strings.CutPrefix(lower, "git~1")
	}
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, ". ")
	return rest == "" || rest[0] == ':' || rest[0] == '\\'
}

// hfsGit reports names that macOS takes for .git: any case, and runes that it
// does not look at.
func hfsGit(name string) bool {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(plain, ".git")
}
